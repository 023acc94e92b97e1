"""What wakes each function, what it is told, and that its times and those of plans are in order."""

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta

import pytest

from roundsman import Step, Workflow
from roundsman.aws.settings import (
    AgentSettings,
    SchedulerSettings,
    SettingMissing,
    SubmissionSettings,
    SupervisorSettings,
)
from roundsman.testing.stack.resources import StackOnMoto
from roundsman.testing.stack.template import Document, mapping_of
from tests.template.reading import items, of_type, referred, work_queues
from workflows.registry import WORKFLOWS as REGISTRY

AGENTS = ("Inventory", "Payment", "Shipping", "Mail")
IN_THE_LOOP = {"SchedulerFunction", *(f"{agent}Function" for agent in AGENTS)}
WORKFLOWS = tuple(REGISTRY.values())
NOT_SETTINGS = {
    # Powertools reads these by itself.
    "POWERTOOLS_SERVICE_NAME",
    "POWERTOOLS_METRICS_NAMESPACE",
    "POWERTOOLS_LOG_LEVEL",
    # The address that only the agent's own code uses.
    "SERVICE_URL",
}


class Recorded(Mapping[str, str]):
    """An environment that remembers which of its variables were asked for."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)


def functions(document: Document) -> dict[str, Document]:
    return of_type(document, "AWS::Lambda::Function")


def mappings(document: Document) -> list[Document]:
    return list(of_type(document, "AWS::Lambda::EventSourceMapping").values())


def bounds(document: Document, reference: object) -> tuple[int, int, int]:
    """Least, default and greatest value of the parameter that a Ref names."""
    match reference:
        case {"Ref": str(name)}:
            parameter = mapping_of(mapping_of(document["Parameters"])[name])
            low, middle, high = (parameter[key] for key in ("MinValue", "Default", "MaxValue"))
            assert isinstance(low, int)
            assert isinstance(middle, int)
            assert isinstance(high, int)
            return low, middle, high
        case _:
            raise AssertionError(f"not a parameter: {reference}")


def longest_complete_within(workflows: tuple[Workflow, ...], agent: str) -> timedelta:
    """The longest time that any perform or undo of the agent may take."""
    steps = [step for workflow in workflows for step in workflow.steps if step.agent == agent]
    return max(time for step in steps for time in times_of(step))


def times_of(step: Step) -> Iterator[timedelta]:
    yield step.complete_within
    if step.compensation is not None and step.compensation.complete_within is not None:
        yield step.compensation.complete_within


def test_every_queue_that_is_worked_off_wakes_one_function(document: Document) -> None:
    sources = [referred(mapping["EventSourceArn"]) for mapping in mappings(document)]
    assert sorted(sources) == sorted(work_queues(document))


def test_the_scheduler_alone_reads_commands_and_replies(document: Document) -> None:
    for mapping in mappings(document):
        queue, function = referred(mapping["EventSourceArn"]), referred(mapping["FunctionName"])
        if queue == "SchedulerQueue" or queue.endswith("ReplyQueue"):
            assert function == "SchedulerFunction", queue
        elif queue == "SubmissionQueue":
            assert function == "SubmissionFunction"
        else:
            agent = queue.removesuffix("RequestQueue").removesuffix("Urgent")
            assert function == f"{agent}Function"


def test_one_bad_message_of_a_batch_does_not_take_the_others_with_it(document: Document) -> None:
    for mapping in mappings(document):
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_no_backlog_starts_more_instances_than_a_parameter_says(document: Document) -> None:
    for mapping in mappings(document):
        most = mapping_of(mapping["ScalingConfig"])["MaximumConcurrency"]
        assert isinstance(most, int), "a number, also where parameters are passed on as text"
        assert 2 <= most <= 1000


def test_the_loop_of_scheduler_and_agents_is_not_stopped_as_a_runaway(document: Document) -> None:
    """Without this Lambda ends each order's chain of invocations after about sixteen."""
    allowed = {name for name, f in functions(document).items() if f.get("RecursiveLoop") == "Allow"}
    assert allowed == IN_THE_LOOP


def test_a_message_stays_hidden_for_longer_than_its_function_can_run(document: Document) -> None:
    """Whatever values the parameters take: the one's greatest is below the other's least."""
    for mapping in mappings(document):
        function = functions(document)[referred(mapping["FunctionName"])]
        queue = work_queues(document)[referred(mapping["EventSourceArn"])]
        _, timeout, longest_timeout = bounds(document, function["Timeout"])
        least_hidden, hidden, _ = bounds(document, queue["VisibilityTimeout"])
        assert longest_timeout < least_hidden, mapping
        assert hidden >= 6 * timeout, mapping


def test_the_scheduler_gives_up_soon_enough_for_a_redelivery_before_complete_by(
    document: Document,
) -> None:
    _, timeout, _ = bounds(document, functions(document)["SchedulerFunction"]["Timeout"])
    _, hidden, _ = bounds(document, work_queues(document)["SchedulerQueue"]["VisibilityTimeout"])
    assert timeout <= 10
    assert hidden <= 60


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agents_function_outlives_every_step_bound_to_it(document: Document, agent: str) -> None:
    needed = longest_complete_within(WORKFLOWS, agent.lower()).total_seconds()
    least, _, _ = bounds(document, functions(document)[f"{agent}Function"]["Timeout"])
    assert least > needed


def test_every_agent_of_every_workflow_has_a_function_and_its_queues(
    deployed_stack: StackOnMoto,
) -> None:
    environment = deployed_stack.function_environments["SchedulerFunction"]
    known = json.loads(environment["REQUEST_QUEUE_URLS"])
    assert set(known) == {agent.lower() for agent in AGENTS}
    for step in (step for workflow in WORKFLOWS for step in workflow.steps):
        assert set(known[step.agent]) == {"normal", "urgent"}
        assert f"{step.agent.capitalize()}Function" in deployed_stack.function_environments


