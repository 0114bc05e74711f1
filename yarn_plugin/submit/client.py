"""The Java client that submits: where its jar is, what runs it, and what of its output is a person's to read."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from gandiva_core.model.errors import InputError
from yarn_plugin.bridge.jvm import TARGET_DIR
from yarn_plugin.cluster import daemons
from yarn_plugin.cluster.chosen import yarn_of

CLIENT_JAR = "gandiva-client.jar"
_CHATTER = re.compile(r"^\S+ \S+ INFO |NativeCodeLoader")
"""Hadoop's own log, which goes to the same place as what the client says."""

_INTERRUPTED = 130
_SIGNALLED = 128


class Job(msgspec.Struct, frozen=True):
    """What is to be submitted; keys and options are those of docs/JOBS.md.

    Attributes:
        command: the workers' shell command; empty where a key has it.
        settings: ``KEY=VALUE``.
    """

    command: str = ""
    conf_file: Path | None = None
    settings: tuple[str, ...] = ()
    src_dir: Path | None = None
    python_venv: Path | None = None
    python: str = ""
    name: str = ""
    is_detached: bool = False

    def words(self) -> list[str]:
        """The options of the Java client."""
        pairs = [
            ("-conf_file", self.conf_file),
            *(("-conf", setting) for setting in self.settings),
            ("-executes", self.command),
            ("-src_dir", self.src_dir),
            ("-python_venv", self.python_venv),
            ("-python_binary_path", self.python),
            ("-appname", self.name),
        ]
        given = [word for option, value in pairs if value for word in (option, str(value))]
        return [*given, "-detach"] if self.is_detached else given


def client_jar(target: Path = TARGET_DIR) -> Path:
    """The jar of client and master.

    Raises:
        InputError: it was not built.
    """
    jar = target / CLIENT_JAR
    if not jar.is_file():
        raise InputError(str(target), f"no {CLIENT_JAR}", "the client's jar: run `make plugin`")
    return jar


def runner(
    conf_dir: Path | None, state_dir: Path | None, environment: Mapping[str, str] | None = None
) -> tuple[list[str], dict[str, str]]:
    """What runs a jar against a cluster, and the environment that it needs beside this one.

    Args:
        conf_dir: Hadoop's configuration folder of the cluster; its `yarn` is the one on PATH, or else the jars of
            `make cluster-jars` stand in for it.
        state_dir: of a cluster of this machine; None for the default one.
        environment: of this process.

    Raises:
        InputError: two places, no such folder, or neither a `yarn` nor the jars.
        NoClusterError: nothing is up in the state folder.
    """
    yarn, place = yarn_of(conf_dir, state_dir, environment)
    if yarn is not None:
        return [yarn, "jar"], place
    path = os.pathsep.join([place["HADOOP_CONF_DIR"], daemons.class_path()])
    return [daemons.java(), *daemons.TOOL_FLAGS, "-cp", path, daemons.RUN_JAR], place


def submit(job: Job, program: Sequence[str], environment: Mapping[str, str]) -> int:
    """Submit, and follow the job to its end unless it is detached.

    The application's id goes to stdout, progress to stderr. Ctrl-C ends the following, not the job.

    Returns:
        The job's exit code, or the client's own.
    """
    command = [*program, str(client_jar()), *job.words()]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    ) as client:
        try:
            for line in client.stderr or ():
                if not _CHATTER.search(line):
                    sys.stderr.write(line)
                    sys.stderr.flush()
            code = client.wait()
        except KeyboardInterrupt:
            client.terminate()
            sys.stderr.write("interrupted: the job goes on\n")
            return _INTERRUPTED
    return code if code >= 0 else _SIGNALLED - code


def shell_command(words: Sequence[str]) -> str:
    """One word is a line of shell, as it stands; several are a command and its arguments."""
    return words[0] if len(words) == 1 else shlex.join(words)
