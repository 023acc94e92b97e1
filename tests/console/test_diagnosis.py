"""What a task waits for: one case for each way in which it may wait, by its record alone."""

from dataclasses import replace

import pytest

from roundsman.definition.plan import Otherwise
from roundsman.model.events import AgentView
from roundsman.model.holds import BREAKER, Hold
from roundsman.model.queue_lag import ReadMark
from roundsman.model.situations import Asleep, AwaitsCallback, AwaitsSignal
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Owed, StepError, StepRecord, Task, Termination
from roundsman_console.facts.order.order_facts import OrderFacts, SchedulerNow
from roundsman_console.facts.order.why import (
    Diagnosis,
    diagnose,
    unreadable,
)
from tests.console.shelves import DECLINED, archived, open_task
from tests.console.step_samples import AT, HOLD, facts, plan
from tests.support.steps import changed_step, step_record

SEEN = replace(facts(open_task("ord-1")), visited_at=AT - 20_000)
MINUTES_AGO = AT - 600_000
FAILED = StepError("TransientError", "503 from acquirer")
ENDING = Termination(TaskState.UNDONE, "charge: declined", "charge", undo=True)


AT_AGENT = step_record(
    process_state=ProcessState.PROCESSING,
    locked_by="a-b.1",
    started_at=AT - 12_000,
    complete_by=AT + 18_000,
)


def active(record: StepRecord, **others: StepRecord) -> Task:
    task = open_task("ord-1", AT - 60_000, {"charge": record, **others})
    return replace(task, state=TaskState.ACTIVE)


def diagnosis_of(task: Task, around: OrderFacts = SEEN) -> Diagnosis:
    """Of a task; what is known but for it is `around`."""
    return diagnose(replace(around, task=task))


def test_a_task_of_a_later_time_waits_for_it() -> None:
    task = replace(open_task("ord-1"), state=TaskState.SCHEDULED, start_at=AT + 3_600_000)
    found = diagnosis_of(task)
    assert found.case == "scheduled"
    assert found.sentence == ("ord-1 waits for its start time, at 2027-01-15T09:00:00Z, in 1 h.")
    assert found.next == "roundsman run ord-1 --reason '...'"


def test_a_time_that_has_come_is_the_supervisors_matter() -> None:
    task = replace(open_task("ord-1"), state=TaskState.SCHEDULED, start_at=AT - 5_000)
    found = diagnosis_of(task)
    assert (found.case, found.next) == ("scheduled_late", None)
    assert "should have started 5 s ago; a supervisor handles it in its next pass" in found.sentence


def test_a_task_that_is_ready_waits_for_the_scheduler() -> None:
    task = replace(open_task("ord-1"), due_at=AT + 30_000)
    found = diagnosis_of(task, replace(SEEN, scheduler=SchedulerNow(waiting=1_200)))
    assert (found.case, found.step) == ("pending", "charge")
    assert "waits for the scheduler to begin charge, pick, with 1200 messages" in found.sentence
    assert "the supervisor sends another at 2027-01-15T08:00:30Z, in 30 s." in found.sentence
    assert "with" not in diagnosis_of(task).sentence.split(";")[0]


def test_a_task_that_is_ready_for_too_long_waits_for_the_supervisor() -> None:
    assert diagnosis_of(replace(open_task("ord-1"), due_at=AT - 5_000)).case == "pending_late"


def test_a_step_within_its_time_waits_for_its_agent() -> None:
    found = diagnosis_of(active(replace(AT_AGENT, failure_count=1, error=FAILED)))
    assert (found.case, found.step, found.agent, found.next) == (
        "at_agent",
        "charge",
        "payment",
        None,
    )
    assert found.sentence == (
        "ord-1 waits for payment's answer to charge (attempt 2 of 3), sent 12 s ago, until "
        "2027-01-15T08:00:18Z (in 18 s)."
    )
    assert "the last attempt failed: TransientError: 503 from acquirer" in found.evidence
    assert "a supervisor last visited its shard, 1, 20 s ago" in found.evidence


