"""The scheduler stores how far it has read its queues if something waits, and otherwise nothing."""

from dataclasses import dataclass, field, replace

import pytest

from roundsman.errors import CallRefused, TryAgain
from roundsman.model.events import Outcome
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.queue_lag import PROMPT, ReadMark
from roundsman.model.scheduler_queues import WANTED_FOR
from roundsman.ports import Clock
from roundsman.scheduler.arrived import Arrived
from roundsman.wire.commands import Command
from roundsman.wire.messages import Reply
from roundsman_testing.faults import Fault, Faults
from roundsman_testing.memory import MemoryAgentBoard
from tests.support.machine_world import plan, step
from tests.support.shell_world import ORDER_ID, Shells

TWO = plan(step("first"), step("second"))
START = Command(kind="start", task_id=ORDER_ID)
INSPECT = Command(kind="inspect", task_id=ORDER_ID)


class Board(MemoryAgentBoard):
    """A board that records each mark it is asked to store."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.noted: list[tuple[str, str, int]] = []
        self.wanted: dict[str, ReadMark] = {}
        self.problem: Exception | None = None

    def marks(self) -> dict[str, ReadMark]:
        return {**super().marks(), **self.wanted}

    def note_read(self, agent: str, priority: str, sent_at: int, lock: str | None = None) -> None:
        if self.problem is not None:
            raise self.problem
        self.noted.append((agent, priority, sent_at))


@dataclass
class World:
    """A task that was started at once, and a board."""

    shells: Shells = field(default_factory=lambda: Shells(TWO))
    board: Board = field(init=False)

    def __post_init__(self) -> None:
        self.board = self.shells.board = Board(self.shells.clock)
        self.shells.submit()
        self.command(START, waited=0)

    def command(self, command: Command, *, waited: int | None) -> None:
        sent_at = None if waited is None else self.shells.now - waited
        self.shells.scheduler().command(command, "m-start", sent_at)

    def reply(self, name: str = "first", *, waited: int | None, reply: Reply | None = None) -> None:
        sent_at = None if waited is None else self.shells.now - waited
        reply = reply or self.shells.reply_to(name)
        self.shells.scheduler().reply(reply, f"m-{name}", None, sent_at)


def test_a_healthy_order_stores_no_mark() -> None:
    world = World()
    world.reply("first", waited=200)
    world.reply("second", waited=PROMPT)
    assert world.shells.task().ended
    assert world.board.noted == []


def test_a_start_that_waited_is_a_mark_of_the_schedulers_queue() -> None:
    world = World()
    world.command(START, waited=PROMPT)
    assert world.board.noted == []
    world.command(START, waited=PROMPT + 1)
    assert world.board.noted == [("scheduler", "commands", world.shells.now - PROMPT - 1)]


def test_an_inspect_is_never_a_mark_since_it_is_delayed_on_purpose() -> None:
    world = World()
    world.command(INSPECT, waited=15 * MINUTE)
    assert world.board.noted == []


@pytest.mark.parametrize("waited", [None, 0])
def test_a_message_whose_time_is_not_known_is_no_mark(waited: int | None) -> None:
    world = World()
    world.shells.wait(60)
    world.command(START, waited=waited)
    world.reply(waited=waited)
    assert world.board.noted == []


def test_a_reply_that_waited_is_a_mark_of_its_agents_reply_queue() -> None:
    world = World()
    world.reply(waited=40 * SECOND)
    assert world.board.noted == [("worker", "replies", world.shells.now - 40 * SECOND)]


def test_while_a_mark_is_wanted_every_reply_of_that_agent_is_one() -> None:
    world = World()
    now = world.shells.now
    world.board.wanted = {"other/wanted": ReadMark(now, now)}
    world.reply("first", waited=0)
    assert world.board.noted == []
    world.board.wanted = {"worker/wanted": ReadMark(now, now)}
    world.reply("second", waited=0)
    assert world.board.noted == [("worker", "replies", now)]
    world.command(START, waited=0)
    assert len(world.board.noted) == 1, "nobody wants one of the SchedulerQueue"


def test_a_wish_that_is_old_is_none() -> None:
    world = World()
    now = world.shells.now
    world.board.wanted = {"worker/wanted": ReadMark(now - WANTED_FOR - 1, now - WANTED_FOR - 1)}
    world.reply(waited=0)
    assert world.board.noted == []


def test_a_reply_that_could_not_be_handled_is_no_mark() -> None:
    world = World()
    reply, faults = world.shells.reply_to("first"), Faults().on("save", Fault.NOT_DONE)
    with pytest.raises(TryAgain):
        world.shells.scheduler(faults).reply(reply, "m", None, world.shells.now - MINUTE)
    assert world.board.noted == []


def test_a_start_that_could_not_be_handled_is_no_mark() -> None:
    world = World()
    world.shells.submit("ord-2")
    command = Command(kind="start", task_id="ord-2")
    faults = Faults().on("save", Fault.NOT_DONE)
    with pytest.raises(TryAgain):
        world.shells.scheduler(faults).command(command, "m", world.shells.now - MINUTE)
    assert world.board.noted == []


def test_a_reply_of_an_agent_that_the_plan_does_not_name_is_no_mark() -> None:
    """Whoever may send to one queue cannot make the timeouts of another count."""
    world = World()
    reply = world.shells.reply_to("first")
    world.reply(waited=MINUTE, reply=replace(reply, agent="stranger"))
    assert world.board.noted == []


def test_a_reply_to_a_task_that_is_gone_is_no_mark() -> None:
    world = World()
    reply = world.shells.reply_to("first")
    world.reply(waited=MINUTE, reply=replace(reply, task_id="ord-gone"))
    assert world.board.noted == []


def test_each_reply_of_a_batch_is_a_mark_but_not_one_that_failed() -> None:
    world = World()
    sent = [world.shells.now - n * MINUTE for n in (1, 2)]
    good, other = world.shells.reply_to("first"), world.shells.reply_to("second")
    arrived = [
        Arrived(good, "m-1", None, sent[0]),
        Arrived(other, "m-2", None, sent[1]),
    ]
    world.shells.scheduler().handle(arrived)
    assert world.board.noted == [("worker", "replies", at) for at in sent]
    world = World()
    faults = Faults().on("save", Fault.NOT_DONE)
    results = world.shells.scheduler(faults).handle(arrived)
    assert all(isinstance(result, Exception) for result in results)
    assert world.board.noted == []


@pytest.mark.parametrize("problem", [TryAgain("throttled"), CallRefused("no right to update")])
def test_a_mark_that_cannot_be_stored_fails_no_message(problem: Exception) -> None:
    world = World()
    world.board.problem = problem
    world.command(START, waited=MINUTE)
    world.reply(waited=MINUTE)
    assert world.shells.task().step("first").result == {"done": "first"}


def test_a_message_that_waited_gives_its_task_the_time() -> None:
    world = World()
    by = world.shells.task().complete_by
    world.shells.wait(20)
    world.reply(waited=15 * SECOND)
    assert world.shells.task().complete_by == by + 15 * SECOND
    batch = World()
    batch.shells.wait(20)
    replies = [batch.shells.reply_to(name, Outcome.SUCCEEDED) for name in ("first", "second")]
    sent_at = batch.shells.now - 15 * SECOND
    arrived = [Arrived(reply, f"m-{reply.step}", None, sent_at) for reply in replies]
    batch.shells.scheduler().handle(arrived)
    assert batch.shells.task().complete_by == by + 15 * SECOND, "once"


def test_an_inspect_that_is_sent_early_gives_its_task_no_time() -> None:
    world = World()
    world.shells.wait(31)
    by = world.shells.task().complete_by
    world.command(INSPECT, waited=15 * MINUTE)
    assert world.shells.requested()[2:] == ["first", "second"], "they are claimed again"
    assert world.shells.task().complete_by == by
