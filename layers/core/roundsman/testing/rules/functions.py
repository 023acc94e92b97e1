"""Functions: what invokes each one, its settings, and the order of its times and those of steps."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TypeAlias

from roundsman import Step
from roundsman.aws.queue_urls import agent_title
from roundsman.aws.settings import (
    AgentSettings,
    SchedulerSettings,
    SettingMissing,
    SubmissionSettings,
    SupervisorSettings,
)
from roundsman.testing.rules.application import Application, Rule, compare
from roundsman.testing.rules.reading import (
    ENGINE_FUNCTIONS,
    METRICS_NAMESPACE,
    STACK,
    agents,
    at,
    bounds,
    dead_letters_of,
    default_of,
    environment,
    event_sources,
    functions,
    invoked,
    items,
    of_type,
    queues,
    reference,
    variables,
    work_queues,
)
from roundsman.testing.stack.template import Document, Json

Settings: TypeAlias = type[
    SubmissionSettings | SchedulerSettings | SupervisorSettings | AgentSettings
]

ENGINE_SETTINGS: Mapping[str, Settings] = {
    "SubmissionFunction": SubmissionSettings,
    "SchedulerFunction": SchedulerSettings,
    "SupervisorFunction": SupervisorSettings,
}
POWERTOOLS = {"POWERTOOLS_SERVICE_NAME", "POWERTOOLS_METRICS_NAMESPACE", "POWERTOOLS_LOG_LEVEL"}
"""The variables that Powertools for AWS Lambda reads by itself."""
AGENT_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
RATE = re.compile(
    r"rate\((?:1 (?P<one>minute|hour)|(?P<number>[2-9]|[1-9]\d+) (?P<many>minutes|hours))\)"
)
SECONDS = {"minute": 60, "minutes": 60, "hour": 3600, "hours": 3600}


def readers(application: Application) -> list[str]:
    """Each queue that is not for people invokes one function, once.

    The messages of a queue that invokes nothing are never handled.
    """
    sources = [queue for queue, _, _ in event_sources(application.template)]
    expected = work_queues(application.template)
    return compare("the queues that invoke functions", sources, expected)


def queue_readers(application: Application) -> list[str]:
    """Commands and replies invoke the scheduler, order events submission, requests their agent.

    The scheduler is the only function that claims steps.
    """
    template = application.template
    expected = {"SchedulerQueue": "SchedulerFunction", "SubmissionQueue": "SubmissionFunction"}
    for agent in agents(template):
        expected[agent.reply_queue] = "SchedulerFunction"
        expected |= dict.fromkeys(agent.request_queues, agent.function)
    return [
        f"{queue} must invoke {expected.get(queue, 'nothing')}, not {function}"
        for queue, function, _ in event_sources(template)
        if expected.get(queue) != function
    ]


def partial_batches(application: Application) -> list[str]:
    """Each mapping reports the failed messages of a batch (ReportBatchItemFailures).

    Otherwise one message that fails brings back all messages of its batch (AWS Lambda Developer
    Guide, "Handling errors for an SQS event source in Lambda").
    """
    return [
        f"{queue}: FunctionResponseTypes must be ReportBatchItemFailures"
        for queue, _, mapping in event_sources(application.template)
        if at(mapping, "FunctionResponseTypes") != ["ReportBatchItemFailures"]
    ]


def concurrency(application: Application) -> list[str]:
    """Each mapping has a MaximumConcurrency from 2 to 1000, as a number.

    A backlog would otherwise take all instances of the account, and call a service with all of
    them. 2 and 1000 are the limits of Lambda. CloudFormation passes parameters on as text, which
    not every emulator turns into a number, so the value is looked up in a mapping of the template.
    """
    return [
        f"{queue}: MaximumConcurrency must be a whole number from 2 to 1000"
        for queue, _, mapping in event_sources(application.template)
        if not _is_concurrency(at(mapping, "ScalingConfig", "MaximumConcurrency"))
    ]


def _is_concurrency(value: Json) -> bool:
    return isinstance(value, int) and 2 <= value <= 1000


def recursion(application: Application) -> list[str]:
    """The scheduler and the agents, and only they, have RecursiveLoop: Allow.

    They invoke each other through queues. Lambda stops such a chain after about 16 invocations
    unless a function allows it (AWS Lambda Developer Guide, "Use Lambda recursive loop detection").
    """
    template = application.template
    found = [name for name, f in functions(template).items() if at(f, "RecursiveLoop") == "Allow"]
    expected = ["SchedulerFunction", *(agent.function for agent in agents(template))]
    return compare("the functions with RecursiveLoop: Allow", found, expected)


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
        if timeout[2] >= hidden[0]:
            problems.append(
                f"{queue}: its VisibilityTimeout can be {hidden[0]} s, and the Timeout of "
                f"{function} {timeout[2]} s; the first must always be longer"
            )
        if hidden[1] < 6 * timeout[1]:
            problems.append(
                f"{queue}: its VisibilityTimeout is {hidden[1]} s by default; it must be at least "
                f"six times the Timeout of {function}, {6 * timeout[1]} s"
            )
    return problems


def scheduler_times(application: Application) -> list[str]:
    """The scheduler runs for at most 10 s by default, and its queue hides a message for at most 60.

    If a scheduler dies, its message must come back before the complete-by of most steps.
    """
    template, problems = application.template, list[str]()
    for where, value, limit in (
        (
            "the Timeout of SchedulerFunction",
            at(functions(template).get("SchedulerFunction"), "Timeout"),
            10,
        ),
        (
            "the VisibilityTimeout of SchedulerQueue",
            at(queues(template).get("SchedulerQueue"), "VisibilityTimeout"),
            60,
        ),
    ):
        found = bounds(template, value)
        if found is None or found[1] > limit:
            problems.append(f"{where} must be at most {limit} s by default")
    return problems


def agent_times(application: Application) -> list[str]:
    """An agent's function can run for longer than any step or compensation at that agent may take.

    For all parameter values: the least timeout is above the longest `complete_within`. Otherwise
    Lambda ends an attempt that is still in time, and its outcome is unknown.
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
        yield from workflow.steps