def test_a_request_that_its_agent_has_not_read_waits_behind_the_others() -> None:
    behind = {"payment/normal": AgentView(lag=90_000, read_up_to=AT - 80_000)}
    found = diagnosis_of(active(AT_AGENT), replace(SEEN, agents=behind))
    assert (found.case, found.next) == ("unread", "roundsman agents")
    assert "waits for payment to read the request of charge: its queue is behind" in found.sentence
    assert found.evidence[0] == "payment now reads requests that were sent 90 s ago"


def test_a_request_of_an_agent_that_is_behind_but_has_read_it_is_at_its_agent() -> None:
    behind = {"payment/normal": AgentView(lag=90_000, read_up_to=AT)}
    assert diagnosis_of(active(AT_AGENT), replace(SEEN, agents=behind)).case == "at_agent"


def test_an_overdue_step_is_made_again_by_the_supervisors_next_pass() -> None:
    found = diagnosis_of(active(changed_step(AT_AGENT, complete_by=AT - 3_000)))
    assert (found.case, found.next) == ("overdue", None)
    assert "overdue by 3 s; a supervisor handles it in its next pass, by" in found.sentence


@pytest.mark.parametrize(
    ("visited_at", "message"),
    [
        (None, "no supervisor has handled it: none is running"),
        (MINUTES_AGO, "no supervisor has handled it: none is running"),
        (AT - 20_000, "a supervisor pass since then has not handled it"),
    ],
)
def test_a_step_that_is_long_overdue_is_a_matter_for_the_doctor(
    visited_at: int | None, message: str
) -> None:
    found = diagnosis_of(
        active(changed_step(AT_AGENT, complete_by=MINUTES_AGO)),
        replace(SEEN, visited_at=visited_at),
    )
    assert (found.case, found.next) == ("overdue", "roundsman doctor")
    assert found.sentence.endswith(f"{message}.")


REPLIES_BEHIND = {"payment/replies": ReadMark(AT - 725_000, AT - 5_000)}
COMMANDS_BEHIND = {"scheduler/commands": ReadMark(AT - 725_000, AT - 5_000)}
LATE = changed_step(AT_AGENT, complete_by=AT + 180_000, late_since=AT - 150_000)
STARTS_LATE = step_record(complete_by=AT + 180_000, late_since=AT - 150_000)
RUNBOOK = "what to do if it lasts: docs/runbook/backlog.md"


def behind(marks: dict[str, ReadMark], waiting: int | None = None) -> OrderFacts:
    return replace(SEEN, scheduler=SchedulerNow(marks, waiting))


@pytest.mark.parametrize("marks", [REPLIES_BEHIND, COMMANDS_BEHIND])
def test_a_late_step_says_how_far_the_scheduler_is_behind(marks: dict[str, ReadMark]) -> None:
    found = diagnosis_of(active(LATE), behind(marks))
    assert (found.case, found.agent, found.next) == ("reply_waits", "payment", "roundsman stats")
    assert found.sentence == (
        "ord-1 waits for payment's answer to charge (attempt 1 of 3), late for 2 min: the "
        "scheduler is 12 min behind; nothing is counted, and the order's time moves; it is checked "
        "again at 2027-01-15T08:03:00Z (in 3 min)."
    )
    assert RUNBOOK in found.evidence


@pytest.mark.parametrize(
    "marks",
    [
        {},
        {"payment/replies": ReadMark(AT - 725_000, AT - 61_000)},
        {"warehouse/replies": ReadMark(AT - 725_000, AT - 5_000)},
        {"payment/replies": ReadMark(AT - 6_000, AT - 5_000)},
        {"payment/wanted": ReadMark(AT - 725_000, AT - 5_000)},
    ],
)
def test_a_late_step_without_a_mark_that_says_so_has_a_reply_that_may_wait(
    marks: dict[str, ReadMark],
) -> None:
    found = diagnosis_of(active(LATE), behind(marks))
    assert found.case == "reply_waits"
    assert "late for 2 min: its reply may wait in its queue; nothing is counted" in found.sentence


def test_the_time_of_an_order_that_ends_does_not_move() -> None:
    undo = changed_step(LATE, process_state=ProcessState.UNDOING)
    for record, ending in ((LATE, ENDING), (undo, ENDING), (undo, None)):
        found = diagnosis_of(replace(active(record), ending=ending))
        assert "nothing is counted; it is checked again at" in found.sentence