def test_requests_to_an_agent_go_to_the_queues_that_wake_it(deployed_stack: StackOnMoto) -> None:
    environment = deployed_stack.function_environments["SchedulerFunction"]
    woken = {source.queue_url: source.function for source in deployed_stack.mappings}
    for agent, urls in json.loads(environment["REQUEST_QUEUE_URLS"]).items():
        assert {woken[url] for url in urls.values()} == {f"{agent.capitalize()}Function"}
        assert len(set(urls.values())) == 2


def test_an_agents_replies_go_to_the_queue_that_wakes_the_scheduler(
    deployed_stack: StackOnMoto,
) -> None:
    woken = {source.queue_url: source.function for source in deployed_stack.mappings}
    for agent in AGENTS:
        environment = deployed_stack.function_environments[f"{agent}Function"]
        assert environment["REPLY_QUEUE_URL"] == deployed_stack.outputs[f"{agent}ReplyQueueUrl"]
        assert woken[environment["REPLY_QUEUE_URL"]] == "SchedulerFunction"


@pytest.mark.parametrize(
    ("function", "settings"),
    [
        ("SubmissionFunction", SubmissionSettings),
        ("SchedulerFunction", SchedulerSettings),
        ("SupervisorFunction", SupervisorSettings),
        *((f"{agent}Function", AgentSettings) for agent in AGENTS),
    ],
)
def test_a_function_is_told_all_that_its_settings_ask_for_and_nothing_else(
    deployed_stack: StackOnMoto,
    function: str,
    settings: type[SubmissionSettings | SchedulerSettings | SupervisorSettings | AgentSettings],
) -> None:
    environment = Recorded(deployed_stack.function_environments[function])
    settings.from_env(environment)
    assert environment.asked == set(environment) - NOT_SETTINGS


def test_settings_name_a_variable_that_is_missing(deployed_stack: StackOnMoto) -> None:
    environment = dict(deployed_stack.function_environments["SchedulerFunction"])
    del environment["HISTORY_TABLE"]
    with pytest.raises(SettingMissing, match="HISTORY_TABLE"):
        SchedulerSettings.from_env(environment)


def test_every_function_has_its_service_name_and_one_namespace(
    deployed_stack: StackOnMoto,
) -> None:
    for function, environment in deployed_stack.function_environments.items():
        expected = function.removesuffix("Function").lower()
        assert environment["POWERTOOLS_SERVICE_NAME"] == expected
        assert environment["POWERTOOLS_METRICS_NAMESPACE"] == "Roundsman"
        assert environment["POWERTOOLS_LOG_LEVEL"] == "INFO"


def test_agents_reach_the_addresses_that_were_given(deployed_stack: StackOnMoto) -> None:
    for agent in AGENTS:
        environment = deployed_stack.function_environments[f"{agent}Function"]
        assert environment["SERVICE_URL"] == f"http://{agent.lower()}.test"


def test_every_function_has_core_and_only_who_needs_it_the_workflows(document: Document) -> None:
    for name, function in functions(document).items():
        layers = [referred(layer)[:-10] for layer in items(function["Layers"])]  # less the hash
        knows_business = name not in {"SchedulerFunction", "SupervisorFunction"}
        assert layers == ["CoreLayer", *(["WorkflowsLayer"] if knows_business else [])], name


def test_every_function_writes_to_a_log_group_that_forgets(document: Document) -> None:
    groups = of_type(document, "AWS::Logs::LogGroup")
    used = [
        referred(mapping_of(function["LoggingConfig"])["LogGroup"])
        for function in functions(document).values()
    ]
    assert sorted(used) == sorted(groups)
    for group in groups.values():
        assert group["RetentionInDays"] == {"Ref": "LogRetentionDays"}


def test_lambda_itself_logs_failures_alone_unless_it_is_asked_for_more(
    document: Document,
) -> None:
    for function in functions(document).values():
        logging = mapping_of(function["LoggingConfig"])
        assert logging["LogFormat"] == "JSON", "a level is heeded in no other"
        assert logging["SystemLogLevel"] == {"Ref": "SystemLogLevel"}
    parameter = mapping_of(mapping_of(document["Parameters"])["SystemLogLevel"])
    assert parameter["Default"] == "WARN"


def test_no_log_level_keeps_the_metrics_from_the_alarms(document: Document) -> None:
    """A line of metrics has no level, which Lambda takes for INFO: it must let INFO through."""
    for function in functions(document).values():
        let_through = mapping_of(function["LoggingConfig"])["ApplicationLogLevel"]
        assert let_through == {"Fn::If": ["Debugging", "DEBUG", "INFO"]}


def test_the_supervisor_is_sent_on_its_rounds_and_a_failed_round_is_not_repeated(
    document: Document,
) -> None:
    schedule = of_type(document, "AWS::Scheduler::Schedule")["SupervisorFunctionRounds"]
    target = mapping_of(schedule["Target"])
    assert schedule["ScheduleExpression"] == "rate(1 minute)"
    assert referred(target["Arn"]) == "SupervisorFunction"
    assert referred(target["RoleArn"]) == "SupervisorScheduleRole"
    assert mapping_of(target["RetryPolicy"])["MaximumRetryAttempts"] == 0
    (invoke,) = of_type(document, "AWS::Lambda::EventInvokeConfig").values()
    assert invoke["MaximumRetryAttempts"] == 0


def test_two_stacks_of_one_account_do_not_share_a_schedule(document: Document) -> None:
    for schedule in of_type(document, "AWS::Scheduler::Schedule").values():
        assert "Name" not in schedule
