"""A folder in memory that does not outlive its launcher, however that ends."""

import os
import shutil
import subprocess
import tempfile

from nodemanager_agent.client.processes import Tree

_SHARED = "/dev/shm"
_GUARD = 'trap "" HUP INT TERM; read -r _; rm -rf "$1"'
"""Removes it once the pipe closes, which the kernel does at the launcher's end; a NodeManager's SIGKILL goes to the
launcher's own group only."""


class RamFolder:
    """One folder of this user's.

    Attributes:
        path: of it.

    Raises:
        OSError: there is no room, or no process to be had.
    """

    def __init__(self, tree: Tree) -> None:
        room = _SHARED if os.access(_SHARED, os.W_OK) else tempfile.gettempdir()
        self.path = tempfile.mkdtemp(prefix="gandiva-state-", dir=room)
        read, self._pipe = os.pipe()
        try:
            self._guard = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD, "gandiva-guard", self.path],
                stdin=read,
                start_new_session=True,
                env={"PATH": os.defpath},
            )
        except BaseException:
            os.close(self._pipe)
            shutil.rmtree(self.path, ignore_errors=True)
            raise
        finally:
            os.close(read)
        tree.leave_out(self._guard.pid)

    def remove(self) -> None:
        """It is not needed any more."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._pipe)
        self._guard.wait()