def test_a_late_step_whose_check_has_passed_is_a_matter_for_the_supervisor() -> None:
    found = diagnosis_of(active(changed_step(LATE, complete_by=AT - 5_000)), behind(REPLIES_BEHIND))
    assert (found.case, found.next) == ("reply_waits", None)
    assert "the order's time moves; a supervisor handles it in its next pass, by" in found.sentence
    assert RUNBOOK in found.evidence
    found = diagnosis_of(
        active(changed_step(LATE, complete_by=MINUTES_AGO)), behind(REPLIES_BEHIND)
    )
    assert found.next == "roundsman doctor"


def test_a_ready_step_that_is_late_says_that_its_start_waits() -> None:
    done = step_record(process_state=ProcessState.PROCESSED)
    found = diagnosis_of(active(done, pick=STARTS_LATE), behind(COMMANDS_BEHIND))
    assert (found.case, found.step, found.next) == ("start_waits", "pick", "roundsman stats")
    assert found.sentence == (
        "ord-1 waits for the scheduler to begin pick: its start waits in the scheduler's queue; "
        "the scheduler is 12 min behind; nothing is counted; it is checked again at "
        "2027-01-15T08:03:00Z (in 3 min)."
    )
    assert RUNBOOK in found.evidence
    undo = changed_step(STARTS_LATE, process_state=ProcessState.UNDOING)
    found = diagnosis_of(replace(active(undo), ending=ENDING))
    assert found.case == "start_waits"
    assert "to begin the undo of charge: its start waits in the scheduler's queue; " in (
        found.sentence
    )


def test_a_ready_step_does_not_wait_in_an_empty_queue_or_for_a_start_that_does_not_come() -> None:
    assert diagnosis_of(active(STARTS_LATE), behind({}, 0)).case == "pending_late"
    assert diagnosis_of(active(STARTS_LATE), behind({}, 1)).case == "start_waits"
    assert diagnosis_of(active(STARTS_LATE), behind(COMMANDS_BEHIND, 0)).case == "start_waits"
    assert diagnosis_of(replace(active(STARTS_LATE), ending=ENDING)).case == "pending_late"


def test_a_task_of_which_nothing_has_begun_says_that_its_start_waits() -> None:
    task = replace(open_task("ord-1", AT - 40_000), due_at=AT + 30_000)
    found = diagnosis_of(task, behind(COMMANDS_BEHIND, 1_200))
    assert (found.case, found.step, found.next) == ("start_waits", "charge", "roundsman stats")
    assert found.sentence == (
        "ord-1 waits for the scheduler to begin charge, pick, with 1200 messages in its queue: its "
        "start waits in the scheduler's queue; the scheduler is 12 min behind; nothing is counted; "
        "it is checked again at 2027-01-15T08:00:30Z, in 30 s."
    )
    assert RUNBOOK in found.evidence
    late = diagnosis_of(replace(task, due_at=AT - 5_000), behind(COMMANDS_BEHIND))
    assert (late.case, late.next) == ("start_waits", None)
    assert "12 min behind; a supervisor handles it in its next pass" in late.sentence
    assert RUNBOOK in late.evidence
    assert diagnosis_of(task, behind({}, 0)).case == "pending"
    young = replace(open_task("ord-1", AT - 30_000), due_at=AT + 1)
    assert diagnosis_of(young, behind(COMMANDS_BEHIND, 1_200)).case == "pending"


def test_a_missed_heartbeat_is_overdue_before_complete_by() -> None:
    assert diagnosis_of(active(changed_step(AT_AGENT, heartbeat_by=AT - 1))).case == "overdue"


def test_a_step_that_waits_for_its_next_attempt_can_be_run_now() -> None:
    record = step_record(failure_count=1, not_before=AT + 600_000, error=FAILED, started_at=AT)
    found = diagnosis_of(replace(active(record), state=TaskState.RETRY))
    assert (found.case, found.next) == ("retry", "roundsman run ord-1 --reason '...'")
    assert "attempt 2 of 3 of charge, at 2027-01-15T08:10:00Z (in 10 min)" in found.sentence
    late = changed_step(record, not_before=AT - 2_000)
    found = diagnosis_of(replace(active(late), state=TaskState.RETRY))
    assert (found.case, found.next) == ("retry_late", None)


