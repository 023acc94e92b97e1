"""Checks of workflows in which only enough of many steps have to succeed."""

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter

from roundsman.definition.expressions import read_without_default
from roundsman.definition.workflow import AnyOf, Step, Workflow
from roundsman.errors import DefinitionError


def check_enough_of_many(where: str, workflow: Workflow) -> None:
    """Raise DefinitionError for a step of an AnyOf, or an item of a list with `enough`, that cannot
    be one of many: the rest of the workflow needs it, or what it has done could not be undone."""
    listed = {step.name: step for step in workflow.steps}
    before = _before(workflow.steps)
    for step in workflow.steps:
        if step.enough is not None:
            _check_member(f"{where}: step {step.name!r} has enough={step.enough}", step, workflow)
        if not isinstance(step.after, AnyOf):
            continue
        for name in step.after_names():
            member = listed[name]
            place = f"{where}: step {name!r} is one of {step.after!r}"
            if member.enough is not None:
                raise DefinitionError(
                    f"{place}, and has enough itself; give the number in one of the two places"
                )
            _check_member(place, member, workflow)
            _check_begins_with_all(place, name, [before[one] for one in step.after_names()], before)
            _check_only_follower(place, member, step, workflow.steps)
            _check_reads(place, name, workflow.steps)


def _check_member(place: str, step: Step, workflow: Workflow) -> None:
    if step is workflow.point_of_no_return:
        raise DefinitionError(
            f"{place}, and is the point of no return, which may not be undone; make the step after "
            "it the point of no return"
        )
    if step.agent_names() and step.compensation is None and not step.keep:
        raise DefinitionError(
            f"{place}, and has no compensation, so what it has done could not be undone if it is "
            "not needed; give it a compensation, or keep=True if that may stay"
        )


def _before(steps: Sequence[Step]) -> Mapping[str, frozenset[str]]:
    """The names of all direct and indirect predecessors of each step."""
    after = {step.name: step.after_names() for step in steps}
    found: dict[str, frozenset[str]] = {}
    for name in TopologicalSorter(after).static_order():
        found[name] = frozenset(after[name]).union(*(found[one] for one in after[name]))
    return found


def _check_begins_with_all(
    place: str,
    name: str,
    of_members: Sequence[frozenset[str]],
    before: Mapping[str, frozenset[str]],
) -> None:
    """What comes before one of the steps only would go on, and stand, if that is not needed."""
    apart = sorted(before[name] - frozenset.intersection(*of_members))
    if apart:
        raise DefinitionError(
            f"{place}, and comes after {apart[0]!r}, which does not come before all of them, and "
            f"would stand if {name!r} is not needed; make both one step, or put {apart[0]!r} "
            "before all of them"
        )


def _check_only_follower(place: str, member: Step, follower: Step, steps: Sequence[Step]) -> None:
    for other in steps:
        if other is not follower and member.name in other.after_names():
            raise DefinitionError(
                f"{place}, and {other.name!r} comes after it as well; only {follower.name!r} can "
                f"follow a step that may not be needed: put {other.name!r} after {follower.name!r}"
            )


def _check_reads(place: str, name: str, steps: Sequence[Step]) -> None:
    for other in steps:
        for what, expression in other.expressions():
            if name in read_without_default(expression):
                raise DefinitionError(
                    f"{place}, and {what} of step {other.name!r} reads its result, which is null "
                    f"if it was not needed or has failed; write results.{name} || another value"
                )
