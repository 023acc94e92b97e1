"""An order is erased in its three tables, whatever fails on the way and how often it comes."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive
from roundsman.engine.history import ROWS_A_VERSION
from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import InvalidMessage, TryAgain
from roundsman.model.corrections import Change
from roundsman.model.events import (
    Cancel,
    CommandSource,
    Erase,
    OperatorEvent,
    Outcome,
    Resubmit,
    UndoAsked,
    UndoPart,
)
from roundsman.model.instants import DAY, milliseconds
from roundsman.model.masked_values import leaves
from roundsman.model.states import TaskState
from roundsman.model.task import ERASED, StepError
from roundsman.scheduler.erasure import erase_beside
from roundsman.wire.commands import command_of
from roundsman_testing.faults import ABLE, CALLS, Crash, Fault, Faults
from roundsman_testing.memory import MemoryPayloads
from roundsman_testing.world.crashes import PASSING
from tests.support.machine_world import REPLY_TO, plan, step
from tests.support.shell_world import ORDER, ORDER_ID, Shells

SECRET = "A. Reader"
ASKED = CommandSource("c-1", "ann", "request 17")
ERASURE = command_of(ORDER_ID, Erase(ASKED))
KEPT = ProcessingOptions(reply_to=REPLY_TO, retain_for=milliseconds(timedelta(days=7)))


def cancelled(when: str | None = None) -> Shells:
    """The order was refused with a message that quotes it, and a person has cancelled it."""
    refused = step("charge", on_failure=Archive(), when=when)
    shells = Shells(plan(refused), KEPT)
    shells.submit()
    shells.start()
    refuse(shells)
    asked = CommandSource("c-0", "ann", f"{SECRET} called")
    reason_of(shells, Cancel(asked, undo=False))
    assert SECRET in repr(shells.store.history(ORDER_ID))
    assert SECRET in repr(shells.task())
    return shells


def refuse(shells: Shells) -> None:
    """The agent refuses the step, with a message that quotes the order."""
    reply = shells.reply_to("charge", Outcome.PERMANENT)
    error = StepError("CardDeclined", f"declined for {SECRET}")
    shells.scheduler().reply(replace(reply, error=error), "m-refused")


def reason_of(shells: Shells, event: OperatorEvent, message: str = "m-other") -> str:
    return shells.scheduler().command(command_of(ORDER_ID, event), message).reason


def removed() -> Shells:
    """As `cancelled`, after the task's retention: DynamoDB has removed its record."""
    shells = cancelled()
    shells.wait(30 * 86_400)
    shells.store.remove_task(ORDER_ID)
    return shells


def check_erased(shells: Shells) -> None:
    """Nothing of the contents is left, and all that says what happened is."""
    row, rows = shells.store.order(ORDER_ID), shells.store.history(ORDER_ID)
    assert row is not None
    assert row.content is None
    assert row.erased_at is not None
    assert row.content_hash
    tasks = shells.store.tasks()
    assert SECRET not in repr((tasks, row, rows))
    assert [one.kind for one in rows] == ["failed", "cancel", "erase"]
    assert [one.reason for one in rows[:2]] == [ERASED, ERASED]
    assert rows[2].reason.startswith("erase by ann: request 17")
    assert (rows[1].by, rows[1].command_id) == ("ann", "c-0")
    assert all(task.erased_at is not None for task in tasks)


def test_the_task_the_order_and_the_reasons_of_the_history_are_erased() -> None:
    shells = cancelled()
    before = shells.task()
    assert shells.scheduler().command(ERASURE, "m-1").reason == "erase by ann: request 17"
    check_erased(shells)
    assert shells.task().erased_at == shells.now
    assert shells.task().failure == before.failure


def test_the_hash_stays_and_a_duplicate_of_the_event_is_recognized() -> None:
    shells = cancelled()
    shells.scheduler().command(ERASURE, "m-1")
    shells.outbox.sent.clear()
    again = shells.submit()
    assert not again.created
    assert shells.requests() == []
    check_erased(shells)


def test_the_decision_is_stored_before_anything_is_erased_beside_it() -> None:
    shells, faults = cancelled(), Faults()
    shells.scheduler(faults).command(ERASURE, "m-1")
    writes = [name for name in faults.calls if name in ("save", "erase_order", "erase_history")]
    assert writes == ["save", "erase_order", "erase_history"]


