"""The steps of an order as a few marks for a list: runs of steps that are alike. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from roundsman.definition.plan import Plan
from roundsman.model.states import ProcessState
from roundsman.model.task import Task, fan_out_of

MOST = 8
"""The number of marks up to which each step has its own."""

WORST_FIRST = (
    ProcessState.UNDO_ERROR,
    ProcessState.ERROR,
    ProcessState.UNDOING,
    ProcessState.PROCESSING,
    ProcessState.PENDING,
    ProcessState.UNDONE,
    ProcessState.SKIPPED,
    ProcessState.PROCESSED,
)
"""The states of the items of a fan-out, of which the first that one has is that of the step."""


@dataclass(frozen=True, slots=True)
class StepMark:
    """One step, or some steps one after the other in the same state."""

    state: ProcessState
    steps: tuple[str, ...]

    @property
    def words(self) -> str:
        """The mark in words: `charge_card Error`, `12 steps Processed`."""
        named = self.steps[0] if len(self.steps) == 1 else f"{len(self.steps)} steps"
        return f"{named} {self.state}"


def marks_of(task: Task, plan: Plan | None) -> list[StepMark]:
    """Return the marks of the steps in the plan's order; without a plan, in that of the record.

    The items of a fan-out are one step. If there are more than MOST steps, those beside each other
    in the same state share a mark.
    """
    states: dict[str, ProcessState] = {}
    for name in plan.steps if plan else ():
        states[name] = task.step(name).process_state
    items: dict[str, list[ProcessState]] = {}
    for name, record in task.steps.items():
        items.setdefault(fan_out_of(name), []).append(record.process_state)
    states |= {name: min(found, key=WORST_FIRST.index) for name, found in items.items()}
    if len(states) <= MOST:
        return [StepMark(state, (name,)) for name, state in states.items()]
    return list(_runs([*states.items()]))


def _runs(states: Sequence[tuple[str, ProcessState]]) -> Iterator[StepMark]:
    for state, alike in groupby(states, key=lambda one: one[1]):
        yield StepMark(state, tuple(name for name, _ in alike))
