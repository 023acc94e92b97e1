"""Reading how the steps of a workflow did: from the metrics of the stack, and nothing else.

What the profile or a parameter leaves out is not asked for, and says so. The steps of a workflow
are those of a plan: no table lists the workflows of a stack.
"""

from collections.abc import Mapping, Sequence

from roundsman.definition.plan import Plan, plan_of
from roundsman_console.aws.metrics import StepKey, read_step_series, read_step_times
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import InvalidArgument, NotFound
from roundsman_console.base.typed_inputs import read_workflow
from roundsman_console.facts.application import application_workflows
from roundsman_console.facts.course.marks import read_versions_of
from roundsman_console.facts.course.reading import step_metrics_missing
from roundsman_console.facts.orders.listing import WITHIN, find
from roundsman_console.facts.orders.selection import Selection
from roundsman_console.facts.workflow.health import (
    PERIODS,
    Health,
    health_of,
    window_of,
    with_versions,
)

LOOKED_AT = 50
"""The number of orders among which the newest one is sought: of each lane, those that ended last
come first."""

StepsToRead = Mapping[StepKey, tuple[Sequence[str], int]]
"""The agents of each step, and the longest time of an attempt in ms."""


def read_period(text: str) -> str:
    """Return a period of PERIODS. Raises InvalidArgument if there is no such period."""
    if text not in PERIODS:
        raise InvalidArgument(f"{text[:50]!r} is no period. It is one of {', '.join(PERIODS)}.")
    return text


def newest_plan_of(stack: DeployedStack, workflow: str) -> Plan:
    """Return the plan of the newest order of a workflow that is found in a second.

    Without an order it is that of the application in this folder. Raises NotFound if there is
    neither, InspectorError if the workflows of the application cannot be imported, and
    InvalidArgument if no workflow can have the name.
    """
    of_workflow = Selection(workflow=read_workflow(workflow))
    page = find(stack, of_workflow, limit=LOOKED_AT, within=WITHIN, newest_first=True)
    for task in sorted(page.tasks, key=lambda one: -one.created_at):
        plan = stack.plans.plan(task.plan)
        if plan is not None:
            return plan
    own = (application_workflows() or {}).get(workflow)
    if own is None:
        raise NotFound(
            f"{stack.name} keeps no order of the workflow {workflow}, so its steps are not known. "
            "In the folder of the application they are."
        )
    return plan_of(own)


def steps_of(plan: Plan) -> StepsToRead:
    """Return the steps of a plan that an agent performs, also those that may be added, and the
    closing steps."""
    return {
        (plan.workflow, step.name): (step.agents, step.complete_within)
        for step in plan.all_steps
        if step.agents
    }


def read_health(stack: DeployedStack, steps: StepsToRead, period: str, at: int) -> Health:
    """Read how the steps did in the period of PERIODS that ends at `at` (epoch ms).

    It is at most ten requests to CloudWatch for 300 steps, with seven metrics a step, and one to
    Lambda for each agent of a step that is worse. Raises the errors of boto3.
    """
    window, missing = window_of(period, at), step_metrics_missing(stack)
    if missing is not None or not steps:
        return health_of(steps, {}, {}, frozenset(), window, missing=missing)
    keys = [*steps]
    times = read_step_times(stack, keys, window.since, window.until)
    series, measured = read_step_series(stack, keys, window.usual_since, window.until, window.every)
    health = health_of(steps, times, series, measured, window)
    agents = {agent for one in health.steps if one.worse for agent in one.agents}
    published = {agent: read_versions_of(stack, agent) for agent in sorted(agents)}
    return with_versions(health, published)
