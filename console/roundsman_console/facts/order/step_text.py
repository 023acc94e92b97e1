"""Sentences about a step's state for `roundsman show`; fan-out items are shown as ranges."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from roundsman.definition.plan import SignalPlan, SleepForPlan, SleepUntilPlan, StepPlan
from roundsman.engine.agent_holds import HELD
from roundsman.model.holds import Hold, hold_words
from roundsman.model.instants import format_duration, second
from roundsman.model.order_limit import waits_for_turn
from roundsman.model.situations import Asleep, AwaitsCallback, Ended, WaitsUntil, WithoutAgent
from roundsman.model.states import ProcessState, SituationName
from roundsman.model.task import (
    PERFORM,
    AfterUndo,
    Effect,
    StepRecord,
    Task,
    item_place,
    step_of,
)
from roundsman_console.base.counted import counted
from roundsman_console.facts.order.not_needed import not_needed_words
from roundsman_console.facts.order.order_facts import OrderFacts, StepFacts

_LONGEST_SPAN = 40  # characters; a longer span shows the number of items instead
MOST_ADDED_NAMES = 8  # so many added steps of one kind are named; of more, the number is shown

_RETRIED = frozenset({ProcessState.PENDING, ProcessState.PROCESSING, ProcessState.UNDOING})

_NEXT = {
    AfterUndo.SKIPPED: "then skipped: it is left out",
    AfterUndo.NEXT_AGENT: "then sent to the next agent",
    AfterUndo.NEW_KEY: "then begun under a new key",
}


_SAYS_NO_MORE = (SituationName.NOT_BEGUN, SituationName.AT_AGENT)
"""The situations that a reader expects of a Pending and of a Processing step."""


def situation_words(task: Task, record: StepRecord) -> str:
    """Return the situation of a step where it says more than its state; else an empty text.

    A step that is polled says so, as in `waits, polled`. In a task that has ended nothing waits,
    sleeps or is parked any more, whatever its record was last.
    """
    if task.ended:
        return ""
    situation = record.situation_name
    more = situation not in _SAYS_NO_MORE and not isinstance(record.situation, Ended)
    more = more or record.awaits_result
    words = [situation.removeprefix("undo ")] if more else []
    return ", ".join([*words, *(["polled"] if record.polling else [])])


def step_state(task: Task, record: StepRecord) -> str:
    """Return the state of a step, with its situation where that says more: `Pending, parked`."""
    words = situation_words(task, record)
    return f"{record.process_state}, {words}" if words else record.process_state.value


def step_facts(facts: OrderFacts) -> list[str]:
    """Return sentences about facts that are no column of the steps table.

    Steps with the same fact share a sentence. Signals that have ended no step yet follow.
    """
    names: dict[str, list[str]] = {}
    for one in facts.steps:
        for fact in (*_facts(one), *retry_words(one)):
            names.setdefault(fact, []).append(one.name)
    signals = (
        f"the signal {one.name} ({one.id}) came at {second(one.at)}, and is kept for its step"
        for one in facts.task.signals
    )
    return [*(f"{span(found)}: {fact}" for fact, found in names.items()), *signals]


def _facts(one: StepFacts) -> Iterator[str]:
    record = one.record
    if one.step is not None and one.step.closes and one.order.task.closing is not None:
        yield f"runs before the order is {one.order.task.closing.end}, and is not undone"
    if not one.order.task.ended:
        yield from _present(one)
    if record.uncounted_timeouts:
        times = counted(record.uncounted_timeouts, "time-out")
        yield f"{times} not counted: its request may not have been read"
    if record.unanswered:
        yield "nobody has answered in time; its result is the otherwise of the plan"
    if record.left_out is not None:
        yield f"its result was left out: {record.left_out.why}"
    if record.effect is Effect.STANDS:
        yield "failed, but its effect stands"
    if record.refused:
        yield "failed, and it is proven that it had no effect"
    yield from poll_words(one)
    yield from _without_agent(one.order.task, record)
    yield from _added_time(record)
    if record.uncounted_calls:
        calls = counted(record.uncounted_calls, "call")
        yield f"{calls} in a row found its service down, not counted"
    if words := not_needed_words(one):
        yield words
    elif record.after_undo is not None and record.process_state is ProcessState.UNDOING:
        yield f"undone first, {_NEXT[record.after_undo]}"


def _present(one: StepFacts) -> Iterator[str]:
    """Yield what a step waits for now, as it does in an open task only."""
    record = one.record
    if record.held_since is not None:
        yield _held(one)
    if isinstance(record.situation, AwaitsCallback):
        until = second(record.situation.until)
        yield f"waits for a callback until {until}{reminder_words(one)}"
    elif record.heard_at is not None:
        yield f"{heard_words(one, record.heard_at)}{_again(record)}"
    elif record.heartbeat_by is not None:
        yield f"no heartbeat yet{_again(record)}"
    if record.late_since is not None and (record.under_way or one.order.task.performs(one.name)):
        waits = "its reply may wait in its queue" if record.under_way else "its start waits"
        yield f"late since {second(record.late_since)}: {waits}; nothing is counted"


def heard_words(one: StepFacts, heard_at: int) -> str:
    """Return how long ago the agent last reported progress, at `heard_at` (epoch ms)."""
    return f"last heartbeat {format_duration(max(0, one.order.at - heard_at))} ago"


def _without_agent(task: Task, record: StepRecord) -> Iterator[str]:
    """Yield until when a sleep lasts or a signal is waited for, and which signal has come."""
    wait = record.situation
    if isinstance(wait, WithoutAgent) and task.ending is None and not task.ended:
        what = "asleep" if isinstance(wait, Asleep) else "waits for its signal"
        yield f"{what} since {second(wait.since)}, until {second(wait.until)}"
    if record.signal is not None:
        yield f"ended by the signal {record.signal}"


def _added_time(record: StepRecord) -> Iterator[str]:
    if record.extra:
        yield f"{format_duration(record.extra)} more time, from its next attempt on"
    if record.granted and not isinstance(record.situation, Ended):
        yield f"{format_duration(record.granted)} more time in each attempt"


def retry_words(one: StepFacts) -> Iterator[str]:
    """Yield why and until when a step is retried, if it is retried for a time."""
    task, record = one.order.task, one.record
    until = record.retry_window.until
    waits = record.process_state in _RETRIED and not task.ended
    if until is None or record.error is None or not waits:
        return
    if record.operation == PERFORM:
        until = min(until, task.perform_by)
    error = record.error
    why = f"an unexpected error ({error.type}) in the agent's code; " if error.unexpected else ""
    yield f"{why}retried until {second(until)}"


def poll_words(one: StepFacts) -> Iterator[str]:
    """Yield how often a step was polled until now, when again, and until when."""
    task, record, at = one.order.task, one.record, one.order.at
    polling = record.polling
    if polling is None:
        return
    polled = f"{polling.words(at)}, since {second(polling.since)}"
    if task.ended:
        yield polled
        return
    again = ""
    if isinstance(record.situation, WaitsUntil) and record.situation.not_before > at:
        again = f"; again at {second(record.situation.not_before)}"
    yield f"{polled}{again}; until {second(min(polling.until, task.perform_by))} at most"


def wait_words(step: StepPlan) -> str:
    """Return for what, how long or until when a step without an agent waits by its plan.

    Empty for any other step.
    """
    match step.awaits:
        case SignalPlan(name, within):
            then = "" if step.otherwise is None else ", and goes on without it"
            return f"waits for the signal {name} for {format_duration(within)}{then}"
        case SleepUntilPlan(instant):
            return f"sleeps until {instant}"
        case SleepForPlan(duration):
            return f"sleeps for {format_duration(duration)}"
        case None:
            return ""


def _held(one: StepFacts) -> str:
    record, at = one.record, one.order.at
    if waits_for_turn(record):
        turn = one.order.turn
        return f"waits for {'its turn' if turn is None else turn.words}"
    since = f"held since {second(record.held_since or at)}"
    found = [
        f"{hold.target} {hold_words(hold)}, until {second(hold.until)}"
        for hold in holds_of(one.order.task, record, one.step, one.order.holds)
    ]
    if found:
        return f"{since}: {'; '.join(found)}"
    why = f" ({record.error.message})" if record.error else ""
    if record.not_before is None or record.not_before <= at:
        return f"{since}{why}"
    return f"{since}{why}; the next check is at {second(record.not_before)}"


def holds_of(
    task: Task, record: StepRecord, step: StepPlan | None, holds: Sequence[Hold]
) -> list[Hold]:
    """Return the holds for which the step waits: on its order, and on its agent.

    Of a step that is at no agent yet, those on all its agents.
    """
    agents = {record.agent} if record.agent else set(step.agents if step else ())
    return [
        hold
        for hold in holds
        if hold.agent in agents
        or (
            hold.holds_order(task.workflow, task.task_id)
            and (record.operation == PERFORM or hold.undos)
        )
    ]


def _again(record: StepRecord) -> str:
    if record.heartbeat_by is None:
        return ""
    return f"; overdue without a heartbeat by {second(record.heartbeat_by)}"


def reminder_words(one: StepFacts) -> str:
    """Return how often a step that waits was reminded of, and when the next reminder is due.

    The text follows a sentence; it is empty if the step has no reminders. None is sent at or after
    the end of the wait, or for a task that is to end.
    """
    wait, reminders = one.record.situation, one.record.reminders
    if not isinstance(wait, AwaitsCallback) or wait.remind_at is None:
        return ""
    times = "once" if reminders == 1 else f"{reminders} times"
    reminded = f"reminded {times}" if reminders else "not reminded yet"
    if not one.order.task.performs(one.name) or wait.remind_at >= wait.until:
        return f"; {reminded}"
    return f"; {reminded}, next at {second(wait.remind_at)}"


def agent_words(record: StepRecord, step: StepPlan | None) -> str:
    """Return the current and the tried agents; empty if it is the step's first agent."""
    if record.tried:
        now_at = f"{record.agent}, " if record.agent and record.agent not in record.tried else ""
        return f"{now_at}after {', '.join(record.tried)}"
    if record.agent is None or step is None or record.agent == step.agent:
        return ""
    return record.agent


