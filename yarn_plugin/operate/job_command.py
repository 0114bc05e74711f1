"""`gandiva job`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from gandiva_core.cli.listing import Format, listing
from gandiva_core.messages.operations import (
    HoldJobs,
    JobLine,
    Jobs,
    Operation,
    ReleaseJobs,
    ShowJobs,
)
from gandiva_core.model.errors import InputError
from yarn_plugin.operate.callers import token_of
from yarn_plugin.operate.calling import (
    ConfDir,
    StateDir,
    TokenFile,
    address_of,
    asked,
    yarn_of,
)

app = typer.Typer(no_args_is_help=True, help="Look at jobs of a running core, and act on them.")

HEAD = ("job", "user", "queue", "phase", "gpus", "devices", "ran_s", "minibatches", "note")
Form = Annotated[Format, typer.Option("--format", help="How to print.")]
Name = Annotated[str, typer.Argument(metavar="JOB", help="A job, or an application's id.")]


@app.command("list")
def show_list(
    conf_dir: ConfDir = None,
    state_dir: StateDir = None,
    token_file: TokenFile = None,
    form: Form = Format.TABLE,
) -> None:
    """List jobs: yours, or with an administrator's token everybody's."""
    jobs = _asked(ShowJobs(), conf_dir, state_dir, token_file)
    typer.echo(listing(HEAD, [row_of(job) for job in jobs], form))


@app.command("status")
def show_status(
    name: Name,
    conf_dir: ConfDir = None,
    state_dir: StateDir = None,
    token_file: TokenFile = None,
    form: Form = Format.TABLE,
) -> None:
    """Show a job's workers, as their nodes' agents see them."""
    jobs = _asked(ShowJobs(name), conf_dir, state_dir, token_file)
    typer.echo(listing(WORKER_HEAD, [row for job in jobs for row in worker_rows(job)], form))


@app.command("suspend")
def suspend(
    name: Name,
    conf_dir: ConfDir = None,
    state_dir: StateDir = None,
    token_file: TokenFile = None,
    form: Form = Format.TABLE,
) -> None:
    """Suspend a job at its next mini-batch, until it is resumed; its place and its containers stay.

    Exit code 5 where it cannot be suspended; nothing is stopped then.
    """
    jobs = _asked(HoldJobs(name), conf_dir, state_dir, token_file)
    typer.echo(listing(HEAD, [row_of(job) for job in jobs], form))


@app.command("resume")
def resume(
    name: Name,
    conf_dir: ConfDir = None,
    state_dir: StateDir = None,
    token_file: TokenFile = None,
    form: Form = Format.TABLE,
) -> None:
    """Let a suspended job run again, when it is its turn."""
    jobs = _asked(ReleaseJobs(name), conf_dir, state_dir, token_file)
    typer.echo(listing(HEAD, [row_of(job) for job in jobs], form))


@app.command("logs")
def logs(
    name: Name,
    conf_dir: ConfDir = None,
    state_dir: StateDir = None,
) -> None:
    """Show what a job's containers wrote: `yarn logs` of its application."""
    yarn, environment = yarn_of(conf_dir, state_dir)
    command = [yarn, "logs", "-applicationId", name.partition("#")[0]]
    os.execve(yarn, command, environment)


@app.command("token")
def token(
    user: Annotated[str, typer.Option(help="Whose token.")],
    conf_dir: ConfDir = None,
    state_dir: StateDir = None,
    token_file: TokenFile = None,
) -> None:
    """Print the token of a user, for a file of mode 0600 of theirs; for administrators."""
    try:
        typer.echo(token_of(user, address_of(conf_dir, state_dir, token_file).credentials.token))
    except ValueError as error:
        raise InputError("--user", repr(user), "a user's name") from error


WORKER_HEAD = ("job", "container", "state", "gpus", "method", "minibatches", "minibatch_s", "note")


def worker_rows(job: JobLine) -> list[tuple[str, ...]]:
    """A line for each worker that an agent knows; one for the job where none does."""
    if not job.workers:
        return [(job.job_id, "", job.phase, str(job.gpus), "", "", "", note_of(job))]
    return [
        (
            job.job_id,
            worker.container_id,
            str(worker.state),
            ",".join(map(str, worker.gpus)),
            "" if worker.method is None else str(worker.method),
            str(worker.minibatches),
            "" if worker.minibatch_s is None else f"{worker.minibatch_s:.3g}",
            worker.reason or note_of(job),
        )
        for worker in job.workers
    ]


def row_of(job: JobLine) -> tuple[str, ...]:
    """A job in one line; a gang has done as many mini-batches as the slowest of its workers."""
    done = min((worker.minibatches for worker in job.workers), default=None)
    return (
        job.job_id,
        job.user,
        job.queue,
        job.phase,
        str(job.gpus),
        ",".join(job.devices),
        f"{job.ran_s:.0f}",
        "" if done is None else str(done),
        note_of(job),
    )


def note_of(job: JobLine) -> str:
    """What is special about it."""
    return "held" if job.is_held else job.unsuspendable and f"not suspended: {job.unsuspendable}"


def _asked(
    operation: Operation, conf_dir: Path | None, state_dir: Path | None, token_file: Path | None
) -> tuple[JobLine, ...]:
    reply = asked(operation, conf_dir, state_dir, token_file)
    return reply.jobs if isinstance(reply, Jobs) else ()
