"""What people ask of the core: over a real port, of a real engine and policy (DESIGN §10; FAULTS E16)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import Engine
from gandiva_core.messages import agents as a
from gandiva_core.messages import events as e
from gandiva_core.messages import operations as o
from gandiva_core.messages.effects import CommitGang, SwitchResidents
from gandiva_core.model.job import Worker
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.policies.gandiva import create
from gandiva_core.runtime.agentless import AgentlessWorld
from gandiva_core.site.credentials import Credentials
from gandiva_core.site.tokens import shown
from tests.builders import job, server
from yarn_plugin.agents.nodes import NodeSide
from yarn_plugin.agents.server import AgentServer
from yarn_plugin.bridge.asks import AskKey
from yarn_plugin.bridge.gangs import Application, Gang, GangPhase, GangRule, Member
from yarn_plugin.bridge.register import Register
from yarn_plugin.bridge.resizes import ResizeDesk
from yarn_plugin.bridge.wire import Answer
from yarn_plugin.live.servers import ServerRules
from yarn_plugin.operate.callers import Caller, token_of
from yarn_plugin.operate.client import CoreAddress, CoreUnreachableError, NotAdmittedError
from yarn_plugin.operate.operations import WAITING_MAX, Operations
from yarn_plugin.operate.service import OperateService

SECRET = "0123456789abcdef"
ANN, ADMINISTRATOR = Caller("ann"), Caller()


class Core:
    """An engine whose orders are carried out at once, and what people ask of it; turns are the test's."""

    def __init__(self, *, can_suspend: bool = True) -> None:
        settings = Settings(quantum_s=10.0)
        self.engine = Engine(create(settings, {}), settings, check="full")
        self.rules = ServerRules(can_suspend=lambda _: can_suspend)
        self.nodes: dict[str, NodeSide] = {}
        self.register = Register()
        self.now_s = 0.0
        view = self.engine.view
        self.resizes = ResizeDesk(self.register, view)
        self.operations = Operations(
            AgentlessWorld(), view, self.register, self.rules, self.nodes, self.resizes
        )
        self.take(*self.rules.complete([e.ServerJoined(0.0, server("s1", 2))]))

    def take(self, *events: e.Event) -> None:
        inbox = list(events)
        while inbox:
            outcome = self.engine.handle(inbox.pop(0))
            assert not outcome.refusals
            for effect in outcome.effects:
                if isinstance(effect, CommitGang):
                    ids = tuple(f"c{rank}" for rank in range(len(effect.servers)))
                    inbox.append(e.GangCommitted(self.now_s, effect.job_id, ids))
                elif isinstance(effect, SwitchResidents):
                    self.operations.apply(self.now_s, [effect])

    def turn(self) -> None:
        self.now_s += 0.1
        self.take(*self.operations.advance(self.now_s).events)

    def submit(self, name: str, user: str = "ann") -> None:
        import msgspec

        self.take(e.JobSubmitted(self.now_s, msgspec.structs.replace(job(name), user=user)))
        self.turn()

    def ask(self, operation: o.Operation, caller: Caller = ANN) -> o.OperationReply:
        answer = self.operations.ask(caller, operation)
        self.turn()
        return answer.result(timeout=0)

    def phases(self) -> dict[str, str]:
        return {name: str(each.phase) for name, each in self.engine.view.jobs.items()}


@pytest.fixture
def core() -> Core:
    core = Core()
    core.submit("a")
    core.submit("b", "bob")
    return core


def names(reply: o.OperationReply) -> list[str]:
    assert isinstance(reply, o.Jobs)
    return [each.job_id for each in reply.jobs]


def test_a_user_sees_own_jobs_and_an_administrator_all(core: Core) -> None:
    assert names(core.ask(o.ShowJobs())) == ["a"]
    assert names(core.ask(o.ShowJobs(), ADMINISTRATOR)) == ["a", "b"]
    reply = core.ask(o.ShowJobs("a"))
    assert isinstance(reply, o.Jobs)
    line = reply.jobs[0]
    assert (line.phase, line.devices, line.user) == ("running", ("s1/0",), "ann")


def test_a_suspended_job_stays_suspended_until_it_is_resumed(core: Core) -> None:
    core.ask(o.HoldJobs("a"))
    core.turn()
    assert core.phases() == {"a": "suspended", "b": "running"}
    reply = core.ask(o.ShowJobs("a"))
    assert isinstance(reply, o.Jobs)
    assert reply.jobs[0].is_held
    core.ask(o.ReleaseJobs("a"))
    core.turn()
    assert core.phases() == {"a": "running", "b": "running"}