def test_a_step_whose_agent_is_held_names_who_holds_it_and_how_to_release_it() -> None:
    record = step_record(held_since=AT - 5_000, not_before=AT + 295_000, error=FAILED)
    task = replace(active(record), state=TaskState.RETRY)
    found = diagnosis_of(task, replace(SEEN, holds=(HOLD,)))
    assert (found.case, found.agent, found.next) == ("held", "payment", "roundsman release payment")
    assert "waits for payment, which is held by amy: maintenance, until" in found.sentence
    assert "the next check is at 2027-01-15T08:04:55Z" in found.evidence
    released = diagnosis_of(task)
    assert (released.case, released.next) == ("held", None)
    assert "the next check of payment, which takes work again" in released.sentence


def test_an_open_circuit_closes_by_itself() -> None:
    record = step_record(held_since=AT - 5_000, not_before=AT + 295_000)
    circuit = Hold("payment", BREAKER, AT - 6_000, AT + 24_000, "5 calls failed", "the breaker")
    found = diagnosis_of(active(record), replace(SEEN, holds=(circuit,)))
    assert (found.case, found.next) == ("circuit_open", "roundsman agents")
    assert "payment, which has an open circuit: 5 calls failed, until" in found.sentence
    assert diagnosis_of(active(record), replace(SEEN, holds=(circuit, HOLD))).case == "held"


def test_a_callback_waits_for_somebody_outside() -> None:
    found = diagnosis_of(active(changed_step(AT_AGENT, waiting=True, complete_by=AT + 3_600_000)))
    assert found.case == "callback"
    assert "a callback for charge (agent payment), until" in found.sentence
    assert "whoever has the token of the callback can answer it" in found.evidence
    assert found.next is None


def test_a_step_that_sleeps_waits_for_its_end_and_a_person_may_end_it() -> None:
    asleep = StepRecord(situation=Asleep(until=AT + 120_000, since=AT - 60_000))
    found = diagnosis_of(active(asleep))
    assert (found.case, found.step, found.agent) == ("asleep", "charge", None)
    assert found.sentence == (
        "ord-1 waits for the end of the sleep charge, at 2027-01-15T08:02:00Z (in 2 min)."
    )
    assert found.evidence[:2] == (
        "charge is Pending, asleep",
        "it has slept since 2027-01-15T07:59:00Z; no hold stops it, and `run` does not end it: "
        "resolved as done, it ends now",
    )
    assert found.next == "roundsman resolve ord-1 charge --did --reason '...'"


def test_a_step_that_waits_for_its_signal_names_the_last_one_that_was_refused() -> None:
    said = (
        "the signal payd is refused: no step of the workflow waits for a signal payd; it has paid"
    )
    awaits = StepRecord(
        situation=AwaitsSignal(until=AT + 120_000, since=AT - 60_000),
        error=StepError("SignalRefused", said),
    )
    found = diagnosis_of(active(awaits))
    assert found.case == "awaits_signal"
    assert said in found.evidence


def test_a_step_that_waits_for_its_signal_says_which_and_how_to_send_it() -> None:
    awaits = StepRecord(situation=AwaitsSignal(until=AT + 120_000, since=AT - 60_000))
    found = diagnosis_of(active(awaits))
    assert (found.case, found.step, found.agent) == ("awaits_signal", "charge", None)
    assert found.sentence == (
        "ord-1 waits for the signal charge, for charge, until 2027-01-15T08:02:00Z (in 2 min)."
    )
    assert found.evidence[:2] == (
        "charge is Pending, awaits its signal",
        "it has waited since 2027-01-15T07:59:00Z; without a signal, it fails then by NoSignal; "
        "resolved as done, it ends now",
    )
    assert found.next == "roundsman signal ord-1 charge"
    late = StepRecord(situation=AwaitsSignal(until=AT - 3_000, since=AT - 60_000))
    over = diagnosis_of(active(late))
    assert over.case == "retry_late"
    assert "a supervisor to end the wait charge, which was over 3 s ago" in over.sentence


