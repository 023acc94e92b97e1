"""Results that are left out of the record: of steps that have succeeded.

The function has returned, so the effect stands. A result that does not fit in the record, or that
cannot be taken, says nothing about the effect: the step is done, and its result is marked as left
out (`StepRecord.left_out`). It is never null. If it is JSON of at most LARGEST_KEPT_RESULT bytes,
the whole of it is in a row beside the record.

Who reads a result? An expression that names it, and each step with an agent that comes after it,
also one that may still be added: its request has the results. The step's own undo and probe are
told that it was left out. If nobody reads it, the task goes on. Otherwise the step awaits its
result: what comes after it waits, other branches go on, and a person gives the result (`resolve`).
The time of the wait is given back to the task, and at its deadline the task is archived.
"""

from collections import Counter
from collections.abc import Iterator

from roundsman.definition.expressions import paths_read
from roundsman.definition.plan import SleepUntilPlan, StepPlan
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.history import RESULT_LEFT_OUT, few_words
from roundsman.engine.step_values import step_values
from roundsman.engine.transitions import StepEvent
from roundsman.model.json import Json
from roundsman.model.record_limits import (
    LARGEST_KEPT_RESULT,
    LARGEST_RESULT_ROW,
    LONGEST_WHY_LEFT_OUT,
    MOST_RESULT_ROWS,
    cut,
)
from roundsman.model.situations import End
from roundsman.model.states import SETTLED, ProcessState
from roundsman.model.task import LeftOut, StepError, step_of

ADDED_LATER = "steps that may be added"


def left_out_of(
    context: DecisionContext, name: str, result: Json, size: int | None, why: str
) -> LeftOut:
    """What the record has in place of this result of `size` bytes of JSON, and the row for it.

    With None for `size`, the reply does not have the result.
    """
    why = cut(why, LONGEST_WHY_LEFT_OUT)
    row = None if size is None else _row_for(context, name, size)
    return LeftOut(why, size or 0, row, whole=None if row is None else result)


def note_untaken(context: DecisionContext, step: StepPlan, error: StepError, *, adds: bool) -> None:
    """Record that an attempt has taken effect, and that nothing of its reply can be taken.

    `adds`: it adds steps, which the task lacks then. The step is attempted again, under its key.
    """
    why = cut(f"{error.type}: {error.message}", LONGEST_WHY_LEFT_OUT)
    context.decision.change(step.name, step_values(left_out=LeftOut(why, lacks_steps=adds)))


def complete_without_result(context: DecisionContext, step: StepPlan, left_out: LeftOut) -> None:
    """Complete the step, whose result was left out; it awaits the result if somebody reads it.

    A task that is ending performs nothing more, so nobody reads it then.
    """
    decision = context.decision
    ending, found = decision.ending is not None, readers(context, step.name)
    waits = not ending and (bool(found) or left_out.lacks_steps)
    decision.move(
        step.name,
        StepEvent.SUCCEEDED,
        decision.ended(step.name, End.AWAITS_RESULT if waits else End.SUCCEEDED),
        step_values(
            finished_at=context.now,
            result=None,
            left_out=left_out,
            error=None,
            outcome_unknown=False,
            effect=None,
        ),
    )
    if left_out.lacks_steps:
        then = "the steps that it adds are missing"
    elif found:
        then = f"it would be read by {few_words(found)}"
    else:
        then = "nobody reads it"
    waiting = "; what comes after it waits" if waits else ""
    reason = f"{step.name}: processed, and its result was left out: {left_out.why}; {then}{waiting}"
    decision.record(RESULT_LEFT_OUT, step.name, None, reason)


def readers(context: DecisionContext, name: str) -> list[str]:
    """The steps that are not over and would read the result of this step; empty if nobody does."""
    plan, decision = context.plan, context.decision
    later, named = plan.after_any((name,)), step_of(name)
    is_open = [
        one
        for one in plan.steps.values()
        if one.name != name and decision.step(one.name).process_state not in SETTLED
    ]
    found = [
        one.name
        for one in is_open
        if _names_it(one, named) or (one.name in later and _gets_results_of(one, name))
    ]
    # An expression of a kind of added steps reads the order only.
    kinds_read = any(kind.agents for kind in plan.kinds.values())
    can_be_added = len(decision.task.added) < plan.most_added and any(one.agents for one in is_open)
    return [*found, ADDED_LATER] if kinds_read and can_be_added else found


def why_not_to_be_read(context: DecisionContext) -> str | None:
    """Why the task cannot go on by a command: somebody would read a result that was left out.

    `context` is that after the command. None if nobody would.
    """
    for name, record in context.decision.steps.items():
        if record.process_state is not ProcessState.PROCESSED or record.left_out is None:
            continue
        lacking = record.awaits_result or record.left_out.lacks_steps
        if name in context.plan.steps and (lacking or readers(context, name)):
            found = few_words(readers(context, name)) or "the task"
            return (
                f"the result of {name} was left out ({record.left_out.why}), and {found} would "
                f"read it: resolve {name} with its result first"
            )
    return None


def _gets_results_of(step: StepPlan, name: str) -> bool:
    """Whether the requests of the step, which comes after the other one, have its result."""
    return bool(step.agents) and (step.added_by is None or name in step.after)


def _names_it(step: StepPlan, name: str) -> bool:
    """Whether an expression of the step names the result of this step, or reads all results."""
    paths = (path for text in _expressions(step) for path in paths_read(text))
    return any(
        not path or (path[0] == "results" and (len(path) == 1 or path[1] == name)) for path in paths
    )


def _expressions(step: StepPlan) -> Iterator[str]:
    until = step.awaits.instant if isinstance(step.awaits, SleepUntilPlan) else None
    yield from (text for text in (step.when, step.for_each, until) if text is not None)


def _row_for(context: DecisionContext, name: str, size: int) -> int | None:
    """The number of the row beside the record that gets the result; None if there is no room."""
    if size > LARGEST_KEPT_RESULT:
        return None
    used = Counter[int]()
    for other, record in context.decision.steps.items():
        kept = record.left_out
        if other != name and kept is not None and kept.row is not None:
            used[kept.row] += kept.size
    row = max(used, default=0)
    if used[row] + size > LARGEST_RESULT_ROW:
        row += 1
    return row if row < MOST_RESULT_ROWS else None