OF_OTHER_CALLS = {Fault.SWALLOWED, Fault.STALE, Fault.LAGGING}
"""The faults of calls that an erasure does not make."""


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        *((cancelled, fault) for fault in sorted(PASSING - OF_OTHER_CALLS)),
        # Of an order without a task, no write is conditional.
        *((removed, f) for f in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.UNKNOWN)),
    ],
)
def test_whatever_call_fails_nothing_is_left_after_the_command_came_again(
    make: Callable[[], Shells], fault: Fault
) -> None:
    plain = Faults()
    make().scheduler(plain).command(ERASURE, "m-1")
    able = ABLE.get(fault, CALLS)
    hit = [number for number, name in enumerate(plain.calls, 1) if name in able]
    assert hit
    for number in hit:
        shells, faults = make(), Faults().at(number, fault)
        try:
            shells.scheduler(faults).command(ERASURE, "m-1")
        except (Crash, TryAgain):
            shells.wait(60).scheduler(instance="another").command(ERASURE, "m-1")
        assert faults.happened
        check_erased(shells)


def test_nothing_beside_a_task_that_is_not_erased_is_touched() -> None:
    shells = cancelled()
    before = shells.store.order(ORDER_ID), shells.store.history(ORDER_ID)
    payloads = MemoryPayloads()
    payloads.objects[f"{ORDER_ID}/{'0' * 64}"] = b"a page"
    erase_beside(shells.task(), shells.store, payloads)
    assert payloads.objects
    assert before == (shells.store.order(ORDER_ID), shells.store.history(ORDER_ID))


def test_a_redelivery_after_all_is_done_changes_nothing() -> None:
    shells = cancelled()
    shells.scheduler().command(ERASURE, "m-1")
    before = shells.task(), shells.store.order(ORDER_ID), shells.store.history(ORDER_ID)
    shells.wait(60).scheduler().command(ERASURE, "m-1")
    assert before == (shells.task(), shells.store.order(ORDER_ID), shells.store.history(ORDER_ID))


def test_another_command_erases_what_an_older_one_could_not() -> None:
    """The first one became a dead letter after its decision."""
    shells = cancelled()
    with pytest.raises(TryAgain):
        shells.scheduler(Faults().on("erase_order", Fault.NOT_DONE)).command(ERASURE, "m-1")
    reason = reason_of(shells, Erase(CommandSource("c-2", "bob")), "m-2")
    assert "it was already erased on" in reason
    assert [one.kind for one in shells.store.history(ORDER_ID)][-2:] == ["erase", "erase"]
    row = shells.store.order(ORDER_ID)
    assert row is not None
    assert row.content is None
    assert SECRET not in repr(shells.store.history(ORDER_ID))


def test_a_record_that_has_expired_and_is_not_removed_yet_is_erased_too() -> None:
    shells = cancelled()
    shells.wait(30 * 86_400)
    assert shells.store.load(ORDER_ID, shells.now) is None
    shells.scheduler().command(ERASURE, "m-1")
    check_erased(shells)
    (task,) = shells.store.tasks()
    assert task.expires_at is not None
    assert task.expires_at < shells.now, "it stays expired"