def test_a_step_that_goes_on_without_its_signal_or_its_callback_says_so() -> None:
    awaits = StepRecord(situation=AwaitsSignal(until=AT + 120_000, since=AT - 60_000))
    before = plan()
    goes_on = replace(before.steps["charge"], otherwise=Otherwise(None))
    made = replace(SEEN, plan=replace(before, steps={**before.steps, "charge": goes_on}))
    found = diagnosis_of(active(awaits), made)
    assert "without a signal, it goes on then; resolved as done, it ends now" in found.evidence[1]
    asks = StepRecord(situation=AwaitsCallback(lock="l", until=AT + 120_000), started_at=AT)
    assert "if nobody does, the step goes on without the answer" in (
        diagnosis_of(active(asks), made).evidence
    )
    assert "without the answer" not in str(diagnosis_of(active(asks)).evidence)


def test_a_sleep_that_is_over_is_the_supervisors_matter() -> None:
    asleep = StepRecord(situation=Asleep(until=AT - 3_000, since=AT - 60_000))
    found = diagnosis_of(active(asleep))
    assert found.case == "retry_late"
    assert "a supervisor to end the sleep charge, which was over 3 s ago" in found.sentence


def polled(**changes: object) -> StepRecord:
    """A step that waits for its next poll."""
    return step_record(
        **{
            "started_at": AT - 12_000,
            "not_before": AT + 60_000,
            "complete_by": AT + 90_000,
            "polls": 7,
            "polled_since": AT - 720_000,
            "poll_until": AT + 600_000,
            **changes,
        }
    )


def test_a_step_that_is_polled_waits_for_the_next_poll() -> None:
    found = diagnosis_of(active(polled()))
    assert (found.case, found.step, found.agent) == ("polled", "charge", "payment")
    assert found.sentence == (
        "ord-1 waits for the next poll of charge by payment, at 2027-01-15T08:01:00Z (in 60 s)."
    )
    assert found.evidence[:2] == (
        "charge is Pending, waits, polled",
        "polled 7 times in 12 min, since 2027-01-15T07:48:00Z; again at 2027-01-15T08:01:00Z; "
        "until 2027-01-15T08:10:00Z at most",
    )
    assert found.next == "roundsman run ord-1 --reason '...'"


def test_a_poll_that_is_late_is_the_supervisors_matter() -> None:
    found = diagnosis_of(active(polled(not_before=AT - 3_000)))
    assert found.case == "retry_late"
    assert "the next poll of charge by payment, which was due 3 s ago" in found.sentence


def test_a_poll_that_failed_is_attempted_again() -> None:
    found = diagnosis_of(active(polled(failure_count=1, error=FAILED)))
    assert found.case == "retry"
    assert "waits for attempt 2 of 3 of charge" in found.sentence
    assert any(words.startswith("polled 7 times in 12 min") for words in found.evidence)


def test_a_callback_that_is_reminded_of_says_how_often_and_when_again() -> None:
    record = changed_step(AT_AGENT, waiting=True, complete_by=AT + 3_600_000, reminders=2)
    task = active(changed_step(record, remind_at=AT + 600_000))
    words = "until 2027-01-15T09:00:00Z (in 1 h); reminded 2 times"
    assert f"{words}, next at 2027-01-15T08:10:00Z" in diagnosis_of(task).sentence
    ending = diagnosis_of(replace(task, ending=ENDING)).sentence
    assert words in ending
    assert "next at" not in ending


def test_an_undo_at_its_agent_says_what_it_is_undone_for() -> None:
    record = changed_step(AT_AGENT, process_state=ProcessState.UNDOING)
    task = replace(active(record), state=TaskState.UNDOING, ending=ENDING)
    found = diagnosis_of(task)
    assert found.case == "undoing"
    assert "payment's answer to the undo of charge (attempt 1 of 3)" in found.sentence
    assert "no further steps start: charge: declined" in found.evidence


