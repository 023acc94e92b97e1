"""The blocks of a template: the names and times of each agent fit its steps and its code."""

from collections.abc import Iterator
from datetime import timedelta

from roundsman import Step
from roundsman.aws.queue_urls import agent_title
from roundsman_dev.check.application import Application, Rule
from roundsman_dev.check.reading import (
    ENGINE_FUNCTIONS,
    STACK,
    agents,
    at,
    bounds,
    chosen,
    default_of,
    event_sources,
    functions,
    items,
    mappings_in,
    of_type,
    queues,
    reference,
    variables,
)
from roundsman_dev.template import Json, part


def step_agents(application: Application) -> list[str]:
    """Each agent that a step of a workflow names has a function.

    The scheduler cannot send the request of another step, so its task is never completed.
    """
    known = {agent.name for agent in agents(application.template)}
    return [
        f"{workflow.name}: {step.name}: the template has no agent {name}"
        for workflow in application.workflows
        for step in workflow.all_steps
        for name in step.agent_names()
        if name not in known
    ]


def agent_names(application: Application) -> list[str]:
    """The block of each agent and its queues have the names by which the scheduler finds them.

    The scheduler computes the URLs from the agent's name (`roundsman.aws.queue_urls`). A request
    that is sent to another agent's queue is rejected there.
    """
    template, problems = application.template, list[str]()
    for agent in agents(template):
        if agent.prefix != agent_title(agent.name):
            problems.append(f"{agent.function}: its agent must be named {agent_title(agent.name)}")
        for queue in (*agent.request_queues, agent.reply_queue):
            wanted = f"{STACK}_{agent_title(agent.name)}{queue.removeprefix(agent.prefix)}"
            if at(queues(template).get(queue), "QueueName", "Fn::Sub") != wanted:
                problems.append(f"{queue}: QueueName must be {wanted}")
    return problems


def agent_times(application: Application) -> list[str]:
    """An agent's function can run for longer than any step or compensation at that agent may take.

    Otherwise Lambda ends an attempt that is still in time, and its outcome is unknown.
    """
    template, problems = application.template, list[str]()
    for agent in agents(template):
        steps = [step for step in _steps(application) if agent.name in step.agent_names()]
        needed = max((time for step in steps for time in _times_of(step)), default=timedelta())
        timeout = bounds(template, at(functions(template).get(agent.function), "Timeout"))
        if timeout is None or timeout[0] <= needed.total_seconds():
            problems.append(
                f"{agent.function}: its least Timeout must be above the longest complete_within "
                f"of its steps, {needed.total_seconds():.0f} s: raise TimeoutSeconds of its block, "
                "and VisibilitySeconds to six times as long"
            )
    return problems


def _steps(application: Application) -> Iterator[Step]:
    for workflow in application.workflows:
        yield from workflow.all_steps


def _times_of(step: Step) -> Iterator[timedelta]:
    yield step.complete_within
    if step.compensation is not None and step.compensation.complete_within is not None:
        yield step.compensation.complete_within


def values(application: Application) -> list[str]:
    """Each value that a block gives to its stack is one that the stack takes, such as the runtime.

    CloudFormation finds another one only when it makes that stack, minutes after the others. The
    schedule and the order of a recurring order have a rule of their own.
    """
    blocks = part(application.root, "Resources")
    judged = tuple(f"{name}: {own} is " for name in blocks for own in ("Schedule", "Order"))
    return [one for one in application.objections if not one.startswith(judged)]


def visibility(application: Application) -> list[str]:
    """A message stays hidden for longer than its function can run, for all parameter values; by
    default six times as long.

    Otherwise a message is handled twice at the same time. Lambda refuses a mapping whose queue has
    the shorter time. AWS advises six times (AWS Lambda Developer Guide, "Creating and configuring
    an Amazon SQS event source mapping").
    """
    template, problems = application.template, list[str]()
    for queue, function, _ in event_sources(template):
        timeout = bounds(template, at(functions(template).get(function), "Timeout"))
        hidden = bounds(template, at(queues(template).get(queue), "VisibilityTimeout"))
        if timeout is None or hidden is None:
            problems.append(
                f"{queue}: its VisibilityTimeout and the Timeout of {function} must be numbers, or "
                "parameters with MinValue, Default and MaxValue"
            )
            continue
        problems += too_short(queue, function, hidden[0], timeout[2])
        if hidden[1] < 6 * timeout[1]:
            problems.append(
                f"{queue}: its VisibilityTimeout is {hidden[1]} s by default; it must be at least "
                f"six times the Timeout of {function}, {6 * timeout[1]} s"
            )
    return problems


def too_short(queue: str, function: str, hidden: int, timeout: int) -> list[str]:
    """Return a sentence if a queue may hide a message, for `hidden` s, no longer than its function
    may run, for `timeout` s: Lambda refuses the mapping."""
    if timeout < hidden:
        return []
    return [
        f"{queue}: its VisibilityTimeout can be {hidden} s, and the Timeout of "
        f"{function} {timeout} s; the first must always be longer"
    ]


