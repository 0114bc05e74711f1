"""Our own keys against the rest of a site: its queues, its labels, and the files that they name."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from gandiva_core.config.keys import BY_NAME, PREFIX
from gandiva_core.config.reading import environment_source, problems, unread_environment
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.findings import Finding, Severity, from_problem
from gandiva_core.site.queues import DEFAULT_PARTITION, QueueTree
from gandiva_core.site.shares import queue_with_gpu_amount
from gandiva_core.site.switches import is_queue, nearest_queue

MODE = PREFIX + "mode"
QUEUES = PREFIX + "queues"
PARTITIONS = PREFIX + "partitions"
FALLBACK = PREFIX + "core.fallback"
MANAGED = PREFIX + "core.managed"
PYTHON = PREFIX + "core.python"
TOKEN = PREFIX + "bridge.token-file"
HEIGHT = PREFIX + "height.max"
STORE = "yarn.scheduler.configuration.store.class"
WITHOUT_AGENT = PREFIX + "oversubscribe-without-agent"
ALL = "*"
NO_LABEL = "DEFAULT"
GPU_MODES = ("place", "full")
"""Modes in which the core hands out GPUs."""

_REFUSES = "the ResourceManager or the core refuses to start: correct it"


def text_of(site: SiteConfiguration, key: str) -> str:
    """The value in force, Hadoop's way: what the file says, else the default."""
    return site.text(key, BY_NAME[key].default)


def check_own_keys(site: SiteConfiguration, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Values and names, in files and environment; and what is dangerous."""
    for problem in problems(site.located(PREFIX), environment_source(environment)):
        yield from_problem(problem, _REFUSES)
    for told in unread_environment(environment):
        name, _, likely = told.partition(" ")
        advice = "nobody reads it: correct or unset it"
        expected = likely.strip("()") or "a variable of a key"
        yield Finding(
            Severity.WARNING, "environment", name, "an unknown variable", expected, advice
        )
    if text_of(site, WITHOUT_AGENT).lower() == "true":
        advice = (
            "dangerous: jobs share devices and all run at once, nothing suspends them; on real GPUs "
            "they run out of memory: set false outside of tests"
        )
        yield Finding(
            Severity.WARNING, site.place(WITHOUT_AGENT), WITHOUT_AGENT, "true", "false", advice
        )


def check_adoption(site: SiteConfiguration, tree: QueueTree) -> Iterator[Finding]:
    """Adopted queues and partitions that are not there."""
    for name in site.texts(QUEUES):
        matches = [path for path in tree if path.endswith(f".{name}")]
        if name == ALL or is_queue(site, name, tree) or len(matches) == 1:
            continue
        likely = nearest_queue(name, tree)
        expected = f"{likely}?" if likely else f"{ALL} or one of {', '.join(tree)}"
        found = f"no queue {name}"
        if matches:
            found, expected = f"{name}, the name of several queues", f"one of {', '.join(matches)}"
        yield Finding(Severity.ERROR, site.place(QUEUES), QUEUES, found, expected, _REFUSES)
    yield from _check_amounts(site, tree)
    labels = _labels(tree)
    for name in site.texts(PARTITIONS):
        if name in (ALL, NO_LABEL) or name in labels:
            continue
        advice = "its nodes are adopted once there are some; no queue may use them: check the name"
        expected = f"{ALL}, {NO_LABEL}" + "".join(f", {label}" for label in sorted(labels))
        yield Finding(
            Severity.WARNING,
            site.place(PARTITIONS),
            PARTITIONS,
            f"the label {name}, which no queue has a capacity in",
            expected,
            advice,
        )


def check_core(site: SiteConfiguration, environment: Mapping[str, str]) -> Iterator[Finding]:
    """The files that the core needs, as this machine has them: meant to be run on the ResourceManager's host."""
    token = site.text(TOKEN)
    is_managed = text_of(site, MANAGED).lower() == "true"
    if token:
        yield from _check_token(site, Path(token))
    elif not is_managed:
        advice = "the bridge stays closed and no core can connect: name a file of mode 0600"
        yield Finding(Severity.WARNING, site.place(TOKEN), TOKEN, "not set", "a file", advice)
    python = text_of(site, PYTHON)
    if is_managed and shutil.which(python, path=environment.get("PATH", os.defpath)) is None:
        advice = "the core cannot be started and GPU asks wait: name the environment's bin/python"
        found = f"{python}, which is no program on this machine"
        yield Finding(Severity.WARNING, site.place(PYTHON), PYTHON, found, "a program", advice)


def _check_token(site: SiteConfiguration, file: Path) -> Iterator[Finding]:
    expected = "a file of mode 0600"
    try:
        rights = file.stat()
    except OSError as problem:
        found = f"{file}: {problem.strerror}"
        yield Finding(Severity.ERROR, site.place(TOKEN), TOKEN, found, expected, _REFUSES)
        return
    mode = stat.S_IMODE(rights.st_mode)
    if not stat.S_ISREG(rights.st_mode) or mode & ~0o600:
        found = f"{file} of mode {mode:04o}"
        advice = f"the ResourceManager refuses to start: chmod 600 {file}"
        yield Finding(Severity.ERROR, site.place(TOKEN), TOKEN, found, expected, advice)


def _check_amounts(site: SiteConfiguration, tree: QueueTree) -> Iterator[Finding]:
    """Amounts of GPUs are scaled by the height as the file is read: nothing else can be."""
    is_full = text_of(site, MODE).lower() == "full"
    store = site.text(STORE, "file")
    if not is_full or store == "file" or text_of(site, HEIGHT).strip() == "1":
        return
    queue = queue_with_gpu_amount(tree, {DEFAULT_PARTITION, *_labels(tree)})
    if queue is not None:
        advice = f"amounts of GPUs, as of {queue}, need it in mode full above height 1: change one"
        yield Finding(Severity.ERROR, site.place(STORE), STORE, store, "file", advice)


def _labels(tree: QueueTree) -> set[str]:
    return {
        label for queue in tree.values() for label in queue.limits if label != DEFAULT_PARTITION
    }
