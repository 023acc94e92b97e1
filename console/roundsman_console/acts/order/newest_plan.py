"""The newest plan of a workflow: what the deployed submission function knows.

The function is invoked directly. It stores the plan and checks whether the inputs of orders are
valid under it, because only the deployed code has the workflows and their input types.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from roundsman.aws.errors import aws_errors
from roundsman.aws.outputs import LIVE
from roundsman.definition.plan import Plan
from roundsman.definition.plan_differences import differences
from roundsman.errors import InvalidMessage, Problem
from roundsman.model.corrections import corrected
from roundsman.model.events import Move, OperatorEvent, Resubmit
from roundsman.model.json import Json
from roundsman.model.task import Task
from roundsman.wire.newest_plan import NewestPlanAnswer, NewestPlanQuestion, read_answer
from roundsman_console.acts.changes import PlanMove
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import InspectorError

MOST_INPUTS = 20
"""The maximum number of inputs in one question: an event of Lambda has at most 6 MB, and an order
at most 200 KiB."""


def newest_plan(stack: DeployedStack, workflow: str) -> NewestPlanAnswer:
    """Ask for the newest plan of a workflow. It is stored afterwards, and its hash is not None.

    Raises InspectorError if the deployed application has no such workflow, or if the function did
    not answer; TryAgain or CallRefused if it could not be invoked.
    """
    found = _ask(stack, NewestPlanQuestion(workflow))
    if found.plan is None:
        raise InspectorError(
            f"The deployed application has no workflow {workflow}: it was removed or renamed. "
            "Leave the order its own plan, or deploy the workflow again."
        )
    return found


def under_newest_plan(event: OperatorEvent, plan: str) -> OperatorEvent:
    """Return the command with the hash of the plan under which the task is to continue."""
    return replace(event, plan=plan) if isinstance(event, Resubmit | Move) else event


def named_plan(stack: DeployedStack, event: OperatorEvent) -> Plan | None:
    """Return the plan that a command names; None if it names none, or if that is not stored."""
    if not isinstance(event, Resubmit | Move) or event.plan is None:
        return None
    return stack.plans.plan(event.plan)


def plan_move(before: Plan | None, own: str, after: Plan) -> PlanMove:
    """Return the change from the plan `before`, with the hash `own`, to the plan `after`."""
    found = None if before is None else differences(before, after)
    return PlanMove(own, after.hash, found)


def invalid_inputs(
    stack: DeployedStack, workflow: str, event: OperatorEvent, tasks: Sequence[Task]
) -> Iterator[tuple[str, str]]:
    """Yield each order whose input is not valid under the newest plan, and the reason.

    The input is checked with the corrections of `tasks` and of the command. An order that is not
    stored is left out. Raises what `newest_plan` raises.
    """
    changes = event.changes if isinstance(event, Resubmit) else ()
    for first in range(0, len(tasks), MOST_INPUTS):
        part = tasks[first : first + MOST_INPUTS]
        inputs: dict[str, Json] = {}
        for task in part:
            row = stack.tasks.order(task.task_id)
            if row is None:
                continue
            with suppress(ValueError):  # the engine refuses a correction that cannot be made
                inputs[task.task_id] = corrected(task.input(row.content), [changes])
        found = _ask(stack, NewestPlanQuestion(workflow, inputs))
        for order, problems in found.problems.items():
            yield (
                order,
                f"its input is not valid under the newest plan: {problem_words(problems, 3)}",
            )


def problem_words(problems: Sequence[Problem], most: int) -> str:
    """Return at most `most` problems of an input in words, and the number of the others."""
    shown = "; ".join(map(str, problems[:most]))
    more = len(problems) - most
    return f"{shown}; and {more} more" if more > 0 else shown


def _ask(stack: DeployedStack, question: NewestPlanQuestion) -> NewestPlanAnswer:
    function = stack.output("SubmissionFunctionName")
    with aws_errors("asking the submission function for its newest plan"):
        reply = stack.lambda_client.invoke(
            FunctionName=function, Qualifier=LIVE, Payload=json.dumps(question.event())
        )
        body = reply["Payload"].read()
    if reply.get("FunctionError"):
        raise InspectorError(
            f"The submission function {function} failed, so its newest plan is not known. Read its "
            "log, and deploy again if its code cannot be imported."
        )
    try:
        answer: Mapping[str, Json] = json.loads(body)
        return read_answer(answer)
    except (ValueError, InvalidMessage) as error:
        raise InspectorError(
            f"The submission function {function} did not answer which plan is its newest: it is of "
            "an older version. Deploy the stack again with this version of roundsman."
        ) from error
