"""What agents know besides orders: told whole, in order, and only when it is another (DESIGN §4; A13)."""

from __future__ import annotations

from gandiva_core.messages import agents as a
from tests.yarn_plugin.agents.scene import AgentScene


def expectations(scene: AgentScene, node: str) -> list[tuple[str, ...]]:
    told = [each for each in scene.told(node) if isinstance(each, a.Expect)]
    return [tuple(worker.container_id for worker in each.workers) for each in told]


def test_a_node_hears_of_its_workers_only_when_they_are_others() -> None:
    """A job that takes turns is ordered to run again and again; its node knows it already."""
    scene = AgentScene("n1")
    scene.attend("n1")
    assert expectations(scene, "n1") == [()], "nobody's: whoever registers there waits"
    scene.gang("a", "n1")
    for _ in range(3):
        switch_id = scene.switch(a=[("n1", 0)])
        scene.say("n1", a.Switched(1, switch_id, started=(("a/0", 1.0),)))
        scene.say("n1", a.Switched(1, scene.switch(["a"]), stopped=(("a/0", 2.0),)))
    assert expectations(scene, "n1") == [("a/0",)]


def test_a_worker_that_left_is_not_expected_when_the_next_one_comes() -> None:
    scene = AgentScene("n1")
    scene.attend("n1")
    scene.gang("a", "n1")
    scene.switch(a=[("n1", 0)])
    app, gang = next(iter(scene.register.gangs()))
    scene.register.remove(app, gang)
    scene.gang("b", "n1")
    scene.switch(b=[("n1", 0)])
    assert expectations(scene, "n1") == [(), ("a/0",), ("b/0",)]


def test_an_agent_that_is_back_hears_again_what_its_node_has() -> None:
    """Nothing that an earlier stream was told counts as known."""
    scene = AgentScene("n1")
    scene.attend("n1")
    scene.gang("a", "n1")
    scene.switch(a=[("n1", 0)])
    scene.told("n1")
    scene.attend("n1", session="after a restart")
    assert expectations(scene, "n1") == [("a/0",)]


def test_a_large_gang_hears_of_each_worker_once() -> None:
    """Each worker is with its device in the command of its own node."""
    scene = AgentScene("n1", "n2", gpus=64)
    scene.gang("a", *["n1", "n2"] * 64)
    scene.attend("n1")
    scene.attend("n2")
    for node in ("n1", "n2"):
        scene.told(node)
    scene.switch(a=[(node, gpu) for gpu in range(64) for node in ("n1", "n2")])
    for first, node in enumerate(("n1", "n2")):
        switch = next(each for each in scene.told(node) if isinstance(each, a.SwitchWorkers))
        wanted = [(f"a/{first + 2 * gpu}", (gpu,)) for gpu in range(64)]
        assert [(w.container_id, w.gpus) for w in switch.run] == wanted