def snapstart_runtimes(application: Application) -> list[str]:
    """No function with SnapStart has a runtime that Lambda refuses together with it.

    An agent takes SnapStart from the engine if its block does not say otherwise.
    """
    template = application.template
    return [
        f"{name}: Lambda has no SnapStart for {RUNTIME_WITHOUT_SNAPSTART}: set PythonRuntime to "
        "python3.12 or newer, or SnapStart of the block to false"
        for name, function in functions(template).items()
        if chosen(template, at(function, "SnapStart", "ApplyOn")) == "PublishedVersions"
        if default_of(template, function.get("Runtime")) == RUNTIME_WITHOUT_SNAPSTART
    ]


RUNTIME_WITHOUT_SNAPSTART = "python3.11"


def backlog_alarms(application: Application) -> list[str]:
    """An alarm on the oldest message of a queue is raised later than the queue's VisibilityTimeout:
    a message whose function died is hidden for that long, and is then read again.
    """
    template, problems = application.template, list[str]()
    for name, alarm in of_type(template, "AWS::CloudWatch::Alarm").items():
        if alarm.get("MetricName") != "ApproximateAgeOfOldestMessage":
            continue
        named = [reference(one.get("Value")) for one in mappings_in(alarm.get("Dimensions"))]
        queue = next(iter(named), "")
        limit = default_of(template, chosen(template, alarm.get("Threshold")))
        hidden = default_of(template, at(queues(template).get(queue), "VisibilityTimeout"))
        match limit, hidden:
            case int(age), int(timeout) if age > timeout:
                pass
            case _:
                problems.append(
                    f"{name}: Threshold is {limit} and must be more than the {hidden} s for which "
                    f"{queue} hides a message: set OldestMessageAlarmSeconds"
                )
    return problems


def concurrency(application: Application) -> list[str]:
    """Each mapping has a MaximumConcurrency from 2 to 1000, as a number.

    A backlog would otherwise take all instances of the account, and call a service with all of
    them. 2 and 1000 are the limits of Lambda. A size that the block's template does not list has no
    number.
    """
    return [
        f"{queue}: MaximumConcurrency must be a whole number from 2 to 1000"
        for queue, _, mapping in event_sources(application.template)
        if not _is_concurrency(
            chosen(application.template, at(mapping, "ScalingConfig", "MaximumConcurrency"))
        )
    ]


def _is_concurrency(value: Json) -> bool:
    return isinstance(value, int) and 2 <= value <= 1000


def service_addresses(application: Application) -> list[str]:
    """SERVICE_URL of an agent is an address or a parameter, if its block gives one."""
    template = application.template
    return [
        f"{agent.function}: ServiceUrl must be an address or a parameter"
        for agent in agents(template)
        if not _is_address(variables(template, agent.function).get("SERVICE_URL", ""))
    ]


def _is_address(value: Json) -> bool:
    match value:
        case str():
            return value == "" or value.startswith(("http://", "https://"))
        case {"Ref": str()}:
            return True
        case _:
            return False


def search_indexes(application: Application) -> list[str]:
    """The orders have an index for each field that a workflow names in `search`.

    Without it an order is stored with its value, and nobody finds it by that.
    """
    template = application.template
    table = of_type(template, "AWS::DynamoDB::Table").get("OrdersTable")
    listed = items(chosen(template, at(table, "GlobalSecondaryIndexes")))
    found = sum(at(chosen(template, one), "IndexName") is not None for one in listed)
    return [
        f"{workflow.name}: orders are found by {len(workflow.search)} of their fields, and the "
        f"orders have {found} indexes for that: set SearchFields of the engine's block to "
        f"{len(workflow.search)}; a stack that is deployed takes one more in each deployment"
        for workflow in application.workflows
        if len(workflow.search) > found
    ]


def layers(application: Application) -> list[str]:
    """Every function has CoreLayer; submission and the agents have WorkflowsLayer after it. The
    scheduler and the supervisor do not: they act on stored plans, so that a deployment changes no
    open task. A former version of a layer stays, for the versions of functions that have it.
    """
    template, problems = application.template, list[str]()
    without_workflows = {"SchedulerFunction", "SupervisorFunction"}
    for name, function in functions(template).items():
        # The translator adds a hash of ten characters to the logical id of a layer.
        found = [reference(layer)[:-10] for layer in items(at(function, "Layers"))]
        expected = ["CoreLayer", *([] if name in without_workflows else ["WorkflowsLayer"])]
        if (found if name in ENGINE_FUNCTIONS else found[:2]) != expected:
            problems.append(f"{name}: its layers must be {', '.join(expected)}")
    problems += [
        f"{name[:-10]}: RetentionPolicy must be Retain"
        for name in of_type(template, "AWS::Lambda::LayerVersion")
        if at(template, "Resources", name, "DeletionPolicy") != "Retain"
    ]
    return problems


RULES: tuple[Rule, ...] = (
    step_agents,
    agent_names,
    agent_times,
    values,
    visibility,
    snapstart_runtimes,
    backlog_alarms,
    concurrency,
    service_addresses,
    search_indexes,
    layers,
)
