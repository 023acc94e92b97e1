"""Two schedulers on one task, interleaved at every call that either of them makes."""

from collections.abc import Callable, Iterator, Sequence
from threading import Condition, Thread

import pytest

from roundsman.definition.plan import Plan
from roundsman.model.events import Outcome
from roundsman.model.states import ProcessState
from roundsman.scheduler.arrived import Arrived
from roundsman.wire.commands import Command
from roundsman.wire.messages import Reply
from roundsman_testing.faults import Faults
from tests.support.machine_world import plan, step
from tests.support.shell_world import ORDER_ID, Shells
from tests.support.steps import stored_step

first = step("first")
second = step("second", first)
LINE = plan(first, second)
WIDE = tuple(step(name) for name in "abc")
SIDE_BY_SIDE = plan(*WIDE, *(step(f"then_{one.name}", one) for one in WIDE))
START = Command(kind="start", task_id=ORDER_ID)
INSPECT = Command(kind="inspect", task_id=ORDER_ID)

CALLS_AT_MOST = 9
"""More than a handler of these stories makes, so that each runs to its end in some order."""

Act = Callable[[Faults], object]


class Turns:
    """Lets two threads make their calls one at a time, in the order that is given.

    A thread keeps its turn until it arrives at its next call; when the order is used up, the
    first that has not ended goes on.
    """

    def __init__(self, order: Sequence[int]) -> None:
        self._order = list(order)
        self._changed = Condition()
        self._running = {0, 1}
        self._ended: set[int] = set()

    def at_call(self, who: int) -> None:
        with self._changed:
            self._running.discard(who)
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: self._next() == who, timeout=30):
                raise TimeoutError(f"{who} never had its turn")
            if self._order:
                self._order.pop(0)
            self._running.add(who)

    def ended(self, who: int) -> None:
        with self._changed:
            self._running.discard(who)
            self._ended.add(who)
            self._changed.notify_all()

    def _next(self) -> int | None:
        if self._running:
            return None
        while self._order and self._order[0] in self._ended:
            self._order.pop(0)
        if self._order:
            return self._order[0]
        return min({0, 1} - self._ended)