def test_an_undo_waits_until_no_request_can_act_and_for_what_came_after() -> None:
    record = step_record(process_state=ProcessState.UNDOING, started_at=AT, not_before=AT + 9_000)
    task = replace(active(record), state=TaskState.UNDOING, ending=ENDING)
    assert "when no request of it can take effect any more" in diagnosis_of(task).sentence
    again = diagnosis_of(replace(task, steps={"charge": replace(record, failure_count=1)}))
    assert "attempt 2 of the undo of charge" in again.sentence
    ready = diagnosis_of(replace(task, steps={"charge": changed_step(record, not_before=None)}))
    assert (ready.case, ready.step) == ("undo_waits", "charge")
    assert "after the undo of the steps that followed it" in ready.sentence


def test_an_archived_task_waits_for_a_person() -> None:
    found = diagnosis_of(archived("ord-1", AT - 60_000))
    assert (found.case, found.step) == ("archived", "charge")
    assert "has needed a person since 2027-01-15T07:59:00Z (60 s ago): charge: failed" in (
        found.sentence
    )
    assert "may have happened: charge" in found.evidence
    assert found.next == "roundsman resubmit ord-1 --reason '...'"


def test_an_undo_that_failed_is_shown_before_why_it_was_begun() -> None:
    record = step_record(process_state=ProcessState.UNDO_ERROR, error=DECLINED, started_at=AT)
    task = replace(archived("ord-1"), ending=ENDING, steps={"charge": record})
    assert (
        "the undo of charge failed (CardDeclined: POST answered 402)" in diagnosis_of(task).sentence
    )


def test_what_is_over_waits_for_nothing() -> None:
    done = replace(
        open_task("ord-1"), state=TaskState.COMPLETED, ended_at=AT - 5_000, expires_at=AT + 1
    )
    found = diagnosis_of(done)
    assert (found.case, found.next) == ("ended", None)
    assert "has ended: Completed at" in found.sentence
    assert found.evidence == ("kept until 2027-01-15T08:00:00Z",)
    undone = diagnosis_of(replace(done, state=TaskState.UNDONE, ending=ENDING))
    assert undone.next == "roundsman resubmit ord-1 --again --reason '...'"


def test_what_is_owed_is_sent_by_the_supervisor() -> None:
    owed = (Owed("status", "completed", 7, AT - 3_000, ""),)
    task = replace(
        open_task("ord-1"), state=TaskState.COMPLETED, ended_at=AT, owed=owed, due_at=AT + 27_000
    )
    found = diagnosis_of(task)
    assert (found.case, found.next) == ("owed", None)
    assert "the status completed, decided 3 s ago, is not known to be sent" in found.sentence
    assert diagnosis_of(task, replace(SEEN, visited_at=None)).next == "roundsman doctor"


def test_without_its_plan_or_its_row_nothing_goes_on() -> None:
    found = diagnosis_of(active(AT_AGENT), replace(SEEN, plan=None))
    assert (found.case, found.next) == ("no_plan", "roundsman doctor")
    found = diagnosis_of(active(AT_AGENT), replace(SEEN, order_stored=False))
    assert (found.case, found.next) == ("no_order_row", "roundsman doctor")


def test_of_a_task_that_cannot_be_read_the_doctor_knows_more() -> None:
    assert unreadable("ord-1", "it is newer").next == "roundsman doctor"


def test_of_several_steps_the_one_furthest_from_going_on_is_shown_first() -> None:
    held = step_record(held_since=AT - 5_000, not_before=AT + 295_000)
    task = active(held, **{"pick[0]": AT_AGENT, "pick[1]": AT_AGENT})
    seen = replace(SEEN, plan=plan().expanded({"pick": 2}))
    found = diagnosis_of(replace(task, fan_outs={"pick": 2}), replace(seen, holds=(HOLD,)))
    assert found.case == "held"
    assert any(line.startswith("pick[0] waits for warehouse's answer") for line in found.evidence)
    alike = replace(
        task, fan_outs={"pick": 2}, steps=dict.fromkeys(("pick[0]", "pick[1]"), AT_AGENT)
    )
    found = diagnosis_of(alike, seen)
    assert "(and the same for pick[1])" in found.sentence