def _times_of(step: Step) -> Iterator[timedelta]:
    yield step.complete_within
    if step.compensation is not None and step.compensation.complete_within is not None:
        yield step.compensation.complete_within


def step_agents(application: Application) -> list[str]:
    """Each agent that a step of a workflow names has a function.

    The scheduler cannot send the request of another step, so its task is never completed.
    """
    known = {agent.name for agent in agents(application.template)}
    return [
        f"{workflow.name}: {step.name}: the template has no agent {name}"
        for workflow in application.workflows
        for step in workflow.steps
        for name in step.agent_names()
        if name not in known
    ]


def requests(application: Application) -> list[str]:
    """The queues of each agent have the names by which the scheduler finds them.

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


def replies(application: Application) -> list[str]:
    """Each agent sends its replies to its own reply queue."""
    template = application.template
    return [
        f"{agent.function}: REPLY_QUEUE_URL must be {agent.reply_queue}"
        for agent in agents(template)
        if environment(template, agent.function)["REPLY_QUEUE_URL"] != agent.reply_queue
    ]


class _Recorded(Mapping[str, str]):
    """An environment that records which of its variables are read."""

    def __init__(self, of: Mapping[str, str]) -> None:
        self._of = of
        self.read = set[str]()

    def __getitem__(self, name: str) -> str:
        self.read.add(name)
        return self._of[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)


def settings(application: Application) -> list[str]:
    """Each function has every variable that its settings read; a function of the engine no other.

    A function without a required one fails at its start, and an agent whose rate has another name
    calls its service without a limit. An agent's own code may read more.
    """
    template, problems = application.template, list[str]()
    expected: dict[str, Settings] = dict(ENGINE_SETTINGS)
    expected |= {agent.function: AgentSettings for agent in agents(template)}
    for function, kind in expected.items():
        found = dict(environment(template, function))
        recorded = _Recorded(found)
        try:
            kind.from_env(recorded)
        except SettingMissing as error:
            problems.append(f"{function}: {error}")
            continue
        wanted = recorded.read | POWERTOOLS
        have = set(found) & wanted if function not in ENGINE_FUNCTIONS else set(found)
        problems += compare(f"{function}: its environment variables", have, wanted)
    return problems


def service_names(application: Application) -> list[str]:
    """POWERTOOLS_SERVICE_NAME is the name of the function's role in logs and metrics; of an agent
    the name in workflows, as its logical ids have it. The parameter LogLevel is the level of every
    log. The namespace of metrics ends in the name of the stack, so that two stacks share no metric.

    Alarms and the command line find metrics by these names, and an agent its rows in ControlTable.
    """
    template, problems = application.template, list[str]()
    for function in functions(template):
        found, given = environment(template, function), variables(template, function)
        prefix, name = function.removesuffix("Function"), found["POWERTOOLS_SERVICE_NAME"]
        is_agent = function not in ENGINE_FUNCTIONS
        if (name.replace("_", "") if is_agent else name) != prefix.lower():
            problems.append(f"{function}: POWERTOOLS_SERVICE_NAME must be the name {prefix}")
        if not AGENT_NAME.fullmatch(name):
            problems.append(f"{function}: {name} is not a name of a-z, 0-9 and _")
        if given.get("POWERTOOLS_METRICS_NAMESPACE") != METRICS_NAMESPACE:
            problems.append(f"{function}: POWERTOOLS_METRICS_NAMESPACE must be Roundsman/{STACK}")
        if given.get("POWERTOOLS_LOG_LEVEL") != {"Ref": "LogLevel"}:
            problems.append(f"{function}: POWERTOOLS_LOG_LEVEL must be the parameter LogLevel")
    return problems


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


def layers(application: Application) -> list[str]:
    """Every function has CoreLayer; submission and the agents have WorkflowsLayer after it. The
    scheduler and the supervisor do not: they act on stored plans, so that a deployment changes no
    open task. An agent may have more layers after these.
    """
    template, problems = application.template, list[str]()
    without_workflows = {"SchedulerFunction", "SupervisorFunction"}
    for name, function in functions(template).items():
        # The translator adds a hash of ten characters to the logical id of a layer.
        found = [reference(layer)[:-10] for layer in items(at(function, "Layers"))]
        expected = ["CoreLayer", *([] if name in without_workflows else ["WorkflowsLayer"])]
        if (found if name in ENGINE_FUNCTIONS else found[:2]) != expected:
            problems.append(f"{name}: its layers must be {', '.join(expected)}")
    return problems


def log_groups(application: Application) -> list[str]:
    """Every function writes to a log group of its own, which keeps logs for a time.

    A log group that Lambda creates by itself keeps them for ever.
    """
    template = application.template
    groups = of_type(template, "AWS::Logs::LogGroup")
    used = [
        reference(at(function, "LoggingConfig", "LogGroup"))
        for function in functions(template).values()
    ]
    return [
        *compare("the log groups that functions write to", used, groups),
        *(
            f"{name}: RetentionInDays must be a number of days"
            for name, group in groups.items()
            if not str(default_of(template, at(group, "RetentionInDays"))).isdecimal()
        ),
    ]


def system_logs(application: Application) -> list[str]:
    """Lambda's own log entries are JSON, with the level WARN by default.

    Lambda applies a level to JSON entries only. Each invocation would otherwise write a start, an
    end and a report, which cost more than the function's own entries.
    """
    template, problems = application.template, list[str]()
    for name, function in functions(template).items():
        if at(function, "LoggingConfig", "LogFormat") != "JSON":
            problems.append(f"{name}: LogFormat must be JSON")
        if default_of(template, at(function, "LoggingConfig", "SystemLogLevel")) != "WARN":
            problems.append(f"{name}: SystemLogLevel must be WARN by default")
    return problems


def metric_logs(application: Application) -> list[str]:
    """ApplicationLogLevel is DEBUG or INFO, never above.

    A line of metrics has no level. Lambda takes it for INFO, and would drop it with its alarms.
    """
    return [
        f"{name}: ApplicationLogLevel must be DEBUG where LogLevel is, and else INFO"
        for name, function in functions(application.template).items()
        if at(function, "LoggingConfig", "ApplicationLogLevel")
        != {"Fn::If": ["Debugging", "DEBUG", "INFO"]}
    ]


def _schedules_of_the_supervisor(template: Document) -> list[Document]:
    return [
        schedule
        for schedule in of_type(template, "AWS::Scheduler::Schedule").values()
        if invoked(template, at(schedule, "Target", "Arn")) == "SupervisorFunction"
    ]


def supervisor_schedule(application: Application) -> list[str]:
    """One schedule invokes the supervisor at a rate; a failed invocation is not repeated.

    The next round repeats it. A repetition beside the next round would do the same work twice.
    """
    template = application.template
    found = _schedules_of_the_supervisor(template)
    problems = [] if len(found) == 1 else ["SupervisorFunction must have one schedule"]
    for schedule in found:
        if reference(at(schedule, "Target", "RoleArn")) != "SupervisorScheduleRole":
            problems.append("the supervisor's schedule must have the role SupervisorScheduleRole")
        if at(schedule, "Target", "RetryPolicy", "MaximumRetryAttempts") != 0:
            problems.append("the supervisor's schedule: MaximumRetryAttempts must be 0")
        if rate_in_seconds(at(schedule, "ScheduleExpression")) is None:
            problems.append("the supervisor's schedule: ScheduleExpression must be a rate")
    retries = [
        (at(config, "MaximumRetryAttempts"), at(config, "MaximumEventAgeInSeconds"))
        for config in of_type(template, "AWS::Lambda::EventInvokeConfig").values()
        if reference(at(config, "FunctionName")) == "SupervisorFunction"
    ]
    if retries != [(0, 60)]:  # 60 s is the least that Lambda takes
        problems.append(
            "SupervisorFunction: EventInvokeConfig: MaximumRetryAttempts must be 0 and "
            "MaximumEventAgeInSeconds 60"
        )
    return problems


def rate_in_seconds(expression: Json) -> int | None:
    """The seconds of a rate of EventBridge Scheduler; None if the expression is not one."""
    found = RATE.fullmatch(str(expression))
    if found is None:
        return None
    return int(found["number"] or 1) * SECONDS[found["one"] or found["many"]]


def schedule_names(application: Application) -> list[str]:
    """No schedule has a name of its own: two stacks of one account would share it."""
    return [
        f"{name}: Name must be left out"
        for name, schedule in of_type(application.template, "AWS::Scheduler::Schedule").items()
        if "Name" in schedule
    ]


def lost_schedules(application: Application) -> list[str]:
    """A schedule of a queue has a dead-letter queue, of that queue: the event is not lost.

    The supervisor's schedule needs none, since its next round does the same.
    """
    template = application.template
    return [
        f"{name}: DeadLetterConfig must be the dead-letter queue of {queue}"
        for name, schedule in of_type(template, "AWS::Scheduler::Schedule").items()
        if (queue := reference(at(schedule, "Target", "Arn"))) in queues(template)
        if reference(at(schedule, "Target", "DeadLetterConfig", "Arn"))
        != dead_letters_of(template, queue)
    ]


RULES: tuple[Rule, ...] = (
    readers,
    queue_readers,
    partial_batches,
    concurrency,
    recursion,
    visibility,
    scheduler_times,
    agent_times,
    step_agents,
    requests,
    replies,
    settings,
    service_names,
    service_addresses,
    layers,
    log_groups,
    system_logs,
    metric_logs,
    supervisor_schedule,
    schedule_names,
    lost_schedules,
)
