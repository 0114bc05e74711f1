"""Run by every Python process that has this folder on PYTHONPATH: watches for frameworks, then runs the user's own.

The package is loaded from where this file lies, and its folder never comes onto the job's path: what else lies beside
it (the agent's libraries) is not the job's.
"""

import importlib.util
import os
import sys
from importlib.machinery import PathFinder

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))


def _package() -> None:
    """Make `nodemanager_agent` importable where it is not."""
    name = "nodemanager_agent"
    if name in sys.modules or importlib.util.find_spec(name) is not None:
        return
    folder = os.path.join(ROOT, name)
    if not os.path.isdir(folder):  # a zip holds the client and nothing else
        sys.path.append(ROOT)
        return
    spec = importlib.util.spec_from_file_location(
        name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)


def _hook() -> None:
    names = ("GANDIVA_LAUNCHER_SOCKET", "GANDIVA_AGENT_SOCKET", "GANDIVA_CHECKPOINT_EVERY")
    if not any(map(os.environ.get, names)):
        return
    try:
        _package()
        from nodemanager_agent.client import importing  # noqa: PLC0415 - importable only now

        importing.watch()
    except Exception as error:  # of any kind: the job runs without the hook
        print("gandiva: not hooked: {}: {}".format(type(error).__name__, error), file=sys.stderr)


def _users_own() -> None:
    """The `sitecustomize` that would have run without ours."""
    others = [path for path in sys.path if os.path.abspath(path or ".") != HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_hook()
_users_own()
