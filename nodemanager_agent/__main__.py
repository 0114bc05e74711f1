"""`python -m nodemanager_agent`: runs the agent until a signal ends it; exit codes of DESIGN §10."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from gandiva_core.model.errors import InputError
from nodemanager_agent.agent import Agent
from nodemanager_agent.settings import read

BAD_INPUT = 3


def main(arguments: Sequence[str]) -> int:
    """Run; 0 after a signal, 3 for settings, devices or files that cannot be used."""
    try:
        settings = read(arguments)
        asyncio.run(_run(Agent(settings)))
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        return BAD_INPUT
    return 0


async def _run(agent: Agent) -> None:
    await agent.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
