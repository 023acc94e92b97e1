"""Answers which plan the deployed code has for a workflow, and stores it.

A plan is stored when the first order is submitted under it. An operator may want a failed task to
continue under a plan that was deployed to repair it, and that no order uses yet.
"""

from collections.abc import Mapping, Sequence

from roundsman.definition.input_types import check_stored_input, defines_stored_input
from roundsman.definition.workflow import Workflow
from roundsman.errors import InvalidInput, Problem
from roundsman.model.json import Json
from roundsman.ports import PlanStore
from roundsman.wire.newest_plan import NewestPlanAnswer, NewestPlanQuestion


def answer_question(
    question: NewestPlanQuestion, workflows: Mapping[str, Workflow], plans: PlanStore
) -> NewestPlanAnswer:
    """Return the newest plan of a workflow, after it was stored.

    `workflows` are those of the application. Raises TryAgain or CallRefused if the plan cannot be
    stored.
    """
    named = {workflow.name: workflow for workflow in workflows.values()}
    workflow = named.get(question.workflow)
    if workflow is None:
        return NewestPlanAnswer(None)
    plan = workflow.plan
    plans.put_plan(plan)
    found = {order: _problems(workflow, content) for order, content in question.inputs.items()}
    invalid = {order: problems for order, problems in found.items() if problems}
    return NewestPlanAnswer(plan.hash, defines_stored_input(workflow.input), invalid)


def _problems(workflow: Workflow, content: Json) -> Sequence[Problem]:
    if not isinstance(content, Mapping):
        return [Problem("", "must be an object")]
    try:
        check_stored_input(workflow.input, content)
    except InvalidInput as error:
        return error.problems
    return ()