def span(names: Sequence[str]) -> str:
    """Return the steps' names, with the items of a fan-out together: `pick[0-4,7], mail`.

    Of more than MOST_ADDED_NAMES added steps of one kind, it has only the number: `leg (98 steps)`.
    """
    added = Counter(step_of(name) for name in names if is_added(name))
    many = {kind: count for kind, count in added.items() if count > MOST_ADDED_NAMES}
    found: dict[str, list[int]] = {}
    for name in names:
        item = item_place(name)
        step, place = item if item else (name, None)
        if is_added(name) and (count := many.get(step_of(name))):
            step = f"{step_of(name)} ({count:,} steps)"
        found.setdefault(step, []).extend([] if place is None else [place])
    return ", ".join(_places(step, places) for step, places in found.items())


def is_added(name: str) -> bool:
    """Whether this is the name of a step that was added at run time: `leg[a]`."""
    return step_of(name) != name and item_place(name) is None


def _places(step: str, places: list[int]) -> str:
    if not places:
        return step
    text = f"{step}[{','.join(_ranges(sorted(places)))}]"
    return text if len(text) <= _LONGEST_SPAN else f"{step} ({len(places)} items)"


def _ranges(places: Iterable[int]) -> list[str]:
    """Return ascending integers as ranges: `0-4`, `7`."""
    ranges: list[tuple[int, int]] = []
    for place in places:
        if ranges and ranges[-1][1] == place - 1:
            ranges[-1] = (ranges[-1][0], place)
        else:
            ranges.append((place, place))
    return [str(first) if first == last else f"{first}-{last}" for first, last in ranges]


def last_error(record: StepRecord) -> str:
    """Return the last error of the step; empty if there is none.

    The hold of a parked step is left out, because `step_facts` describes it.
    """
    error = record.error
    if error is None or (error.type == HELD and record.held_since is not None):
        return ""
    return error_words(error.type, error.message)


def error_words(kind: str, message: str) -> str:
    """Return an error in one line: its type and its message, each if there is one."""
    return ": ".join(filter(None, (kind, message)))
