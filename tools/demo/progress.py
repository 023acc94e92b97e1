"""The progress of a run: the state of each message that was sent, and which are still open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from roundsman.engine.due import is_closed
from roundsman.model.instants import clock_time
from roundsman.model.states import ProcessState
from roundsman.model.task import StepRecord, Task
from tools.demo.facts import SeenRejection
from tools.demo.scenario import STEPS, DemoOrder, ExpectedEnd, SentOrder

WAITING = "sent"
NOT_SENT = ""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The state of a run at one time."""

    tasks: Mapping[str, Task] = field(default_factory=dict)
    """By order ID."""
    rejections: Sequence[SeenRejection] = ()
    waiting: int = 0
    """The number of order events in the SubmissionQueue."""
    hanging: int = 0
    """The number of calls that hang at the remote services."""
    followers_sent: bool = False
    """The messages that repeat or cancel an order were sent."""


def state_of(one: SentOrder, seen: Snapshot) -> str:
    """Return the state of the message in a word; empty before it is sent."""
    if any(found.body == one.body for found in seen.rejections):
        return ExpectedEnd.REJECTED
    if one.case.follows and not seen.followers_sent:
        return NOT_SENT
    if one.case.makes_a_task:
        task = seen.tasks.get(one.case.order_id)
        return task.state if task else WAITING
    if seen.waiting:
        return WAITING
    return (
        ExpectedEnd.NOTHING_NEW if one.case.end is ExpectedEnd.NOTHING_NEW else ExpectedEnd.ACCEPTED
    )


def is_settled(one: SentOrder, seen: Snapshot) -> bool:
    """Whether the message has reached its final state, as expected or not."""
    state = state_of(one, seen)
    if state == ExpectedEnd.REJECTED:
        return True
    if one.case.makes_a_task:
        task = seen.tasks.get(one.case.order_id)
        return task is not None and is_closed(task)
    return state not in (NOT_SENT, WAITING)


def may_follow(sent: Sequence[SentOrder], seen: Snapshot) -> bool:
    """Whether all orders that are repeated or cancelled later have a task."""
    return all(one.case.order_id in seen.tasks for one in sent if one.case.follows)


def all_settled(sent: Sequence[SentOrder], seen: Snapshot) -> bool:
    """Whether all messages and all tasks are settled, including unexpected tasks."""
    return all(is_settled(one, seen) for one in sent) and all(map(is_closed, seen.tasks.values()))


def still_open(sent: Sequence[SentOrder], seen: Snapshot) -> list[str]:
    """Return a sentence for each message that is not settled, with its state."""
    return [
        f"{one.case.event} ({one.case.order_id}) is open: {_standing(one.case, seen)}"
        for one in sent
        if not is_settled(one, seen)
    ]


def hanging_calls(count: int) -> str:
    """Return the number of hanging calls as a sentence."""
    calls = "1 call hangs" if count == 1 else f"{count} calls hang"
    return f"{calls} at the remote services"


def _standing(case: DemoOrder, seen: Snapshot) -> str:
    task = seen.tasks.get(case.order_id)
    if case.follows and not seen.followers_sent:
        return "not sent, because its order was never accepted"
    if task is None or not case.makes_a_task:
        return "still in the SubmissionQueue" if seen.waiting else "it has no task"
    steps = "; ".join(f"{name} {step_standing(task.step(name))}" for name in STEPS)
    owed = f"; not sent yet: {', '.join(each.name for each in task.owed)}" if task.owed else ""
    return f"{task.state}: {steps}{owed}"


def step_standing(record: StepRecord) -> str:
    """Return the state of a step, as in `Processing until 10:42:07, 1 failed (Overdue)`."""
    words: str = record.process_state
    if record.process_state is ProcessState.PROCESSING and record.until is not None:
        words += f" until {clock_time(record.until)}"
    if record.not_before is not None:
        words += f", waits until {clock_time(record.not_before)}"
    if record.failure_count:
        words += f", {record.failure_count} failed"
    if record.error is not None:
        words += f" ({record.error.type})"
    return words