def interleaved(order: Sequence[int], acts: tuple[Act, Act]) -> None:
    """Run both; raises what either of them raised."""
    turns = Turns(order)
    raised: list[BaseException] = []

    def run(who: int) -> None:
        faults = Faults().before_each(lambda _: turns.at_call(who))
        try:
            acts[who](faults)
        except BaseException as problem:  # noqa: BLE001 - given to the test's own thread
            raised.append(problem)
        finally:
            turns.ended(who)

    threads = [Thread(target=run, args=(who,)) for who in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def orders() -> Iterator[list[int]]:
    """One makes i calls, the other j, then each goes to its end; both ways round."""
    for who in (0, 1):
        for i in range(CALLS_AT_MOST):
            for j in range(CALLS_AT_MOST):
                yield [who] * i + [1 - who] * j + [who] * 20


def alternating() -> list[int]:
    return [0, 1] * 20


ORDERS = [*orders(), alternating()]


def submitted(made: Plan) -> Shells:
    shells = Shells(made)
    shells.submit()
    shells.outbox.sent.clear()
    return shells


def command(shells: Shells, what: Command, message: str, instance: str) -> Act:
    return lambda faults: shells.scheduler(faults, instance=instance).command(what, message)


def replying(shells: Shells, reply: Reply, message: str) -> Act:
    return lambda faults: shells.scheduler(faults, instance="s1").reply(reply, message)


@pytest.mark.verify
def test_two_messages_for_one_task_make_one_claim_and_one_request() -> None:
    for order in ORDERS:
        shells = submitted(LINE)
        interleaved(
            order, (command(shells, START, "m-1", "s1"), command(shells, START, "m-2", "s2"))
        )
        assert shells.requests() == [("first", shells.task().step("first").locked_by)], order
        assert shells.task().version == 2, "one decision"


@pytest.mark.verify
def test_one_message_delivered_twice_at_once_makes_one_claim_and_sends_no_other_request() -> None:
    """The second copy cannot know whether the first one lives, so it may repeat the request."""
    for order in ORDERS:
        shells = submitted(LINE)
        interleaved(
            order, (command(shells, START, "m-1", "s1"), command(shells, START, "m-1", "s2"))
        )
        assert shells.task().version == 2, "one decision"
        sent = shells.requests()
        assert set(sent) == {("first", shells.task().step("first").locked_by)}, order
        assert len(sent) <= 2


@pytest.mark.verify
def test_two_inspections_of_an_overdue_step_count_one_failure_and_send_one_request() -> None:
    for order in ORDERS:
        shells = submitted(LINE)
        shells.start()
        shells.wait(31)
        shells.outbox.sent.clear()
        interleaved(
            order, (command(shells, INSPECT, "m-1", "s1"), command(shells, INSPECT, "m-2", "s2"))
        )
        record = shells.task().step("first")
        assert record.failure_count == 1
        assert shells.requests() == [("first", record.locked_by)], order


@pytest.mark.verify
def test_an_inspection_beside_the_reply_never_undoes_it_nor_doubles_what_follows() -> None:
    for order in ORDERS:
        shells = submitted(LINE)
        shells.start()
        shells.wait(31)
        reply = shells.reply_to("first")
        acts: tuple[Act, Act] = (
            replying(shells, reply, "m-1"),
            command(shells, INSPECT, "m-2", "s2"),
        )
        interleaved(order, acts)
        task = shells.task()
        assert task.step("first").process_state is ProcessState.PROCESSED
        assert shells.requested().count("second") == 1
        assert ("second", task.step("second").locked_by) in shells.requests()


@pytest.mark.verify
def test_a_supervisor_beside_a_scheduler_leaves_no_open_task_without_an_early_due_entry() -> None:
    for order in ORDERS:
        shells = submitted(LINE)
        shells.start()
        shells.wait(31)
        reply = shells.reply_to("first")
        acts: tuple[Act, Act] = (
            replying(shells, reply, "m-1"),
            shells.make_pass,
        )
        interleaved(order, acts)
        assert shells.unwatched == [], order
        assert shells.task().step("first").process_state is ProcessState.PROCESSED
        entry = shells.open_entry()
        complete_by = stored_step(shells.task().step("second")).complete_by
        assert entry is not None
        assert complete_by is not None
        assert entry <= complete_by


@pytest.mark.verify
def test_two_supervisors_requeue_once() -> None:
    for order in ORDERS:
        shells = submitted(LINE)
        shells.start()
        shells.wait(31)
        acts: tuple[Act, Act] = (
            shells.make_pass,
            shells.make_pass,
        )
        interleaved(order, acts)
        assert shells.task().step("first").failure_count == 1
        assert shells.unwatched == [], order


@pytest.mark.parametrize("end", [Outcome.SUCCEEDED, Outcome.PERMANENT])
def test_what_another_handler_has_sent_but_not_yet_cleared_is_not_sent_twice(end: Outcome) -> None:
    """Scheduler 1 is between sending `started` and clearing it; 2 takes the agent's reply."""
    shells = submitted(plan(first))
    last = "completed" if end is Outcome.SUCCEEDED else "failed"
    before_clearing = ["load", "plan", "save", "order", "send_requests", "send_status"]

    def wait_then_reply(faults: Faults) -> object:
        faults.around("wait", lambda: None)
        made = shells.reply_to("first", end)
        return shells.scheduler(faults, instance="s2").reply(made, "m-2")

    order = [0] * len(before_clearing) + [1] * 20
    interleaved(order, (command(shells, START, "m-1", "s1"), wait_then_reply))
    assert shells.statuses() == ["started", last]
    assert shells.open_entry() is None
    assert shells.task().owed == ()


@pytest.mark.verify
@pytest.mark.parametrize("end", [Outcome.SUCCEEDED, Outcome.PERMANENT])
def test_every_status_arrives_whoever_is_quicker_with_sending_and_clearing(end: Outcome) -> None:
    """Two that clear at one instant may undo each other's clearing: it is sent again, not lost."""
    last = "completed" if end is Outcome.SUCCEEDED else "failed"
    for taken in range(CALLS_AT_MOST):
        for later in range(CALLS_AT_MOST):
            shells = submitted(plan(first))

            def wait_then_reply(faults: Faults, shells: Shells = shells) -> object:
                faults.around("wait", lambda: None)
                made = shells.reply_to("first", end)
                return shells.scheduler(faults, instance="s2").reply(made, "m-2")

            order = [0] * 5 + [1] * (1 + taken) + [0] * later + [1] * 20
            interleaved(order, (command(shells, START, "m-1", "s1"), wait_then_reply))
            assert shells.unwatched == []
            shells.wait(31).make_pass()
            assert set(shells.statuses()) == {"started", last}
            assert len(shells.statuses()) <= 3, (taken, later)
            assert shells.open_entry() is None, (taken, later)
            seqs = {body["status"]: body["seq"] for body in shells.status_bodies()}
            assert seqs == {"started": 2, last: 3}


def together(shells: Shells, *steps: str) -> Act:
    arrived = [Arrived(shells.reply_to(name), f"m-{name}") for name in steps]
    return lambda faults: shells.scheduler(faults, instance="s1").handle(arrived)


@pytest.mark.verify
def test_replies_that_are_handled_together_beside_another_lose_none_and_claim_nothing_twice() -> (
    None
):
    for order in ORDERS:
        shells = submitted(SIDE_BY_SIDE)
        shells.start()
        shells.outbox.sent.clear()
        other = shells.reply_to("c")
        interleaved(order, (together(shells, "a", "b"), replying(shells, other, "m-c")))
        task = shells.task()
        assert shells.unwatched == [], order
        assert {task.step(name).process_state for name in "abc"} == {ProcessState.PROCESSED}
        assert {name for name, _ in shells.requests()} == {"then_a", "then_b", "then_c"}
        for name, lock in shells.requests():
            assert lock == task.step(name).locked_by, order


@pytest.mark.verify
def test_the_same_replies_together_at_two_schedulers_at_once_are_handled_once() -> None:
    for order in ORDERS:
        shells = submitted(SIDE_BY_SIDE)
        shells.start()
        version = shells.task().version
        shells.outbox.sent.clear()
        interleaved(order, (together(shells, "a", "b"), together(shells, "a", "b")))
        task = shells.task()
        assert task.version == version + 2, order
        assert set(shells.requests()) == {
            (name, task.step(name).locked_by) for name in ("then_a", "then_b")
        }


@pytest.mark.verify
def test_replies_that_are_handled_together_beside_an_inspection_are_not_overdue() -> None:
    for order in ORDERS:
        shells = submitted(SIDE_BY_SIDE)
        shells.start()
        shells.wait(31)
        acts = (together(shells, "a", "b"), command(shells, INSPECT, "m-2", "s2"))
        interleaved(order, acts)
        task = shells.task()
        assert {task.step(name).process_state for name in "ab"} == {ProcessState.PROCESSED}
        assert shells.unwatched == [], order
        for name in ("then_a", "then_b"):
            assert (name, task.step(name).locked_by) in shells.requests()