@pytest.mark.parametrize("operation", [o.HoldJobs("b"), o.ReleaseJobs("b"), o.ShowJobs("b")])
def test_anothers_job_is_as_unknown_as_one_that_is_not_there(
    core: Core, operation: o.Operation
) -> None:
    reply = core.ask(operation)
    assert reply == o.Refused("UNKNOWN", "no job or application 'b' of yours")
    assert core.phases() == {"a": "running", "b": "running"}


def test_who_cannot_be_suspended_is_not(core: Core) -> None:
    core.take(e.JobLearned(core.now_s, JobId("a"), can_suspend=False, reason="no hook"))
    reply = core.ask(o.HoldJobs("a"))
    assert reply == o.Refused("UNABLE", "a is not suspended: no hook")
    assert core.phases()["a"] == "running"
    shown_ = core.ask(o.ShowJobs("a"))
    assert isinstance(shown_, o.Jobs)
    assert shown_.jobs[0].unsuspendable == "no hook"


def resizable(core: Core, *, can_resize: bool = True) -> None:
    """Job a has its container, and an agent that says what its worker can do."""
    member = Member(AskKey(1, 0), Worker(1, 1024, 1), "c1", "s1")
    gang = Gang(JobId("a"), [member], 0.0, GangPhase.HELD)
    app = Application("a", "a/1", "root.default", "ann", "a", 0, GangRule.INDEPENDENT, 1)
    app.gangs[gang.job_id] = gang
    core.register.apps["a"] = app
    core.register.app_of[gang.job_id] = "a"
    why = "" if can_resize else "sharded"
    report = a.WorkerReport("c1", a.WorkerState.RUNNING, can_resize=can_resize, reason=why)
    hello = a.AgentHello("s1", "s", "1", (), True, (report,))
    core.nodes["s1"] = NodeSide(hello)
    core.nodes["s1"].workers["c1"] = report


def test_a_resize_is_ordered_and_shown_until_something_comes_of_it() -> None:
    """G-81: on its own server, where devices are free."""
    core = Core()
    core.submit("a")
    resizable(core)
    reply = core.ask(o.ResizeJob("a", 2))
    assert isinstance(reply, o.Jobs)
    assert (reply.jobs[0].is_resizing, reply.jobs[0].resizing) == (True, "to 2 workers")
    (order,) = core.resizes.orders()
    assert (order.container, order.workers) == ("c1", 2)
    again = core.ask(o.ResizeJob("a", 2))
    assert again == o.Refused("UNABLE", "a: a has left, or is being resized")
    core.resizes.book([Answer(order.id, "NODE_STATE", "it is gone")])
    reply = core.ask(o.ShowJobs("a"))
    assert isinstance(reply, o.Jobs)
    assert not reply.jobs[0].is_resizing
    assert reply.jobs[0].resizing == "not resized: NODE_STATE it is gone"


def test_what_cannot_be_resized_says_why(core: Core) -> None:
    assert core.ask(o.ResizeJob("b", 2)) == o.Refused(
        "UNKNOWN", "no job or application 'b' of yours"
    )
    assert core.ask(o.ResizeJob("a", 2)) == o.Refused(
        "UNABLE", "a: not all of its workers have an agent"
    )
    resizable(core)
    assert core.ask(o.ResizeJob("a", 2)) == o.Refused("UNABLE", "a: s1 has 0 free GPUs")
    assert core.ask(o.ResizeJob("a", 1)) == o.Refused("UNABLE", "a: it has 1 GPUs, 1 a worker")
    resizable(core, can_resize=False)
    assert core.ask(o.ResizeJob("a", 2)) == o.Refused("UNABLE", "a: sharded")
    core.ask(o.HoldJobs("a"))
    assert core.ask(o.ResizeJob("a", 2)) == o.Refused("UNABLE", "a: it is suspending")
    assert core.resizes.orders() == []


def test_without_an_agent_the_reason_names_the_server() -> None:
    core = Core(can_suspend=False)
    core.submit("a")
    reply = core.ask(o.HoldJobs("a"))
    assert reply == o.Refused("UNABLE", "a is not suspended: server s1 cannot suspend")


def test_nodes_are_for_administrators(core: Core) -> None:
    for operation in (o.ShowNodes(), o.DrainNode("s1", True)):
        assert core.ask(operation) == o.Refused("FORBIDDEN", "nodes are for administrators")
    assert not core.engine.view.servers[ServerId("s1")].server.is_draining


