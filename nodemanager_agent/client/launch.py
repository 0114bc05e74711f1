"""`python -m nodemanager_agent.client.launch -- COMMAND…`: runs a worker's command under its node's agent (DESIGN §5).

Exit code: the command's; 128 + n after signal n; 127 where there is no such command; 64 without one. Where no agent is
named (``GANDIVA_AGENT_SOCKET``), the command runs as it would have without us.
"""

import os
import sys
from typing import List

from nodemanager_agent.client import rendezvous
from nodemanager_agent.client.child import say, with_hook
from nodemanager_agent.client.launcher import Launcher
from nodemanager_agent.client.wire import AGENT_SOCKET

USAGE = "usage: python -m nodemanager_agent.client.launch -- COMMAND [ARGUMENT ...]"


def main(arguments: List[str]) -> int:
    """Run the command; its exit code."""
    command = arguments[1:] if arguments[:1] == ["--"] else arguments
    if not command:
        say(USAGE)
        return 64
    path = os.environ.get(AGENT_SOCKET)
    if path:
        return Launcher(command, path).run()
    say("no agent ({} is not set): the command runs plainly".format(AGENT_SOCKET))
    return _plainly(command)


def _plainly(command: List[str]) -> int:
    try:
        if rendezvous.is_gang(os.environ):
            os.environ.update(rendezvous.meet(os.environ))
        environment = dict(os.environ)
        has_checkpoints = bool(environment.get("GANDIVA_CHECKPOINT_EVERY"))
        os.execvpe(command[0], command, with_hook(environment) if has_checkpoints else environment)
    except (OSError, rendezvous.NoRendezvous) as error:
        say("{}: {}".format(command[0], error))
    return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
