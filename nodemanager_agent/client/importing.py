"""Puts the hooks in: each framework's as soon as the job has imported it, and nothing before."""

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Optional, Sequence, cast

HOOKS = {
    "torch": "nodemanager_agent.client.torch_hook",
    "tensorflow": "nodemanager_agent.client.tensorflow_hook",
    "keras": "nodemanager_agent.client.keras_hook",
}
"""Framework to the module whose ``install()`` hooks it."""


class HookFinder(MetaPathFinder):
    """Finds nothing by itself: lets the others find a framework, and has its hook put in once it is loaded."""

    def __init__(self) -> None:
        self._asking = ""

    def find_spec(
        self,
        fullname: str,
        path: Optional[Sequence[str]] = None,
        target: Optional[ModuleType] = None,
    ) -> Optional[ModuleSpec]:
        """As `importlib.abc.MetaPathFinder`."""
        del path, target
        if fullname not in HOOKS or fullname == self._asking:
            return None
        self._asking = fullname
        try:
            spec = find_spec(fullname)
        finally:
            self._asking = ""
        if spec is not None and spec.loader is not None:
            spec.loader = cast("Loader", _HookLoader(spec.loader, HOOKS[fullname]))
        return spec


class _HookLoader:
    """The framework's own loader, and the hook after it."""

    def __init__(self, loader: Loader, hook: str) -> None:
        self._loader = loader
        self._hook = hook

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        put_in(self._hook)


def put_in(hook: str) -> None:
    """Install one hook; a fault of it is told and is not the job's."""
    try:
        importlib.import_module(hook).install()
    except Exception as error:  # of any kind: the job runs without the hook
        print(
            "gandiva: {} not hooked: {}: {}".format(hook, type(error).__name__, error),
            file=sys.stderr,
        )


def watch() -> None:
    """Hook frameworks that are loaded, now or later."""
    for framework, hook in HOOKS.items():
        if framework in sys.modules:
            put_in(hook)
    sys.meta_path.insert(0, HookFinder())
