"""Enough of many: a step that comes after some steps of which not all have to succeed."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from roundsman.definition.expressions import read_without_default
from roundsman.errors import DefinitionError
from roundsman.model.checks import check_count

if TYPE_CHECKING:
    from roundsman.definition.workflow import Step, Workflow


class AnyOf:
    """What a step comes after: `after=AnyOf(ask_air, ask_sea, ask_road, enough=2)`.

    The step begins when `enough` of these steps have succeeded. The others are not needed then: one
    that has not begun is Skipped, and one that may have taken effect is undone and then Skipped.
    The step does not wait for that, and the task is not Completed before it. As soon as so many
    have failed that `enough` cannot succeed any more, the task fails by the last one's strategy. A
    step with `for_each` is one of these steps, with all of its items. Raises DefinitionError if it
    can never be so.
    """

    __slots__ = ("enough", "steps")

    steps: "tuple[Step | str, ...]"
    enough: int

    def __init__(self, *steps: "Step | str", enough: int = 1) -> None:
        from roundsman.definition.workflow import Step  # it reads this module

        for step in steps:
            if not isinstance(step, Step | str):
                raise DefinitionError(
                    f"AnyOf has {step!r}; it must have steps or their names, such as "
                    "AnyOf(ask_air, ask_sea, enough=1)"
                )
        check_count("AnyOf: enough", enough)
        if enough > len(steps):
            raise DefinitionError(
                f"AnyOf has {len(steps)} steps, and enough={enough} is above that"
            )
        self.steps, self.enough = steps, enough

    def __iter__(self) -> "Iterator[Step | str]":
        return iter(self.steps)

    def __repr__(self) -> str:
        names = (step if isinstance(step, str) else step.name for step in self.steps)
        return f"AnyOf({', '.join(names)}, enough={self.enough})"


def check_any_of(where: str, workflow: "Workflow") -> None:
    """Raise DefinitionError for a step of an AnyOf, or an item of a list with `enough`, that cannot
    be one of many: the rest of the workflow needs it, or what it has done could not be undone."""
    listed = {step.name: step for step in workflow.steps}
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
            _check_only_follower(place, member, step, workflow.steps)
            _check_reads(place, name, workflow.steps)


def _check_member(place: str, step: "Step", workflow: "Workflow") -> None:
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


def _check_only_follower(
    place: str, member: "Step", follower: "Step", steps: "Sequence[Step]"
) -> None:
    for other in steps:
        if other is not follower and member.name in other.after_names():
            raise DefinitionError(
                f"{place}, and {other.name!r} comes after it as well; only {follower.name!r} can "
                f"follow a step that may not be needed: put {other.name!r} after {follower.name!r}"
            )


def _check_reads(place: str, name: str, steps: "Sequence[Step]") -> None:
    for other in steps:
        for what, expression in other.expressions():
            if name in read_without_default(expression):
                raise DefinitionError(
                    f"{place}, and {what} of step {other.name!r} reads its result, which is null "
                    f"if it was not needed or has failed; write results.{name} || another value"
                )
