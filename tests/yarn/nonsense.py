"""Messages to the bridge that were right once (E5)."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

from yarn_plugin.bridge.gateway import Gateway

STRANGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**31,
    2**63,
    10**40,
    0.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x" * 5000,
    "\x00\x1b[2J\n",
    "\ud800",
    "n1:1",
    "n1:99999999999",
    "appattempt_1_0001_000001",
    "container_1_0001_01_000001",
    [],
    {},
    [[]],
    [{}],
    {"a": {"b": []}},
)


class Nonsense:
    """Messages that were right once; the same for the same seed."""

    def __init__(self, seed: int, attempt: str) -> None:
        self._random = Random(seed)
        self._attempt = attempt

    def _effect(self) -> dict[str, Any]:
        size = {"memory_mib": 256, "vcores": 1, "gpus": 1}
        one = {"node": "n1:1", "priority": 1, "allocation_request_id": -1, **size}
        containers = [dict(one) for _ in range(self._random.randint(1, 3))]
        ids = [self._attempt.replace("appattempt", "container") + f"_{n:06}" for n in (1, 2, 3)]
        app = self._attempt.replace("appattempt", "application").rpartition("_")[0]
        effects: list[dict[str, Any]] = [
            {"op": "commit_gang", "attempt": self._attempt, "containers": containers},
            {"op": "release_gang", "attempt": self._attempt, "containers": ids},
            {"op": "set_height", "node": "n1:1", "height": self._random.randint(-1, 6)},
            {"op": "explain", "app": app, "text": "waits for 8 GPUs"},
            {"op": "agent_reported", "node": "n1:1"},
        ]
        return {"id": str(self._random.random()), **self._random.choice(effects)}

    def message(self, epoch: int, sequence: int) -> str:
        count = self._random.randint(1, 3)
        message: dict[str, Any] = {"epoch": epoch, "seq": sequence}
        message["effects"] = [self._effect() for _ in range(count)]
        for _ in range(self._random.randint(1, 3)):
            inner = message.get("effects")
            self._spoil(inner if inner and self._random.random() < 0.8 else message)
        text = json.dumps(message)
        return text if self._random.random() < 0.8 else self._torn(text)

    def _spoil(self, found: Any) -> None:
        """Change one thing somewhere inside."""
        while isinstance(found, dict | list) and found:
            places = list(found) if isinstance(found, dict) else list(range(len(found)))
            place: Any = self._random.choice(places)
            if isinstance(found[place], dict | list) and self._random.random() < 0.8:
                found = found[place]
            elif self._random.random() < 0.2:
                del found[place]
                return
            else:
                found[place] = self._random.choice(STRANGE)
                return

    def _torn(self, text: str) -> str:
        at = self._random.randrange(len(text))
        cut = text[: self._random.randrange(len(text))]
        doubled = text[:at] + text[at - 20 : at] + text[at:]
        odd = text[:at] + self._random.choice('{}[]":,\\x0') + text[at + 1 :]
        return self._random.choice([cut, doubled, odd, text + text, "[" * 100_000])


def answers(gateway: Gateway, nonsense: Nonsense, count: int, sequence: int = 1) -> Counter[str]:
    """Codes of effects and kinds of refused messages, over so many messages, the first of them with this number."""
    apply = gateway._session().apply
    found: Counter[str] = Counter()
    for _ in range(count):
        reply = json.loads(gateway.ask_text(apply, nonsense.message(gateway.epoch, sequence)))
        if reply["ok"]:
            sequence += 1
            found.update(result["code"] for result in reply["results"])
        else:
            assert reply["error"]["message"]
            # A message that was numbered and could not be read has used its number.
            found[reply["error"]["kind"]] += 1
            sequence += _numbers_taken(gateway, sequence)
    return found


def _numbers_taken(gateway: Gateway, sequence: int) -> int:
    """How many numbers a refused message and this question have used: the next one is accepted if the first was."""
    request = json.dumps({"epoch": gateway.epoch, "seq": sequence + 1, "effects": [7]})
    return 0 if "BAD_SEQUENCE" in gateway.ask_text(gateway._session().apply, request) else 2
