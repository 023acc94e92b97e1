"""Steps of which only enough have to succeed: `AnyOf`, and a fan-out with `enough`.

A quorum is reached as soon as so many of its members have succeeded. Those that were the first are
kept, and the step after them begins. The others are not needed any more: one that was never claimed
is Skipped, one that may have taken effect is undone and then Skipped, and one whose request is at
its agent goes on until it has ended, and is undone then. A quorum cannot be reached any more if too
many members have failed: then the task fails by the strategy of the last one of them.

All of that follows from the plan and the records; nothing is stored about a quorum.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from roundsman.definition.plan import Plan, Quorum, QuorumMember, StepPlan
from roundsman.model.json import Json
from roundsman.model.states import OVER, ProcessState
from roundsman.model.task import AfterUndo, StepRecord, Task, step_of

Records: TypeAlias = Callable[[str], StepRecord]
"""The record of a step by its name: of a task, or of a decision about it."""

FAILED = frozenset({ProcessState.ERROR, ProcessState.UNDO_ERROR, ProcessState.SKIPPED})
"""The states of a member, or of an item, that has not succeeded and will not. An item is Skipped
for no other reason; a member also if its condition is false, or if it has no items."""


def has_failed(record: StepRecord) -> bool:
    """Whether the item, or the step, has failed, or is being left out."""
    return record.after_undo is AfterUndo.SKIPPED or record.process_state in FAILED


def is_unblocked(plan: Plan, step: Records, one: StepPlan) -> bool:
    """Whether every step that this one comes after is done, or enough of them are.

    A closing step begins when those before it are over, however they ended.
    """
    if one.closes:
        return all(step(name).process_state in OVER for name in one.after)
    return all(step(name).done or is_enough(plan, step, name) for name in one.after)


def is_enough(plan: Plan, step: Records, name: str) -> bool:
    """Whether the step is one of many of which enough have succeeded."""
    quorum = plan.quorums.get(name)
    return quorum is not None and _is_reached(quorum, step)


def results(plan: Plan, task: Task, reader: str | None = None) -> dict[str, Json]:
    """The results of the task's steps (`Task.results`); `plan` is expanded for the task.

    A member that is not needed has none, whether it has ended or not: so all requests of what comes
    after it have the same results. That also holds for one that succeeds late in a task that is
    ending, where nothing stops it. What a member has added goes on to read it: `reader` is the step
    that reads.
    """
    reached = {one.step: one for one in plan.quorums.values() if _is_reached(one, task.step)}
    found = task.results([step for step, one in reached.items() if _is_of_items(one)])
    for step, one in reached.items():
        kept = _first(one, task.step, task.step)
        for place, member in enumerate(one.members):
            if reader in member.names or member in kept:
                continue
            items = found.get(step)
            if _is_of_items(one) and isinstance(items, list):
                items[place] = None
            else:
                found.pop(step_of(member.names[0]), None)
            for name in member.names:
                found.pop(name, None)
    return found


def _is_of_items(quorum: Quorum) -> bool:
    """Whether the members are the items of a step with `enough`."""
    return step_of(quorum.members[0].names[0]) == quorum.step


def _is_reached(quorum: Quorum, step: Records) -> bool:
    return sum(_has_succeeded(member, step) for member in quorum.members) >= quorum.enough


def is_unneeded(plan: Plan, step: Records, before: Records, name: str) -> bool:
    """Whether the step is a member, or a part of one, that is not needed any more.

    That is so if the member has failed, or if enough others were first. `before` has the records
    before the decision: those that had succeeded by then were first, whatever the clocks say.
    """
    quorum = plan.quorums.get(name)
    if quorum is None:
        return False
    [mine] = (member for member in quorum.members if name in member.names)
    if _is_lost(mine, step):
        return True
    kept = _first(quorum, step, before)
    return len(kept) == quorum.enough and mine not in kept


def _first(quorum: Quorum, step: Records, before: Records) -> list[QuorumMember]:
    """The members that have succeeded first, at most as many as are enough; by `before`, then by
    their times."""
    succeeded = [member for member in quorum.members if _has_succeeded(member, step)]
    succeeded.sort(key=lambda one: (not _has_succeeded(one, before), _finished_at(one, step)))
    return succeeded[: quorum.enough]


def added_after(plan: Plan, name: str) -> list[str]:
    """The steps that come after this one and are a part of the same member."""
    [mine] = (member for member in plan.quorums[name].members if name in member.names)
    return [one for one in plan.later(name) if one in mine.names]


class Losses(NamedTuple):
    """How many of some steps have failed, and how many may fail."""

    failed: int
    may_fail: int

    @property
    def too_many(self) -> bool:
        """Whether more have failed than may."""
        return self.failed > self.may_fail


def losses(plan: Plan, step: Records, name: str, *, more: bool = False) -> Losses | None:
    """Return how many members of the step's quorum have failed, and how many may.

    `more` counts the step's own member as failed. None if the step is no member.
    """
    quorum = plan.quorums.get(name)
    if quorum is None:
        return None
    failed = sum(
        _is_lost(member, step) or (more and name in member.names) for member in quorum.members
    )
    return Losses(failed, len(quorum.members) - quorum.enough)


def _has_succeeded(member: QuorumMember, step: Records) -> bool:
    records = [step(name) for name in member.names]
    states = {record.process_state for record in records}
    done = ProcessState.PROCESSED in states and all(record.done for record in records)
    return done and not _is_lost(member, step)


def _is_lost(member: QuorumMember, step: Records) -> bool:
    """Whether more of the member have failed than may."""
    failed = [name for name in member.names if has_failed(step(name))]
    return len(failed) > member.may_fail or any(one not in member.instances for one in failed)


def _finished_at(member: QuorumMember, step: Records) -> int:
    return max(step(name).finished_at or 0 for name in member.names)
