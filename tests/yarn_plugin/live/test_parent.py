"""A core that is a child: it ends with its parent."""

from __future__ import annotations

import subprocess
import sys

from yarn_plugin.live.parent import OOM_SCORE

PROGRAM = """
import threading
from yarn_plugin.live.parent import Parent
stop = threading.Event()
Parent("7").tie(stop)
print(open("/proc/self/oom_score_adj").read().strip(), flush=True)
stop.wait()
print("ended", flush=True)
"""


def test_a_child_whose_parent_is_gone_ends_by_itself() -> None:
    """DESIGN §4: the memory killer takes the core before the ResourceManager."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline().strip() == str(OOM_SCORE)
        child.stdin.close()
        assert child.stdout.read().strip() == "ended"
    assert child.returncode == 0
