"""The question for the newest plan of a workflow, and its answer.

Only the deployed submission function knows the workflows of the application. It is invoked directly
with the question as its event. It stores the plan, so that a task may continue under it although no
order was submitted since the deployment.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from roundsman.errors import InvalidMessage, Problem
from roundsman.model.json import Json
from roundsman.wire.commands import PLAN_HASH
from roundsman.wire.fields import Fields

QUESTION = "newestPlan"
"""The only field of the event."""


@dataclass(frozen=True, slots=True)
class NewestPlanQuestion:
    """Asks for the newest plan of a workflow, and whether inputs are valid under it."""

    workflow: str
    """The name of the workflow."""
    inputs: Mapping[str, Json] = field(default_factory=dict, repr=False)
    """The stored contents of orders by their ids. They may be customer data."""

    def event(self) -> dict[str, Json]:
        """Return the event that the function is invoked with."""
        return {QUESTION: {"workflow": self.workflow, "inputs": {**self.inputs}}}


@dataclass(frozen=True, slots=True)
class NewestPlanAnswer:
    """What the deployed code knows of the workflow."""

    plan: str | None
    """The hash of the plan, which is stored; None if the application has no such workflow."""
    checks_input: bool = False
    """Whether the workflow has an input type."""
    problems: Mapping[str, Sequence[Problem]] = field(default_factory=dict)
    """The problems of the inputs that are not valid, by order."""

    def document(self) -> dict[str, Json]:
        """Return the answer as JSON."""
        return {
            "plan": self.plan,
            "checksInput": self.checks_input,
            "problems": {
                order: [{"path": one.path, "message": one.message} for one in problems]
                for order, problems in self.problems.items()
            },
        }


def read_question(value: Json) -> NewestPlanQuestion:
    """Read the value of the event's field. Raises InvalidMessage."""
    fields = _object(value, QUESTION)
    question = NewestPlanQuestion(fields.text("workflow"), fields.mapping("inputs"))
    fields.done()
    return question


def read_answer(value: Json) -> NewestPlanAnswer:
    """Read the function's answer. Raises InvalidMessage if it is not an answer to the question."""
    fields = _object(value, "answer")
    if "plan" not in fields.names:
        fields.problem("plan", "missing")
    plan = fields.optional_text("plan")
    if plan is not None and not PLAN_HASH.fullmatch(plan):
        fields.problem("plan", "must be the hash of a plan")
    checks_input = fields.flag("checksInput")
    found = fields.mapping("problems")
    fields.done()
    return NewestPlanAnswer(plan, checks_input, {order: _problems(found[order]) for order in found})


def _problems(value: Json) -> tuple[Problem, ...]:
    if not isinstance(value, list):
        raise InvalidMessage([Problem("problems", "must be lists")])
    found = [_object(one, "problem") for one in value]
    return tuple(Problem(one.text("path", empty=True), one.text("message")) for one in found)


def _object(value: Json, what: str) -> Fields:
    if not isinstance(value, Mapping):
        raise InvalidMessage([Problem(what, "must be an object")])
    return Fields(value)
