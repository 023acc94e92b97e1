"""What `roundsman show` prints of steps that wait, were moved or were spared, and of many items."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from rich.console import Console

from roundsman.definition.plan import plan_of
from roundsman.definition.workflow import Retry, Workflow
from roundsman.engine.agent_holds import HELD
from roundsman.model.holds import BREAKER, Hold
from roundsman.model.instants import MINUTE
from roundsman.model.situations import Asleep, AwaitsSignal, End, Ended, Parked
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import AfterUndo, Effect, StepError, StepRecord, UnreadSignal
from roundsman_console.base.result import document_of
from roundsman_console.faces.commands.show import steps_table
from roundsman_console.facts.order.documents import order_document
from roundsman_console.facts.order.order_facts import OrderFacts
from roundsman_console.facts.order.step_text import situation_words, span, step_facts, step_state
from roundsman_console.facts.order.step_waits import waits_of
from tests.console.step_samples import AT, CHARGE, HOLD, facts, task
from tests.support.steps import changed_step, step_record

PROCESSED = step_record(process_state=ProcessState.PROCESSED)
WORKING = step_record(process_state=ProcessState.PROCESSING, complete_by=AT + 1_800_000)

POLLED = step_record(
    not_before=AT + 60_000,
    complete_by=AT + 90_000,
    started_at=AT,
    polls=7,
    polled_since=AT - 720_000,
    poll_until=AT + 600_000,
)


def facts_of(record: StepRecord, holds: Sequence[Hold] = ()) -> list[str]:
    return step_facts(facts(task({"charge": record}), holds))


def table(steps: Mapping[str, StepRecord], now: int = AT) -> list[list[str]]:
    """The rows of the table as words, its headings first."""
    output = io.StringIO()
    Console(file=output, width=160).print(
        steps_table(replace(facts(task(steps), planned=False), at=now))
    )
    return [line.split() for line in output.getvalue().splitlines()]


def test_a_held_step_shows_since_when_by_whom_why_and_until_when() -> None:
    circuit = Hold("payment_backup", BREAKER, AT, AT + 30_000, "5 of 8 calls failed", "x")
    other = Hold("warehouse", BREAKER, AT, AT + 30_000, "not of this step", "x")
    assert facts_of(step_record(held_since=AT - 5_000, not_before=AT), [HOLD, circuit, other]) == [
        "charge: held since 2027-01-15T07:59:55Z: payment is held by amy: maintenance, until "
        "2027-01-15T08:10:00Z; payment_backup has an open circuit: 5 of 8 calls failed, "
        "until 2027-01-15T08:00:30Z"
    ]


def test_a_held_step_that_has_its_agent_shows_no_hold_of_another() -> None:
    record = step_record(held_since=AT - 5_000, agent="payment_backup", not_before=AT + 60_000)
    assert facts_of(record, [HOLD])[0] == (
        "charge: held since 2027-01-15T07:59:55Z; the next check is at 2027-01-15T08:01:00Z"
    )


def test_a_held_step_whose_hold_is_over_shows_why_it_was_held_and_when_it_looks_again() -> None:
    error = StepError(HELD, "on hold by amy until 2027-01-15T08:00:00Z: maintenance")
    record = step_record(held_since=AT - 5_000, not_before=AT + 60_000, error=error)
    assert facts_of(record) == [
        "charge: held since 2027-01-15T07:59:55Z (on hold by amy until 2027-01-15T08:00:00Z: "
        "maintenance); the next check is at 2027-01-15T08:01:00Z"
    ]


def test_that_a_step_is_held_is_no_error_of_its_row() -> None:
    error = StepError(HELD, "on hold")
    assert (
        "error" not in table({"charge": step_record(held_since=AT, not_before=AT, error=error)})[0]
    )
    assert "error" in table({"charge": step_record(error=error)})[0]


@pytest.mark.parametrize(
    ("record", "fact"),
    [
        (changed_step(WORKING, waiting=True), "waits for a callback until 2027-01-15T08:30:00Z"),
        (
            changed_step(WORKING, waiting=True, remind_at=AT + 60_000),
            "waits for a callback until 2027-01-15T08:30:00Z; not reminded yet, next at "
            "2027-01-15T08:01:00Z",
        ),
        (
            changed_step(WORKING, waiting=True, remind_at=AT + 60_000, reminders=1),
            "waits for a callback until 2027-01-15T08:30:00Z; reminded once, next at "
            "2027-01-15T08:01:00Z",
        ),
        (
            changed_step(WORKING, waiting=True, remind_at=AT + 1_800_000, reminders=2),
            "waits for a callback until 2027-01-15T08:30:00Z; reminded 2 times",
        ),
        (
            changed_step(WORKING, heard_at=AT - 12_000, heartbeat_by=AT + 8_000),
            "last heartbeat 12 s ago; overdue without a heartbeat by 2027-01-15T08:00:08Z",
        ),
        (changed_step(WORKING, heard_at=AT - 12_000), "last heartbeat 12 s ago"),
        (
            changed_step(WORKING, heartbeat_by=AT + 8_000),
            "no heartbeat yet; overdue without a heartbeat by 2027-01-15T08:00:08Z",
        ),
        (
            replace(WORKING, uncounted_timeouts=1),
            "1 time-out not counted: its request may not have been read",
        ),
        (
            replace(WORKING, uncounted_calls=1),
            "1 call in a row found its service down, not counted",
        ),
        (
            replace(WORKING, uncounted_calls=9),
            "9 calls in a row found its service down, not counted",
        ),
        (
            replace(WORKING, uncounted_timeouts=3),
            "3 time-outs not counted: its request may not have been read",
        ),
        (
            step_record(process_state=ProcessState.UNDOING, after_undo=AfterUndo.NEXT_AGENT),
            "undone first, then sent to the next agent",
        ),
        (
            step_record(process_state=ProcessState.UNDOING, after_undo=AfterUndo.SKIPPED),
            "undone first, then skipped: it is left out",
        ),
        (
            step_record(process_state=ProcessState.UNDOING, after_undo=AfterUndo.NEW_KEY),
            "undone first, then begun under a new key",
        ),
        (
            step_record(process_state=ProcessState.ERROR, effect=Effect.STANDS),
            "failed, but its effect stands",
        ),
        (
            step_record(process_state=ProcessState.ERROR, effect=Effect.NONE),
            "failed, and it is proven that it had no effect",
        ),
        (
            changed_step(WORKING, polls=7, polled_since=AT - 720_000, poll_until=AT + 600_000),
            "polled 7 times in 12 min, since 2027-01-15T07:48:00Z; until 2027-01-15T08:10:00Z at "
            "most",
        ),
        (
            changed_step(POLLED, not_before=AT),
            "polled 7 times in 12 min, since 2027-01-15T07:48:00Z; until 2027-01-15T08:10:00Z at "
            "most",
        ),
        (
            POLLED,
            "polled 7 times in 12 min, since 2027-01-15T07:48:00Z; again at 2027-01-15T08:01:00Z; "
            "until 2027-01-15T08:10:00Z at most",
        ),
        (changed_step(WORKING, extra=60_000), "60 s more time, from its next attempt on"),
    ],
)
def test_each_thing_that_the_table_has_no_column_for_is_a_sentence(
    record: StepRecord, fact: str
) -> None:
    assert facts_of(record) == [f"charge: {fact}"]


@pytest.mark.parametrize(
    "record",
    [
        StepRecord(),
        PROCESSED,
        WORKING,
        step_record(process_state=ProcessState.PROCESSED, heard_at=AT, heartbeat_by=AT),
        step_record(process_state=ProcessState.SKIPPED, after_undo=AfterUndo.SKIPPED),
    ],
)
def test_a_step_that_needs_no_fact_shows_none(record: StepRecord) -> None:
    assert facts_of(record) == []


def test_items_that_share_a_fact_share_its_sentence() -> None:
    held = step_record(held_since=AT, not_before=AT, agent="payment")
    steps = {f"pick[{place}]": held for place in (0, 1, 2, 5)}
    (fact,) = step_facts(facts(task(steps), [HOLD], planned=False))
    assert fact.startswith("pick[0-2,5]: held since ")


def test_a_hundred_items_that_are_alike_are_one_row_and_the_others_have_their_own() -> None:
    steps: dict[str, StepRecord] = {f"pick[{place}]": PROCESSED for place in range(100)}
    steps["pick[7]"] = step_record(
        process_state=ProcessState.SKIPPED, failure_count=3, error=StepError("NotFound", "no KB-7")
    )
    steps["pick[8]"] = step_record(process_state=ProcessState.ERROR, error=StepError("Broken", "x"))
    assert table(steps) == [
        ["Step", "State", "Failures", "Last", "error"],
        ["pick[0-6,9-99]", "Processed", "0"],
        ["pick[7]", "Skipped", "3", "NotFound:", "no", "KB-7"],
        ["pick[8]", "Error", "for", "good", "Broken:", "x"],
    ]


def test_items_that_differ_in_locks_and_times_only_share_a_row() -> None:
    steps = {
        f"pick[{place}]": step_record(
            process_state=ProcessState.PROCESSING,
            locked_by=f"a-{place}.1",
            complete_by=AT + place * 1000,
        )
        for place in range(20)
    }
    (_, row) = table(steps)
    assert row[:2] == ["pick[0-19]", "Processing"]
    assert row[3:] == ["20", "locks", "08:00:00", "-", "08:00:19"]


def test_a_range_of_instants_on_several_days_begins_with_the_first() -> None:
    days = (18, 2, 1)  # the second of February is before the fifteenth, and after it as text
    steps = {
        f"pick[{place}]": step_record(
            process_state=ProcessState.PROCESSING, complete_by=AT + day * 24 * 3_600_000
        )
        for place, day in enumerate(days)
    }
    (_, row) = table(steps)
    assert row[3:] == ["16", "Jan", "08:00", "-", "2", "Feb", "08:00"]


def test_two_items_that_are_alike_keep_their_rows() -> None:
    rows = table({"pick[0]": PROCESSED, "pick[1]": PROCESSED})
    assert [row[0] for row in rows] == ["Step", "pick[0]", "pick[1]"]


def test_the_agent_is_named_where_it_is_not_the_first() -> None:
    record = step_record(
        process_state=ProcessState.PROCESSED, agent="payment_backup", tried=("payment",)
    )
    assert table({"charge": record})[1] == [
        "charge",
        "Processed",
        "0",
        "payment_backup,",
        "after",
        "payment",
    ]
    assert "Agent" not in table({"charge": PROCESSED})[0]


def test_items_are_shown_in_spans_and_counted_where_those_are_long() -> None:
    assert span(["a", "pick[3]", "pick[0]", "pick[1]", "b[x]"]) == "a, pick[0-1,3], b[x]"
    assert span([f"pick[{place}]" for place in range(0, 100, 2)]) == "pick (50 items)"


def test_scripts_get_the_same_facts_as_fields() -> None:
    at_agent = changed_step(
        WORKING, late_since=AT - 1, heartbeat_by=AT + 1, heard_at=AT + 2, uncounted_timeouts=2
    )
    parked = step_record(held_since=AT, not_before=AT + 3, complete_by=AT + 4)
    waits = changed_step(WORKING, waiting=True)
    documents = [step_document(one) for one in (at_agent, parked, waits)]
    names = ("situation", "heldSince", "lateSince", "heartbeatBy", "heardAt", "until", "claimBy")
    assert [[document[name] for name in names] for document in documents] == [
        [
            "at its agent",
            None,
            "2027-01-15T07:59:59.999Z",
            "2027-01-15T08:00:00.001Z",
            "2027-01-15T08:00:00.002Z",
            "2027-01-15T08:30:00.000Z",
            None,
        ],
        [
            *("parked", "2027-01-15T08:00:00.000Z", None, None, None, None),
            "2027-01-15T08:00:00.004Z",
        ],
        ["awaits its callback", *[None] * 4, "2027-01-15T08:30:00.000Z", None],
    ]
    spared = [(one["waiting"], one["spared"], one["tried"]) for one in documents]
    assert spared == [(False, 2, []), (False, 0, []), (True, 0, [])]


def test_the_situation_of_a_step_that_is_polled_says_so() -> None:
    assert situation_words(task({}), POLLED) == "waits, polled"
    assert situation_words(task({}), changed_step(WORKING, polls=1)) == "polled"
    assert situation_words(task({}), WORKING) == ""


def test_a_sleep_says_since_when_and_until_when_it_lasts() -> None:
    asleep = StepRecord(situation=Asleep(until=AT + 60_000, since=AT - 60_000))
    assert situation_words(task({}), asleep) == "asleep"
    since_until = "asleep since 2027-01-15T07:59:00Z, until 2027-01-15T08:01:00Z"
    assert facts_of(asleep) == [f"charge: {since_until}"]
    document = step_document(asleep)
    assert (document["situation"], document["processState"]) == ("asleep", "Pending")
    assert document["asleepSince"] == "2027-01-15T07:59:00.000Z"
    assert document["asleepUntil"] == "2027-01-15T08:01:00.000Z"
    assert step_document(WORKING)["asleepUntil"] is None


def test_a_wait_for_a_signal_says_until_when_and_by_which_signal_it_ended() -> None:
    awaits = StepRecord(situation=AwaitsSignal(until=AT + 60_000, since=AT - 60_000))
    assert situation_words(task({}), awaits) == "awaits its signal"
    since_until = "waits for its signal since 2027-01-15T07:59:00Z, until 2027-01-15T08:01:00Z"
    assert facts_of(awaits) == [f"charge: {since_until}"]
    document = step_document(awaits)
    assert document["situation"] == "awaits its signal"
    assert document["awaitsSince"] == "2027-01-15T07:59:00.000Z"
    assert document["awaitsUntil"] == "2027-01-15T08:01:00.000Z"
    assert (document["asleepUntil"], document["signal"]) == (None, None)
    ended = StepRecord(situation=Ended(how=End.SUCCEEDED), finished_at=AT, signal="pay-7")
    assert facts_of(ended) == ["charge: ended by the signal pay-7"]
    assert step_document(ended)["signal"] == "pay-7"


def test_a_signal_that_is_kept_is_shown_without_its_data() -> None:
    found = replace(
        task({"charge": WORKING}), signals=(UnreadSignal("pay-7", "paid", AT, "secret"),)
    )
    assert step_facts(facts(found, planned=False))[-1] == (
        "the signal paid (pay-7) came at 2027-01-15T08:00:00Z, and is kept for its step"
    )
    document = document_of(order_document(facts(found, planned=False)))
    assert document["unreadSignals"] == [
        {"id": "pay-7", "name": "paid", "at": "2027-01-15T08:00:00.000Z"}
    ]
    assert "secret" not in str(document)


def test_scripts_get_the_polls_of_a_step() -> None:
    names = ("situation", "polls", "polledSince", "pollUntil", "notBefore")
    document = step_document(POLLED)
    assert [document[name] for name in names] == [
        *("waits", 7, "2027-01-15T07:48:00.000Z", "2027-01-15T08:10:00.000Z"),
        "2027-01-15T08:01:00.000Z",
    ]


def test_no_step_is_polled_beyond_the_time_of_its_task() -> None:
    limited = replace(task({"charge": POLLED}), deadline=AT + 120_000)
    assert step_facts(facts(limited))[0].endswith("; until 2027-01-15T08:02:00Z at most")


def step_document(record: StepRecord) -> Mapping[str, Any]:
    """The document of the step `charge`, as scripts get it."""
    return document_of(order_document(facts(task({"charge": record}))).steps[0])


@pytest.mark.parametrize("state", [ProcessState.PENDING, ProcessState.PROCESSING])
def test_a_step_that_is_retried_for_a_time_shows_why_and_until_when(state: ProcessState) -> None:
    error = StepError("KeyError", "unexpected error", unexpected=True)
    record = step_record(process_state=state, retry_until=AT + 3_000_000, error=error)
    assert facts_of(record) == [
        "charge: an unexpected error (KeyError) in the agent's code; "
        "retried until 2027-01-15T08:50:00Z"
    ]
    transient = replace(record, error=StepError("Unavailable", "503"))
    assert facts_of(transient) == ["charge: retried until 2027-01-15T08:50:00Z"]


def test_the_end_of_the_task_ends_the_retries_of_a_perform_but_not_of_an_undo() -> None:
    late = AT + 7_200_000
    record = step_record(retry_until=late, error=StepError("Unavailable", "503"))
    assert facts_of(record) == ["charge: retried until 2027-01-15T09:00:00Z"]
    undo = changed_step(record, process_state=ProcessState.UNDOING)
    assert facts_of(undo) == ["charge: retried until 2027-01-15T10:00:00Z"]
    limited = replace(task({"charge": record}), deadline=AT + 60_000)
    assert step_facts(facts(limited)) == ["charge: retried until 2027-01-15T08:01:00Z"]


def test_a_step_that_is_over_is_not_retried() -> None:
    record = step_record(
        process_state=ProcessState.ERROR, retry_until=AT, error=StepError("Unavailable", "503")
    )
    assert facts_of(record) == []


def test_a_step_that_waits_for_the_scheduler_says_since_when() -> None:
    ready = step_record(complete_by=AT, late_since=AT - 5_000)
    fact = "charge: late since 2027-01-15T07:59:55Z: "
    assert facts_of(ready) == [f"{fact}its start waits; nothing is counted"]
    late = changed_step(ready, process_state=ProcessState.PROCESSING, locked_by="a-b.1")
    assert facts_of(late) == [f"{fact}its reply may wait in its queue; nothing is counted"]


def test_why_says_the_same() -> None:
    error = StepError("KeyError", "unexpected error", unexpected=True)
    record = step_record(
        failure_count=4, not_before=AT + 60_000, retry_until=AT + 3_000_000, error=error
    )
    patient = replace(CHARGE, retry=Retry())
    made = plan_of(Workflow(name="story", steps=(patient,), complete_within=timedelta(hours=1)))
    [wait] = waits_of(OrderFacts(task({"charge": record}), made, at=AT))
    assert wait.what == "attempt 5 of charge, at 2027-01-15T08:01:00Z (in 60 s)"
    assert wait.evidence == (
        "the last attempt failed: KeyError: unexpected error",
        "an unexpected error (KeyError) in the agent's code; retried until 2027-01-15T08:50:00Z",
    )


@pytest.mark.parametrize(
    "record",
    [
        StepRecord(situation=Parked(not_before=AT + MINUTE, claim_by=AT + MINUTE, since=AT)),
        POLLED,
    ],
    ids=["parked", "polled"],
)
def test_a_task_that_has_ended_says_nothing_of_what_its_steps_waited_for(
    record: StepRecord,
) -> None:
    before = task({"charge": record})
    over = replace(before, state=TaskState.CANCELLED, ended_at=AT)
    assert situation_words(before, record)
    assert situation_words(over, record) == ""
    assert step_state(over, record) == record.process_state
    for fact in step_facts(facts(over)):
        assert "again at" not in fact
        assert "until" not in fact
        assert "held" not in fact
