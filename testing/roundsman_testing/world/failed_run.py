"""What the end of a failed run says of the order that it is about."""

from collections.abc import Iterator
from dataclasses import dataclass

from roundsman.model.instants import format_duration
from roundsman.model.situations import NotBegun
from roundsman.model.states import SETTLED
from roundsman.model.task import StepRecord, Task

LONGEST = 300
"""The most characters of a line."""


@dataclass
class StepCalls:
    """The calls of an agent's functions for one step of one order."""

    made: int = 0
    error: Exception | None = None
    """What the last call that failed has raised."""


CallsOfSteps = dict[tuple[str, str], StepCalls]
"""The calls for each step, by the ids of its order and its step."""


def one_line(text: str) -> str:
    """The text in one line, cut if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


def of_order(task: Task, calls: CallsOfSteps, now: int) -> Iterator[str]:
    """Yield three lines: the order, its open step with its attempts, and the last error.

    Of several open steps it is the one with the most calls. `now` is epoch ms.
    """
    since = format_duration(max(0, now - task.created_at))
    yield one_line(f"order: {task.task_id} of {task.workflow}, {task.state}, begun {since} ago")
    begun = {name: record for name, record in task.steps.items() if _is_open(record)}
    if not begun:
        yield "open step: none"
        yield f"last error: {_last_error(task, calls)}"
        return
    name = max(begun, key=lambda one: _calls(task, one, calls).made)
    made, failed = _calls(task, name, calls).made, begun[name].failure_count
    more = f"; {len(begun) - 1} more are open" if len(begun) > 1 else ""
    state = begun[name].process_state
    tried = f"{_counted(made, 'call')}, {_counted(failed, 'failed attempt')}"
    yield one_line(f"open step: {name}, {state}: {tried}{more}")
    yield one_line(f"last error: {_error(task, name, calls) or 'none'}")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _is_open(record: StepRecord) -> bool:
    return record.process_state not in SETTLED and not isinstance(record.situation, NotBegun)


def _last_error(task: Task, calls: CallsOfSteps) -> str:
    """The error of the step that has been called most, of those that have one."""
    names = sorted(task.steps, key=lambda one: -_calls(task, one, calls).made)
    found = ((name, _error(task, name, calls)) for name in names)
    return next((one_line(f"{name}: {error}") for name, error in found if error), "none")


def _calls(task: Task, name: str, calls: CallsOfSteps) -> StepCalls:
    return calls.get((task.task_id, name)) or StepCalls()


def _error(task: Task, name: str, calls: CallsOfSteps) -> str:
    """What the function has raised, or else what the record says; empty without an error."""
    raised, recorded = _calls(task, name, calls).error, task.step(name).error
    if raised is not None:
        return f"{type(raised).__name__}: {raised}"
    return "" if recorded is None else f"{recorded.type}: {recorded.message}"