def test_a_node_that_is_emptied_takes_nobody_and_lists_who_is_left(core: Core) -> None:
    reply = core.ask(o.DrainNode("s1", True), ADMINISTRATOR)
    assert isinstance(reply, o.Nodes)
    assert (reply.nodes[0].is_draining, reply.nodes[0].residents) == (True, ("a", "b"))
    core.submit("c")
    assert core.phases() == {"a": "running", "b": "running", "c": "queued"}
    core.take(*core.rules.complete([e.ServerJoined(core.now_s, server("s1", 2))]))
    assert core.phases()["c"] == "queued", "what YARN tells of a node opens it to nobody"
    core.ask(o.DrainNode("s1", False), ADMINISTRATOR)
    assert core.phases()["c"] != "queued"
    assert core.ask(o.DrainNode("s9", True), ADMINISTRATOR) == o.Refused("UNKNOWN", "no server s9")


def test_who_gave_up_waiting_is_not_obeyed_later(core: Core) -> None:
    answer = core.operations.ask(ANN, o.HoldJobs("a"))
    assert answer.cancel()
    core.turn()
    core.turn()
    assert core.phases()["a"] == "running"


# ------------------------------------------------------------------ over the port


@contextmanager
def served(core: Core, secret: str = SECRET) -> Iterator[str]:
    """The core's port, and turns in a thread."""
    methods = {o.METHOD: OperateService(core.operations, secret).handler()}
    credentials = Credentials(token="an agent's")
    port = AgentServer(credentials, "127.0.0.1", 0, lambda *_, **__: None, methods)
    port.start()
    done = threading.Event()

    def turns() -> None:
        while not done.wait(0.01):
            core.turn()

    thread = threading.Thread(target=turns)
    thread.start()
    try:
        yield f"127.0.0.1:{port.port}"
    finally:
        done.set()
        thread.join()
        port.close()


def test_over_the_port_with_a_token(core: Core) -> None:
    with served(core) as target:
        reply = CoreAddress(target, Credentials(token_of("ann", SECRET))).call(o.HoldJobs("a"))
        assert names(reply) == ["a"]
        assert names(CoreAddress(target, Credentials(SECRET)).call(o.ShowJobs())) == ["a", "b"]
        for token in ("an agent's", "ann:" + "0" * 64, ""):
            with pytest.raises(NotAdmittedError):
                CoreAddress(target, Credentials(token)).call(o.ShowJobs())


def test_without_a_secret_nobody_gets_in(core: Core) -> None:
    with served(core, secret="") as target, pytest.raises(NotAdmittedError):
        CoreAddress(target, Credentials(token_of("ann", ""))).call(o.ShowJobs())


@pytest.mark.parametrize("data", [b"", b"\xff\x00", b"{}", b'{"kind":"JobHeld"}', b"[" * 20_000])
def test_garbage_is_refused_and_the_core_goes_on(core: Core, data: bytes) -> None:
    with served(core) as target:
        with grpc.insecure_channel(target) as channel:
            ask = channel.unary_unary(f"/{a.SERVICE}/{o.METHOD}")
            with pytest.raises(grpc.RpcError) as refused:
                ask(data, metadata=shown(SECRET), timeout=5)
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert names(CoreAddress(target, Credentials(SECRET)).call(o.ShowJobs())) == ["a", "b"]


def test_no_core_is_said_so() -> None:
    with pytest.raises(CoreUnreachableError, match=r"no core answers at 127\.0\.0\.1:1"):
        CoreAddress("127.0.0.1:1", Credentials(SECRET)).call(o.ShowJobs())


def test_more_than_the_core_can_keep_in_mind_is_refused() -> None:
    import queue

    operations = Core().operations
    waiting: list[Future[o.OperationReply]] = [
        operations.ask(ANN, o.ShowJobs()) for _ in range(WAITING_MAX)
    ]
    with pytest.raises(queue.Full):
        operations.ask(ANN, o.ShowJobs())
    operations.advance(1.0)
    assert all(each.done() for each in waiting)


def test_the_command_finds_the_core_by_its_files(tmp_path: Path) -> None:
    from yarn_plugin.cluster.configuration import as_xml
    from yarn_plugin.operate.client import core_address

    token = tmp_path / "token"
    token.write_text("s3cret\n")
    token.chmod(0o600)
    keys = {"agents.port": "8123", "operations.token-file": str(token)}
    values = {f"yarn.scheduler.gandiva.{key}": value for key, value in keys.items()}
    (tmp_path / "yarn-site.xml").write_text(as_xml(values))
    assert core_address(tmp_path, None) == CoreAddress("127.0.0.1:8123", Credentials("s3cret"))
