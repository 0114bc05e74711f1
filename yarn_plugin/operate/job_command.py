"""`gandiva job`."""

from __future__ import annotations

import os
import time
from typing import Annotated

import typer

from gandiva_core.cli.listing import Format
from gandiva_core.cli.main import ExitCode, complain
from gandiva_core.messages.operations import (
    HoldJobs,
    JobLine,
    Jobs,
    MigrateJobs,
    OperationReply,
    ReleaseJobs,
    ResizeJob,
    ShowJobs,
)
from gandiva_core.model.errors import InputError
from yarn_plugin.operate.callers import token_of
from yarn_plugin.operate.calling import ConfDir, Form, Place, StateDir, Table, TokenFile

app = typer.Typer(no_args_is_help=True, help="Look at jobs of a running core, and act on them.")

_LOOK_S = 0.3

Name = Annotated[str, typer.Argument(metavar="JOB", help="A job, or an application's id.")]


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
    if job.resizing:
        return job.resizing
    return "held" if job.is_held else job.unsuspendable and f"not suspended: {job.unsuspendable}"


def _jobs(reply: OperationReply) -> tuple[JobLine, ...]:
    return reply.jobs if isinstance(reply, Jobs) else ()


JOBS = Table(
    ("job", "user", "queue", "phase", "gpus", "devices", "ran_s", "minibatches", "note"),
    lambda reply: list(map(row_of, _jobs(reply))),
)
WORKERS = Table(
    ("job", "container", "state", "gpus", "method", "minibatches", "minibatch_s", "note"),
    lambda reply: [row for job in _jobs(reply) for row in worker_rows(job)],
)


@app.command("list")
def show_list(
    conf_dir: ConfDir = None,
    state_dir: StateDir = None,
    token_file: TokenFile = None,
    form: Form = Format.TABLE,
) -> None:
    """List jobs: yours, or with an administrator's token everybody's."""
    JOBS.show(Place(conf_dir, state_dir, token_file).ask(ShowJobs()), form)


@app.command("status")
def show_status(
    name: Name,
    conf_dir: ConfDir = None,
    state_dir: StateDir = None,
    token_file: TokenFile = None,
    form: Form = Format.TABLE,
) -> None:
    """Show a job's workers, as their nodes' agents see them."""
    WORKERS.show(Place(conf_dir, state_dir, token_file).ask(ShowJobs(name)), form)


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
    JOBS.show(Place(conf_dir, state_dir, token_file).ask(HoldJobs(name)), form)


@app.command("resume")
def resume(
    name: Name,
    conf_dir: ConfDir = None,
    state_dir: StateDir = None,
    token_file: TokenFile = None,
    form: Form = Format.TABLE,
) -> None:
    """Let a suspended job run again, when it is its turn."""
    JOBS.show(Place(conf_dir, state_dir, token_file).ask(ReleaseJobs(name)), form)


@app.command("migrate")
def migrate(
    name: Name,
    to: Annotated[
        str,
        typer.Option("--to", metavar="NODE", help="Where to.  [default: wherever there is room]"),
    ] = "",
    conf_dir: ConfDir = None,
    state_dir: StateDir = None,
    token_file: TokenFile = None,
    form: Form = Format.TABLE,
) -> None:
    """Let a job go on elsewhere as soon as there is room; it computes until its state is saved.

    Exit code 5 where it cannot move; nothing is stopped then. `gandiva job status` shows where it is.
    """
    JOBS.show(Place(conf_dir, state_dir, token_file).ask(MigrateJobs(name, to)), form)


@app.command("resize")
def resize(
    name: Name,
    gpus: Annotated[int, typer.Option("--gpus", min=1, help="Devices that it shall have.")],
    conf_dir: ConfDir = None,
    state_dir: StateDir = None,
    token_file: TokenFile = None,
    form: Form = Format.TABLE,
) -> None:
    """Let a job go on with more or fewer devices of its server, never fewer than it asked for; waits until it does.

    Exit code 5 where that cannot be, or nothing came of it; the job goes on as it was then.
    """
    place = Place(conf_dir, state_dir, token_file)
    (job,) = _jobs(place.ask(ResizeJob(name, gpus)))
    while job.is_resizing:
        time.sleep(_LOOK_S)
        seen = {each.job_id: each for each in _jobs(place.ask(ShowJobs(job.job_id)))}
        if job.job_id not in seen:  # an id of an application stands for all of its jobs
            complain(f"error: {job.job_id}: it has ended")
            raise typer.Exit(ExitCode.REFUSED)
        job = seen[job.job_id]
    if job.resizing:
        complain(f"error: {job.job_id}: {job.resizing}")
        raise typer.Exit(ExitCode.REFUSED)
    JOBS.show(Jobs((job,)), form)


@app.command("logs")
def logs(
    name: Name,
    conf_dir: ConfDir = None,
    state_dir: StateDir = None,
) -> None:
    """Show what a job's containers wrote: `yarn logs` of its application."""
    yarn, environment = Place(conf_dir, state_dir).yarn()
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
    secret = Place(conf_dir, state_dir, token_file).address().credentials.token
    try:
        typer.echo(token_of(user, secret))
    except ValueError as error:
        raise InputError("--user", repr(user), "a user's name") from error
