"""A core that starts anew beside containers that are there already (DESIGN §4: restart)."""

from __future__ import annotations

from gandiva_core.config.settings import Settings
from gandiva_core.conformance.world import Work
from gandiva_core.engine.engine import Engine
from gandiva_core.messages import events as e
from gandiva_core.model.cluster import QueueLimit
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import QueueName, ServerId
from gandiva_core.model.view import ClusterView
from tests.builders import job, server
from tests.policies.stage import FOR_EVER_S, Stage, arriving

Q = 60.0
QUEUES = (
    QueueLimit(QueueName("root"), 4, 4),
    QueueLimit(QueueName("root.a"), 1.5, 4, "root"),
    QueueLimit(QueueName("root.b"), 2.5, 4, "root"),
)
"""Guarantees are what three and five of eight equal jobs get anyway, so that nobody is favoured after ten minutes."""
EIGHT = [job(name, queue="root.a" if name in "abc" else "root.b") for name in "abcdefgh"]
CONFIGURED = [e.QueuesConfigured(0.0, QUEUES)]


def books(view: ClusterView) -> dict[str, object]:
    """Residents and GPUs by server and by queue."""
    found: dict[str, object] = {
        key: (s.allocated, s.affinity, dict(s.residents)) for key, s in view.servers.items()
    }
    found.update((key[0], (q.running, q.resident)) for key, q in view.queues.items())
    return found


def found(*specs: JobSpec, on: str = "s1", run_s: float = FOR_EVER_S) -> list[Work]:
    """Jobs that are on a server before the core is."""
    return [Work(0.0, spec, run_s, (ServerId(on),) * len(spec.workers)) for spec in specs]


def test_eight_jobs_on_four_devices_rotate_on_with_equal_books() -> None:
    """Heights and books as before; everybody goes on to get half of the time."""
    before = Stage([server("s1")], arriving(*EIGHT), facts=CONFIGURED).run(2.5 * Q)
    after = Stage([server("s1")], found(*EIGHT), facts=CONFIGURED).run(0.0)
    assert books(after.engine.view) == books(before.engine.view)
    assert after.engine.view.servers[ServerId("s1")].allocated == 8
    sets = after.run_sets([Q * k for k in range(4)])
    assert sets == [list("abcd"), list("efgh")] * 2
    after.run(20 * Q)
    assert {after.ran_s(each.job_id) for each in EIGHT} == {10 * Q}
    assert after.placements() == []


def test_waiting_jobs_come_after_those_that_were_found() -> None:
    """Eleven found on four devices, height three: a twelfth finds a slot, and nobody is asked to make room."""
    works = found(*[job(f"j{n:02d}") for n in range(11)])
    stage = Stage([server("s1")], [*works, *arriving(job("new"))]).run(Q)
    assert stage.placements() == [("new", "over-subscribe", "s1")]


def test_jobs_above_the_height_rotate_and_nobody_joins_them() -> None:
    """Found eighteen on four devices at a maximum height of four: all of them run in turn, a new job waits."""
    eighteen = [job(f"j{n:02d}") for n in range(18)]
    stage = Stage([server("s1")], [*found(*eighteen), *arriving(job("new"))]).run(36 * Q)
    assert stage.placements() == []
    assert {stage.ran_s(each.job_id) for each in eighteen} == {8 * Q}


def test_restored_again_from_its_snapshot_it_goes_on_the_same() -> None:
    stage = Stage([server("s1")], found(*EIGHT), facts=CONFIGURED).run(3 * Q)
    engine = stage.engine
    again = Engine.restore(engine.snapshot(), engine._policy, Settings(), check="full")
    event = e.JobAdopted(3 * Q, job("i"), ("c",), (ServerId("s1"),))
    assert again.handle(event) == engine.handle(event)
    assert again.snapshot() == engine.snapshot()


def test_server_that_comes_back_with_two_devices_of_four() -> None:
    """Six on four devices, then on two: nobody is lost, who held a device that is gone gives it up in turn."""
    six = [job(f"j{n}") for n in range(6)]
    fewer = e.ServerJoined(3.5 * Q, server("s1", 2))
    stage = Stage([server("s1")], found(*six), facts=[fewer]).run(8 * Q)
    before = {each.job_id: stage.ran_s(each.job_id) for each in six}
    assert len(stage.engine.view.servers[ServerId("s1")].holders) == 2
    stage.run(38 * Q)
    assert {stage.ran_s(job_id) - ran_s for job_id, ran_s in before.items()} == {10 * Q}


def test_server_that_comes_back_with_more_devices_uses_them_at_once() -> None:
    six = [job(f"j{n}") for n in range(6)]
    more = e.ServerJoined(3.5 * Q, server("s1", 6))
    stage = Stage([server("s1")], found(*six), facts=[more]).run(3.5 * Q)
    assert len(stage.running()) == 6
