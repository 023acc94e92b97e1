"""One agent: what stops it, its steps and how they do, its versions, queues and failure groups."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from roundsman.definition.plan import Plan
from roundsman.model.failure import Group
from roundsman.model.holds import OPERATOR
from roundsman.model.instants import DAY, MINUTE
from roundsman_console.aws.links import aws_console_of
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.versions import FunctionVersions, functions_of, read_versions
from roundsman_console.base.clock import now
from roundsman_console.faces.web.readings.plans_in_use import plans_in_use
from roundsman_console.faces.web.readings.step_health import read_step_health
from roundsman_console.faces.web.readings.tenants import tenants_part
from roundsman_console.faces.web.readings.unreadable_parts import part
from roundsman_console.facts.agent.reading import find_agent
from roundsman_console.facts.course.marks import EventMark, deployment_marks, hold_marks, within
from roundsman_console.facts.overview.queues import find_queues
from roundsman_console.facts.workflow.reading import steps_of
from roundsman_console.inspector import Inspector

LOGS_OF = 60 * MINUTE
"""The time before now of which the log of the agent is shown, in ms."""
MARKED = 7 * DAY
"""The time before now of which the page has what was done, in ms."""
MOST_MARKS, MOST_GROUPS, MOST_STEPS = 20, 20, 300
"""The most of each that are shown; of the marks the newest ones."""


@dataclass(frozen=True, slots=True)
class StepAt:
    """A step that an agent performs."""

    workflow: str
    step: str
    compensates: bool
    """Whether the step has a compensation."""
    others: Sequence[str]
    """The other agents that may perform it, in the order of preference."""


def read(inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Read one agent. Raises NotFound if the stack has no such agent."""
    stack, name, at = inspector.stack, given["agent"], now()
    agent, aws = find_agent(stack, name), aws_console_of(stack)
    plans = part(lambda: plans_in_use(inspector), "the workflows in use")
    steps = steps_at(name, plans.value or ())
    planned = {key: one for plan in plans.value or () for key, one in steps_of(plan).items()}
    measured = {key: planned[key] for key in [(one.workflow, one.step) for one in steps]}
    versions = part(lambda: versions_of(stack, name), "the versions of the agent")
    return {
        "agent": agent,
        "plans": plans,
        "steps": steps[:MOST_STEPS],
        "many_steps": len(steps),
        "tenants": tenants_part(stack, [name], at),
        "health": read_step_health(inspector, f"agent {name}", measured, given)
        if measured
        else None,
        "versions": versions,
        "marks": part(lambda: marks_about(stack, name, versions.value, at), "what was done"),
        "groups": part(lambda: groups_at(stack, name), "the failure groups"),
        "queues": part(lambda: find_queues(stack, at, name), "the queues"),
        "OPERATOR": OPERATOR,
        "aws": aws,
        "log": aws.logs([name], at - LOGS_OF, at) if aws else "",
    }


def steps_at(agent: str, plans: Iterable[Plan]) -> list[StepAt]:
    """Return the steps of the plans that the agent may perform, also those that may be added, and
    the closing steps."""
    return [
        StepAt(
            plan.workflow,
            step.name,
            step.compensation is not None,
            [one for one in step.agents if one != agent],
        )
        for plan in plans
        for step in {step.name: step for step in plan.all_steps}.values()
        if agent in step.agents
    ]


def versions_of(stack: DeployedStack, agent: str) -> FunctionVersions | None:
    """Read the versions of the agent's function; None if the stack does not name it.

    Raises the errors of boto3. A local AWS has no versions.
    """
    wanted = agent.replace("_", "")
    found = (one for one in functions_of(stack.outputs).items() if one[0].lower() == wanted)
    name, function = next(found, ("", ""))
    if not name or not stack.has_cloudwatch:
        return None
    return read_versions(stack.lambda_client, name, function)


def marks_about(
    stack: DeployedStack, agent: str, versions: FunctionVersions | None, at: int
) -> list[EventMark]:
    """Return the deployments, holds and releases of the agent in MARKED, the newest first."""
    holds = [one for one in stack.holds.stored() if one.agent == agent]
    published = () if versions is None else versions.published
    marks = [*deployment_marks(published), *hold_marks(holds, at)]
    return within(marks, at - MARKED, at + 1)[::-1][:MOST_MARKS]


def groups_at(stack: DeployedStack, agent: str) -> list[Group]:
    """Return the open failure groups whose step is at the agent, the largest first."""
    found = [one for one in stack.groups.groups() if one.agent == agent]
    return sorted(found, key=lambda one: -one.count)[:MOST_GROUPS]