def test_after_the_record_is_removed_the_order_and_the_history_are_erased() -> None:
    shells = removed()
    reason = shells.scheduler().command(ERASURE, "m-1").reason
    assert reason == "erase by ann: request 17; its task's retention is over"
    check_erased(shells)
    row = shells.store.history(ORDER_ID)[-1]
    assert (row.at, row.by, row.command_id) == (shells.now, "ann", "c-1")
    versions = [one.seq // ROWS_A_VERSION for one in shells.store.history(ORDER_ID)]
    assert versions[-1] == versions[-2] + 1, "of the next version, so it comes after all others"
    more = reason_of(shells, Erase(CommandSource("c-2", "bob", "again")), "m-2")
    assert more.startswith("erase by bob: (masked); its task's retention is over; it was already")
    assert [one.command_id for one in shells.store.history(ORDER_ID)][-2:] == ["c-1", "c-2"]


def test_without_a_task_no_value_of_the_order_is_in_the_reason() -> None:
    """Nobody knows the plan any more, and so which fields are masked."""
    shells = removed()
    row = shells.store.order(ORDER_ID)
    assert row is not None
    quoted = max((str(value) for _, value in leaves(row.content)), key=len)
    asked = Erase(CommandSource("c-1", "ann", f"the request about {quoted}"))
    assert reason_of(shells, asked, "m-1").startswith("erase by ann: the request about (masked); ")


def test_a_redelivery_after_the_record_is_removed_adds_no_row() -> None:
    shells = removed()
    shells.scheduler().command(ERASURE, "m-1")
    before = shells.store.history(ORDER_ID)
    shells.wait(60).scheduler().command(ERASURE, "m-1")
    assert shells.store.history(ORDER_ID) == before


def test_a_command_that_was_refused_and_comes_again_after_the_end_says_that_it_erases() -> None:
    shells = Shells(plan(step("charge")))  # its retention is zero
    shells.submit()
    shells.start()
    assert "refused" in shells.scheduler().command(ERASURE, "m-1").reason
    shells.reply("charge", Outcome.SUCCEEDED)
    shells.scheduler().command(ERASURE, "m-1")
    assert [one.kind for one in shells.store.history(ORDER_ID)] == ["refused", "erase"]


def test_a_history_without_an_order_is_erased() -> None:
    shells = removed()
    shells.store.remove_order(ORDER_ID)
    shells.scheduler().command(ERASURE, "m-1")
    assert SECRET not in repr(shells.store.history(ORDER_ID))


def test_an_order_without_a_history_is_erased() -> None:
    shells = Shells(plan(step("charge")))  # its retention is zero
    shells.submit()
    shells.start()
    shells.reply("charge", Outcome.SUCCEEDED)
    assert shells.store.tasks() == []
    shells.scheduler().command(ERASURE, "m-1")
    row = shells.store.order(ORDER_ID)
    assert row is not None
    assert row.content is None
    assert [one.kind for one in shells.store.history(ORDER_ID)] == ["erase"]


def test_an_order_that_never_was_is_a_rejected_message() -> None:
    shells = Shells(plan(step("charge")))
    with pytest.raises(InvalidMessage, match="no such task"):
        shells.scheduler().command(ERASURE, "m-1")
    assert shells.store.history(ORDER_ID) == []


def test_another_order_under_the_same_id_is_not_erased() -> None:
    """The record expired, the order row was removed, and the id was used again meanwhile."""
    shells = cancelled()
    task = shells.task()
    shells.store.erase_order(ORDER_ID, created_at=task.created_at + DAY, erased_at=shells.now)
    row = shells.store.order(ORDER_ID)
    assert row is not None
    assert row.content == ORDER


def test_an_erasure_needs_no_order_row_and_reads_none() -> None:
    """Conditions of a plan are read from the order: an erasure evaluates none."""
    shells = cancelled(when="input.total")
    shells.store.remove_order(ORDER_ID)
    shells.scheduler().command(ERASURE, "m-1")
    assert shells.task().erased_at is not None
    shells.start()
    shells.reply("charge", Outcome.SUCCEEDED)
    assert SECRET not in repr(shells.store.history(ORDER_ID))


@pytest.mark.parametrize("state", [TaskState.ACTIVE, TaskState.ARCHIVED])
def test_a_task_that_needs_its_contents_keeps_them_all(state: TaskState) -> None:
    shells = Shells(plan(step("charge", on_failure=Archive())), KEPT)
    shells.submit()
    shells.start()
    if state is TaskState.ARCHIVED:
        refuse(shells)
    task, rows = shells.task(), shells.store.history(ORDER_ID)
    assert task.state is state
    reason = shells.scheduler().command(ERASURE, "m-1").reason
    assert reason.startswith("erase by ann refused: the task ")
    assert shells.task() == task
    assert [*shells.store.history(ORDER_ID)][: len(rows)] == rows
    row = shells.store.order(ORDER_ID)
    assert row is not None
    assert row.content == ORDER


@pytest.mark.parametrize(
    "event",
    [
        Resubmit(CommandSource("c-9", "ann", "x"), again=True),
        Resubmit(CommandSource("c-9", "ann", "x"), changes=(Change(("total",), "1.00"),)),
        UndoAsked(CommandSource("c-9", "ann", "x")),
        UndoPart(CommandSource("c-9", "ann", "x"), ("reserve",)),
        Cancel(CommandSource("c-9", "ann", "x")),
    ],
)
def test_what_is_asked_of_an_erased_order_is_refused_in_a_sentence(event: OperatorEvent) -> None:
    shells = cancelled()
    shells.scheduler().command(ERASURE, "m-1")
    before = shells.task()
    reason = reason_of(shells, event)
    assert reason.endswith(
        "by ann refused: the contents of the order were erased, so the task cannot be changed "
        "any more"
    )
    assert shells.task() == before
    assert shells.store.history(ORDER_ID)[-1].kind == "refused"
