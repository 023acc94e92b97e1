"""Replies of one task that are handled together: one write, and what each of them caused."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.plan import Plan
from roundsman.definition.workflow import Retry, Signal
from roundsman.engine.history import ROWS_A_DECISION
from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import TryAgain, UnreadableRecord
from roundsman.model.events import CommandSource, Move, Outcome, Signalled
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError
from roundsman.scheduler.arrived import Arrived
from roundsman.scheduler.scheduler import MAX_WRITE_ATTEMPTS, Handled
from roundsman.wire.commands import INSPECT, START, Command, command_of
from roundsman_testing import Fault, Faults
from roundsman_testing.faults import Crash
from roundsman_testing.recording import RecordingOutbox
from tests.support.machine_world import plan, step
from tests.support.one_by_one import OneByOne
from tests.support.shell_world import ORDER_ID, Shells

WIDTH = 5
SHORT = Retry(max_attempts=2, first_delay=timedelta(seconds=1), max_delay=timedelta(seconds=1))


def wide(width: int = WIDTH, retry: Retry = SHORT) -> Plan:
    """Steps side by side, each with another one after it."""
    first = [step(f"a{n}", retry=retry) for n in range(width)]
    return plan(*first, *(step(f"b{n}", before) for n, before in enumerate(first)))


def started(made: Plan | None = None, outbox: RecordingOutbox | None = None) -> Shells:
    shells = Shells(made or wide(), options=ProcessingOptions())
    if outbox is not None:
        shells.outbox = outbox
    shells.submit()
    shells.start()
    return shells


def arrived(
    shells: Shells, names: Sequence[str], outcome: Outcome = Outcome.SUCCEEDED
) -> list[Arrived]:
    """The answers to the current claims of these steps."""
    return [Arrived(shells.reply_to(name, outcome), f"m-{name}") for name in names]


def firsts(shells: Shells, width: int = WIDTH) -> list[Arrived]:
    return arrived(shells, [f"a{n}" for n in range(width)])


def again(scheduler: OneByOne, one: Arrived) -> None:
    """Deliver a message alone."""
    [result] = scheduler.handle([one])
    if isinstance(result, Exception):
        raise result


def handled(results: Sequence[Handled | Exception]) -> Iterator[Handled]:
    for result in results:
        assert isinstance(result, Handled)
        yield result


def test_the_replies_of_a_task_are_one_write_and_each_has_a_version_of_its_own() -> None:
    shells, faults = started(), Faults()
    version = shells.task().version
    results = list(handled(shells.scheduler(faults).handle(firsts(shells))))
    assert faults.calls.count("save") == 1
    assert faults.calls.count("load") == 0
    assert shells.task().version == version + WIDTH
    assert shells.requested()[WIDTH:] == [f"b{n}" for n in range(WIDTH)]
    versions = [
        (one.before and one.before.version, one.task and one.task.version) for one in results
    ]
    assert versions == [(version + n, version + n + 1) for n in range(WIDTH)]
    assert [[r.step for r in one.requests] for one in results] == [[f"b{n}"] for n in range(WIDTH)]
    assert [one.reason for one in results] == [
        f"a{n}: processed; b{n}: attempt 1 of 3 claimed" for n in range(WIDTH)
    ]


@pytest.mark.parametrize("signal_first", [False, True])
def test_of_a_signal_and_the_end_of_its_time_in_one_batch_the_signal_counts(
    signal_first: bool,
) -> None:
    paid = Signal("paid", within=timedelta(minutes=5), otherwise=0)
    shells, faults = started(plan(paid, step("b", paid))), Faults()
    shells.wait(300)
    sent = Signalled(CommandSource("pay-7", "application"), "paid", 7)
    signal = Arrived(command_of(ORDER_ID, sent), "m-signal")
    others = [
        Arrived(Command(INSPECT, ORDER_ID), "m-inspect"),
        Arrived(Command(START, ORDER_ID), "m-start"),
    ]
    batch = [signal, *others] if signal_first else [*others, signal]
    results = list(handled(shells.scheduler(faults).handle(batch)))
    assert "its signal has come" in results[batch.index(signal)].reason, "each has its own result"
    assert shells.task().step("paid").result == 7
    assert not shells.task().step("paid").unanswered


def test_no_replies_are_no_calls() -> None:
    shells, faults = started(), Faults()
    assert shells.scheduler(faults).handle([]) == []
    assert faults.calls == []


def test_one_reply_is_handled_like_any() -> None:
    shells, faults = started(), Faults()
    [result] = shells.scheduler(faults).handle(firsts(shells, 1))
    assert isinstance(result, Handled)
    assert faults.calls == ["load_eventually", "plan", "save", "order", "send_requests"]


def test_that_a_stale_read_shows_nothing_to_change_is_not_believed() -> None:
    """Before its last write the steps were not claimed: there, the failures are of no attempt."""
    shells, faults = started(), Faults().on("load_eventually", Fault.STALE)
    shells.scheduler().handle(firsts(shells))
    shells.scheduler(faults).handle(arrived(shells, ["b0", "b1"], Outcome.TRANSIENT))
    assert [name for name in faults.calls if name in ("load_eventually", "load", "save")] == [
        *("load_eventually", "load", "save")
    ]
    assert [shells.task().step(name).failure_count for name in ("b0", "b1")] == [1, 1]


def test_a_write_on_a_stale_record_loses_and_all_are_decided_anew() -> None:
    shells, faults = started(), Faults().on("load_eventually", Fault.STALE)
    replies = firsts(shells)
    shells.reply("a4", message="m-a4")
    results = shells.scheduler(faults).handle(replies)
    assert faults.calls.count("save") == 2
    assert faults.calls.count("load") == 1
    assert all(isinstance(result, Handled) for result in results)
    assert sorted(shells.requested()[WIDTH:]) == ["b0", "b1", "b2", "b3", "b4", "b4"]
    assert len(set(shells.requests()[WIDTH:])) == WIDTH, "the request of one is sent again"


def test_where_the_answer_to_the_write_is_lost_each_reply_sends_its_own_requests() -> None:
    shells, faults = started(), Faults().on("save", Fault.ANSWER_LOST, nth=1)
    shells.scheduler(faults).handle(firsts(shells))
    assert faults.calls.count("save") == 1, "all is stored, and nothing is to change"
    assert shells.requested()[WIDTH:] == [f"b{n}" for n in range(WIDTH)]


@pytest.mark.parametrize("fault", [Fault.NOT_DONE, Fault.UNKNOWN])
def test_where_the_write_fails_all_of_them_come_again(fault: Fault) -> None:
    shells, faults = started(), Faults().on("save", fault)
    replies = firsts(shells)
    results = shells.scheduler(faults).handle(replies)
    assert all(isinstance(result, TryAgain) for result in results)
    assert len(results) == WIDTH
    assert len(shells.requested()) == WIDTH
    for each in replies:
        again(shells.scheduler(), each)
    assert shells.requested()[WIDTH:] == [f"b{n}" for n in range(WIDTH)]


def test_who_always_comes_second_leaves_the_replies_in_their_queue() -> None:
    shells, faults = started(), Faults()
    replies = firsts(shells, 3)

    def write_first(name: str) -> None:
        if name == "save":
            task = shells.task()
            shells.store.save(replace(task, version=task.version + 1), seen=task.version)

    faults.before_each(write_first)
    results = shells.scheduler(faults).handle(replies)
    assert faults.calls.count("save") == MAX_WRITE_ATTEMPTS
    assert [str(result) for result in results] == [
        f"{ORDER_ID}: another write came first {MAX_WRITE_ATTEMPTS} times"
    ] * 3


def test_a_reply_that_changes_what_another_has_claimed_has_a_write_of_its_own() -> None:
    """The request was decided to be sent, and it is, although its answer is there already."""
    shells, faults = started(wide(2)), Faults()
    late = shells.reply_to("a0")
    shells.reply("a0", Outcome.TRANSIENT)
    shells.wait(2)
    replies = [*arrived(shells, ["a1"]), Arrived(late, "m-late")]
    shells.scheduler(faults).handle(replies)
    assert faults.calls.count("save") == 2
    assert shells.requested()[2:] == ["a0", "b1", "b0"]
    assert shells.task().step("a0").process_state is ProcessState.PROCESSED


def test_a_reply_that_ends_the_task_is_the_last_one_of_its_write() -> None:
    shells = Shells(plan(step("a0"), step("a1")))  # the record is removed at once
    shells.submit()
    shells.start()
    faults = Faults()
    again = firsts(shells, 1)[0]
    results = list(handled(shells.scheduler(faults).handle([*firsts(shells, 2), again])))
    assert faults.calls.count("save") == 1
    assert shells.statuses() == ["received", "started", "completed"]
    assert [one.task is not None and one.task.ended for one in results] == [False, True, False]
    assert "no such task" in results[2].reason


def test_the_alert_of_a_reply_is_about_the_task_as_that_reply_left_it() -> None:
    patient = Retry(keep_trying_for=timedelta(minutes=20))
    shells, faults = started(wide(2, patient)), Faults()
    [odd, _] = arrived(shells, ["a0", "a1"], Outcome.TRANSIENT)
    reply = shells.reply_to("a0", Outcome.TRANSIENT)
    error = replace(reply.error or StepError("Odd", ""), unexpected=True)
    odd = replace(odd, message=replace(reply, error=error))
    late = replace(arrived(shells, ["a0"])[0], message_id="m-late")
    results = list(handled(shells.scheduler(faults).handle([odd, late])))
    assert faults.calls.count("save") == 2
    assert shells.alerts() == ["unexpected_error"]
    assert [len(one.delivered.sent) for one in results] == [1, 0]


def test_the_history_of_one_write_is_at_most_what_a_transaction_takes() -> None:
    width = ROWS_A_DECISION + 1
    first = [step(f"a{n}") for n in range(100)]
    shells, faults = started(plan(*first)), Faults()
    names = [f"a{n}" for n in range(width)]
    shells.scheduler(faults).handle(arrived(shells, names, Outcome.TRANSIENT))
    assert faults.calls.count("save") == 2
    rows = shells.store.history(ORDER_ID)
    assert [row.step for row in rows] == names
    assert len({row.seq for row in rows}) == width


def test_a_reply_that_cannot_be_decided_fails_alone() -> None:
    shells, faults = started(), Faults()
    replies = firsts(shells)
    scheduler, drawn = shells.scheduler(faults), iter([False, True, True])

    def jitter() -> float:
        if next(drawn, False):
            raise ValueError("a defect")
        return 0.5

    scheduler.jitter = jitter  # a defect that one decision meets
    results = scheduler.handle(replies)
    assert [type(result) for result in results] == [Handled, ValueError, *[Handled] * 3]
    assert faults.calls.count("save") == 2
    assert sorted(shells.requested()[WIDTH:]) == ["b0", "b2", "b3", "b4"]


def test_replies_to_a_task_that_is_gone_are_reported_as_such() -> None:
    shells = started()
    replies = firsts(shells, 3)
    shells.store.remove_task(ORDER_ID)
    results = list(handled(shells.scheduler().handle(replies)))
    assert {one.reason for one in results} == {
        "no such task: its retention is over, or it never existed"
    }


def test_replies_to_a_record_that_cannot_be_read_come_again() -> None:
    shells, faults = started(), Faults()
    problem = UnreadableRecord(ORDER_ID, "State", "is odd")
    shells.store.make_unreadable(ORDER_ID, problem)
    assert shells.scheduler(faults).handle(firsts(shells, 2)) == [problem, problem]
    assert faults.calls == ["load_eventually", "load", "load"]


def test_replies_without_a_plan_come_again() -> None:
    shells = started()
    replies = firsts(shells, 3)
    shells.plans = type(shells.plans)()
    results = shells.scheduler().handle(replies)
    assert [type(result) for result in results] == [TryAgain] * 3


def test_a_request_that_has_no_queue_fails_its_own_attempt_and_the_others_are_sent() -> None:
    once = Retry(max_attempts=1)
    firsts_ = [step(f"a{n}") for n in range(3)]
    made = plan(
        *firsts_,
        step("b0", firsts_[0], agent="removed"),
        step("b1", firsts_[1]),
        step("b2", firsts_[2], agent="removed", retry=once),
    )
    shells = started(made, RecordingOutbox(agents={"worker"}))
    results = list(handled(shells.scheduler().handle(firsts(shells, 3))))
    task = shells.task()
    assert shells.requested()[3:] == ["b1"]
    assert [task.step(f"b{n}").process_state for n in range(3)] == [
        ProcessState.PENDING,
        ProcessState.PROCESSING,
        ProcessState.ERROR,
    ]
    assert ["UnknownAgent" in one.reason for one in results] == [True, False, True]
    assert task.state is not TaskState.COMPLETED


FAULTS = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.NOT_DONE, Fault.UNKNOWN)


def all_calls() -> list[str]:
    shells, faults = started(), Faults()
    shells.scheduler(faults).handle(firsts(shells))
    return faults.calls


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("number", range(1, len(all_calls()) + 1))
def test_whatever_call_fails_the_redelivered_replies_send_every_request(
    number: int, fault: Fault
) -> None:
    shells, faults = started(), Faults().at(number, fault)
    replies = firsts(shells)
    try:
        results = shells.scheduler(faults).handle(replies)
        left = [
            each for each, one in zip(replies, results, strict=True) if isinstance(one, Exception)
        ]
    except Crash:
        left = replies
    for each in left:
        again(shells.scheduler(instance="s2"), each)
    assert set(shells.requested()[WIDTH:]) == {f"b{n}" for n in range(WIDTH)}
    locks = {name: shells.task().step(name).locked_by for name, _ in shells.requests()[WIDTH:]}
    assert dict(shells.requests()[WIDTH:]) == locks, "each request is of the claim that is stored"
    assert not shells.unwatched
    for n in range(WIDTH):
        assert shells.task().step(f"a{n}").process_state is ProcessState.PROCESSED


def test_what_follows_a_move_in_the_same_batch_is_decided_under_the_new_plan() -> None:
    a, b, x = step("a"), step("b", "a"), step("x", "a")
    shells = Shells(plan(a, b), options=ProcessingOptions())
    shells.submit()
    newer = plan(a, x)
    shells.plans.put_plan(newer)
    move = Arrived(command_of(ORDER_ID, Move(CommandSource("c-1", "ann"), newer.hash)), "m-1")
    shells.start()
    answer = Arrived(shells.reply_to("a"), "m-2")
    results = shells.scheduler().handle([move, answer])
    assert not [one for one in results if isinstance(one, Exception)]
    assert shells.requested() == ["a", "x"]
    assert shells.task().plan == newer.hash
