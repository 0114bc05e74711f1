"""Which cluster a command is about: one of this machine, or that of a configuration folder; and its `yarn`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from gandiva_core.model.errors import InputError
from yarn_plugin.cluster.state import StateFolder, default_folder


class NoClusterError(Exception):
    """There is no cluster where one was looked for."""


def chosen(
    conf_dir: Path | None, state_dir: Path | None, environment: Mapping[str, str] | None = None
) -> StateFolder | Path:
    """A local cluster that is up, or the configuration folder that was named.

    Args:
        conf_dir: Hadoop's configuration folder of a cluster.
        state_dir: of a cluster of this machine; None for the default one.
        environment: of this process.

    Raises:
        InputError: both are named.
        NoClusterError: nothing is up in the state folder.
    """
    if conf_dir is not None:
        if state_dir is not None:
            raise InputError("--conf-dir", "a --state-dir as well", "one of them")
        return conf_dir.absolute()
    folder = StateFolder(state_dir or default_folder(environment))
    if folder.load() is None:
        raise NoClusterError(f"no cluster is up in {folder.path}; --conf-dir names another one")
    return folder


def yarn_of(
    conf_dir: Path | None, state_dir: Path | None, environment: Mapping[str, str] | None = None
) -> tuple[str | None, dict[str, str]]:
    """A cluster's `yarn`, None where there is none on PATH; and the environment that it needs beside this one.

    Args:
        conf_dir: as for `chosen`.
        state_dir: as for `chosen`.
        environment: of this process.

    Raises:
        InputError: as `chosen`; or the folder is no cluster's.
        NoClusterError: as `chosen`.
    """
    folder = chosen(conf_dir, state_dir, environment)
    if isinstance(folder, StateFolder):
        return str(folder.yarn), {}
    if not (folder / "yarn-site.xml").is_file():
        found = str(conf_dir)
        raise InputError("--conf-dir", found, "a folder with the cluster's yarn-site.xml")
    values = os.environ if environment is None else environment
    place = {"HADOOP_CONF_DIR": str(folder), "YARN_CONF_DIR": str(folder)}
    return shutil.which("yarn", path=values.get("PATH")), place
