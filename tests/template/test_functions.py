"""Functions of our stacks: what invokes each one, its settings, its logs, its versions."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import TypeAlias

from roundsman.aws.outputs import LIVE
from roundsman.aws.settings import (
    AgentSettings,
    SchedulerSettings,
    SettingMissing,
    SubmissionSettings,
    SupervisorSettings,
)
from roundsman_dev.check.reading import (
    ENGINE_FUNCTIONS,
    agents,
    at,
    bounds,
    default_of,
    event_sources,
    functions,
    invoked,
    items,
    mappings_in,
    of_type,
    queues,
    reference,
    variables,
)
from roundsman_dev.template import Document, Json
from tests.support.template_reading import (
    METRICS_NAMESPACE,
    POWERTOOLS,
    aliases,
    allowed_to,
    dead_letters_of,
    environment,
    rate_in_seconds,
    roles,
    texts,
    work_queues,
)
from tests.template.faults import arn, drop, fails_with, in_statement, of_version, put, ref

FIRST, THEN, SUPERVISOR = "SchedulerFunction", "SubmissionFunction", "SupervisorFunction"
AGENT_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
Settings: TypeAlias = type[
    SubmissionSettings | SchedulerSettings | SupervisorSettings | AgentSettings
]
SETTINGS: Mapping[str, Settings] = {
    "SubmissionFunction": SubmissionSettings,
    "SchedulerFunction": SchedulerSettings,
    "SupervisorFunction": SupervisorSettings,
}
VARIABLES_BYTES = 4_096
"""What Lambda takes of names and values of all environment variables of one function."""
LONGEST_ARN = "x" * 160
SECOND_MAPPING: Document = {
    "Type": "AWS::Lambda::EventSourceMapping",
    "Properties": {
        "EventSourceArn": arn("BillingRequestQueue"),
        "FunctionName": ref("BillingFunction"),
    },
}


@fails_with(
    drop("Resources/GiftWrapFunctionUrgentRequests"),
    put("Resources/SecondMapping", SECOND_MAPPING),
    put("GiftWrapReplies/FunctionName", ref("GiftWrapFunction")),
    put("GiftWrapFunctionRequests/FunctionName", ref("BillingFunction")),
)
def test_each_queue_invokes_one_function_once(template: Document) -> None:
    """Commands and replies invoke the scheduler, which alone claims steps, order events submission,
    and requests their agent."""
    expected = [("SchedulerQueue", FIRST), ("SubmissionQueue", THEN)]
    for agent in agents(template):
        expected += [(queue, agent.function) for queue in agent.request_queues]
        expected += [(agent.reply_queue, FIRST)]
    assert sorted((queue, name) for queue, name, _ in event_sources(template)) == sorted(expected)
    assert {queue for queue, _ in expected} == set(work_queues(template))


@fails_with(drop("GiftWrapFunctionRequests/FunctionResponseTypes"))
def test_each_mapping_reports_the_failed_messages_of_a_batch(template: Document) -> None:
    """Otherwise one message that fails brings back all messages of its batch (AWS Lambda Developer
    Guide, "Handling errors for an SQS event source in Lambda")."""
    for queue, _, mapping in event_sources(template):
        assert at(mapping, "FunctionResponseTypes") == ["ReportBatchItemFailures"], queue


@fails_with(
    drop("GiftWrapFunction/RecursiveLoop"), put("SupervisorFunction/RecursiveLoop", "Allow")
)
def test_the_loop_of_scheduler_and_agents_is_not_stopped_as_a_runaway(template: Document) -> None:
    """They invoke each other through queues. Lambda stops such a chain after about 16 invocations
    unless a function allows it (AWS Lambda Developer Guide, "Use Lambda recursive loop detection").
    """
    allowed = {n for n, one in functions(template).items() if at(one, "RecursiveLoop") == "Allow"}
    assert allowed == {FIRST, *(agent.function for agent in agents(template))}


@fails_with(
    put("SchedulerFunction/Timeout", 15),
    drop("SchedulerFunction/Timeout"),
    put("SchedulerQueue/VisibilityTimeout", 90),
)
def test_the_message_of_a_scheduler_that_dies_comes_back_before_most_steps_are_overdue(
    template: Document,
) -> None:
    timeout = bounds(template, at(functions(template).get(FIRST), "Timeout"))
    hidden = bounds(template, at(queues(template).get("SchedulerQueue"), "VisibilityTimeout"))
    assert timeout is not None
    assert timeout[1] <= 10
    assert hidden is not None
    assert hidden[1] <= 60


@fails_with(
    drop("GiftWrapFunction/Environment/Variables/REPLY_QUEUE_URL"),
    put("GiftWrapFunction/Environment/Variables/REPLY_QUEUE_URL", ref("BillingReplyQueue")),
)
def test_each_agent_sends_its_replies_to_its_own_reply_queue(template: Document) -> None:
    for agent in agents(template):
        assert environment(template, agent.function)["REPLY_QUEUE_URL"] == agent.reply_queue


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


@fails_with(
    drop("GiftWrapFunction/Environment/Variables/BREAKER_FAILURES"),
    drop("GiftWrapFunction/Environment/Variables/CALLS_PER_SECOND"),
    put("SchedulerFunction/Environment/Variables/DUE_SHARDS", ref("DueShards")),
)
def test_each_function_has_every_variable_that_its_settings_read(template: Document) -> None:
    """One of the engine has no other. An agent's own code may read more."""
    for name in functions(template):
        found = dict(environment(template, name))
        recorded = _Recorded(found)
        with suppress(SettingMissing):  # it was read, and is not among those found
            settings: Settings = SETTINGS.get(name, AgentSettings)
            settings.from_env(recorded)
        wanted = recorded.read | POWERTOOLS
        assert wanted <= set(found), name
        assert name not in SETTINGS or wanted == set(found), name


@fails_with(
    put("GiftWrapFunction/Environment/Variables/POWERTOOLS_SERVICE_NAME", "billing"),
    put("GiftWrapFunction/Environment/Variables/POWERTOOLS_SERVICE_NAME", "_giftwrap"),
    put("SchedulerFunction/Environment/Variables/POWERTOOLS_SERVICE_NAME", "sched_uler"),
    put("LettersFunction/Environment/Variables/POWERTOOLS_METRICS_NAMESPACE", "Roundsman"),
    put("LettersFunction/Environment/Variables/POWERTOOLS_LOG_LEVEL", "INFO"),
)
def test_each_function_has_its_name_the_stacks_namespace_and_the_level_of_every_log(
    template: Document,
) -> None:
    """Alarms and the command line find metrics by these names, an agent its rows in ControlTable,
    and two stacks share no metric."""
    for function in functions(template):
        found, given = environment(template, function), variables(template, function)
        prefix, name = function.removesuffix("Function"), found["POWERTOOLS_SERVICE_NAME"]
        is_agent = function not in ENGINE_FUNCTIONS
        assert (name.replace("_", "") if is_agent else name) == prefix.lower()
        assert AGENT_NAME.fullmatch(name), name
        assert given["POWERTOOLS_METRICS_NAMESPACE"] == METRICS_NAMESPACE, function
        assert given["POWERTOOLS_LOG_LEVEL"] == {"Ref": "LogLevel"}, function


@fails_with(put("BillingFunction/Environment/Variables/PRICES", "x" * 4_000))
def test_the_environment_variables_of_a_function_fit_in_lambdas_limit(template: Document) -> None:
    for name in functions(template):
        given = variables(template, name).items()
        size = sum(len(n) + len(v if isinstance(v, str) else LONGEST_ARN) for n, v in given)
        assert size <= VARIABLES_BYTES, name


@fails_with(
    put("GiftWrapFunction/LoggingConfig/LogGroup", ref("BillingLogs")),
    drop("GiftWrapFunction/LoggingConfig/LogGroup"),
    drop("GiftWrapLogs/RetentionInDays"),
)
def test_every_function_writes_to_a_log_group_of_its_own_which_keeps_logs_for_a_time(
    template: Document,
) -> None:
    """A log group that Lambda creates by itself keeps them for ever."""
    groups = of_type(template, "AWS::Logs::LogGroup")
    used = [reference(at(f, "LoggingConfig", "LogGroup")) for f in functions(template).values()]
    assert sorted(used) == sorted(groups)
    for name, group in groups.items():
        assert str(default_of(template, at(group, "RetentionInDays"))).isdecimal(), name


@fails_with(
    put("GiftWrapFunction/LoggingConfig/LogFormat", "Text"),
    put("GiftWrapFunction/LoggingConfig/SystemLogLevel", "DEBUG"),
    put("SchedulerFunction/LoggingConfig/SystemLogLevel", "INFO"),
)
def test_lambdas_own_log_entries_are_json_with_the_level_warn_by_default(
    template: Document,
) -> None:
    """Lambda applies a level to JSON entries only. Each invocation would otherwise write a start,
    an end and a report, which cost more than the function's own entries."""
    for name, function in functions(template).items():
        assert at(function, "LoggingConfig", "LogFormat") == "JSON", name
        assert default_of(template, at(function, "LoggingConfig", "SystemLogLevel")) == "WARN", name


@fails_with(put("GiftWrapFunction/LoggingConfig/ApplicationLogLevel", ref("LogLevel")))
def test_the_application_log_level_is_never_above_info(template: Document) -> None:
    """A line of metrics has no level. Lambda takes it for INFO, and would drop its alarms."""
    wanted: Json = {"Fn::If": ["Debugging", "DEBUG", "INFO"]}
    for name, function in functions(template).items():
        assert at(function, "LoggingConfig", "ApplicationLogLevel") == wanted, name


@fails_with(
    put("SupervisorFunctionRounds/Target/RetryPolicy/MaximumRetryAttempts", 3),
    put("SupervisorFunctionEventInvokeConfig/MaximumRetryAttempts", 2),
    put("SupervisorFunctionEventInvokeConfig/MaximumEventAgeInSeconds", 3600),
    put("SupervisorFunctionRounds/ScheduleExpression", "cron(0 * * * ? *)"),
    drop("Resources/SupervisorFunctionRounds"),
    put("SupervisorFunctionRounds/Target/RoleArn", arn("RecurringOrderRole")),
)
def test_one_schedule_invokes_the_supervisor_and_no_failed_invocation_is_repeated(
    template: Document,
) -> None:
    """The next round repeats it. A repetition beside the next round would do the work twice."""
    schedules = of_type(template, "AWS::Scheduler::Schedule").values()
    found = [s for s in schedules if invoked(template, at(s, "Target", "Arn")) == SUPERVISOR]
    assert len(found) == 1
    assert reference(at(found[0], "Target", "RoleArn")) == "SupervisorScheduleRole"
    assert at(found[0], "Target", "RetryPolicy", "MaximumRetryAttempts") == 0
    assert rate_in_seconds(at(found[0], "ScheduleExpression"))
    retries = [
        (at(config, "MaximumRetryAttempts"), at(config, "MaximumEventAgeInSeconds"))
        for config in of_type(template, "AWS::Lambda::EventInvokeConfig").values()
        if reference(at(config, "FunctionName")) == SUPERVISOR
    ]
    assert retries == [(0, 60)]  # 60 s is the least that Lambda takes


@fails_with(
    put("SupervisorFunctionRounds/Name", "rounds"),
    drop("GreetingsRecurringOrder/Target/DeadLetterConfig"),
)
def test_a_schedule_has_no_name_and_that_of_a_queue_loses_no_event(template: Document) -> None:
    """Two stacks of one account would share a name. The supervisor's schedule needs no dead-letter
    queue, since its next round does the same."""
    for name, schedule in of_type(template, "AWS::Scheduler::Schedule").items():
        assert "Name" not in schedule, name
        if (queue := reference(at(schedule, "Target", "Arn"))) in queues(template):
            set_aside = reference(at(schedule, "Target", "DeadLetterConfig", "Arn"))
            assert set_aside == dead_letters_of(template, queue), name


# Versions. A function's code and its configuration are updated by two calls, so `$LATEST` is for a
# time of neither version. What invokes a function invokes its alias, which is moved once both are
# done (docs/decisions/0092).


@fails_with(
    drop("Resources/GiftWrapFunctionAliaslive"),
    put(
        "GiftWrapFunctionAliaslive/FunctionVersion",
        {"Fn::GetAtt": ["BillingFunctionVersion", "Version"]},
    ),
    put("SubmissionFunctionAliaslive/Name", "latest"),
)
def test_each_function_has_one_alias_of_the_version_that_the_template_publishes(
    template: Document,
) -> None:
    versions = of_type(template, "AWS::Lambda::Version")
    found = [
        (reference(at(alias, "FunctionName")), at(alias, "Name"), at(alias, "FunctionVersion"))
        for alias in of_type(template, "AWS::Lambda::Alias").values()
    ]
    published = [
        (reference(at(version, "FunctionName")), LIVE, {"Fn::GetAtt": [name, "Version"]})
        for name, version in versions.items()
    ]
    assert sorted(found, key=str) == sorted(published, key=str)
    assert sorted(function for function, _, _ in found) == sorted(functions(template))


@fails_with(
    of_version("SchedulerFunction", "Properties/Description", "the scheduler"),
    put("GiftWrapFunction/Description", "wraps gifts"),
)
def test_a_version_has_the_description_of_its_function_with_the_values_of_parameters(
    template: Document,
) -> None:
    """A version is published anew if its description changes, and refused if its function has not
    changed since the last one. So both change with the values of parameters, at the same time."""
    for version in of_type(template, "AWS::Lambda::Version").values():
        function = reference(at(version, "FunctionName"))
        described = at(version, "Description")
        assert described == at(functions(template).get(function), "Description"), function
        assert isinstance(described, dict), function


@fails_with(of_version("GiftWrapFunction", "UpdateReplacePolicy", "Delete"))
def test_a_deployment_deletes_no_version_of_a_function(template: Document) -> None:
    for name in of_type(template, "AWS::Lambda::Version"):
        for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
            assert at(template, "Resources", name, policy) == "Retain", name


@fails_with(
    put("GiftWrapFunction/EphemeralStorage", {"Size": 1024}),
    put("GiftWrapFunction/FileSystemConfigs", [{"LocalMountPath": "/mnt/gifts"}]),
    put(
        "SchedulerFunctionAliaslive/ProvisionedConcurrencyConfig",
        {"ProvisionedConcurrentExecutions": 1},
    ),
)
def test_no_function_has_what_lambda_refuses_together_with_snapstart(template: Document) -> None:
    """Each may have SnapStart, by a parameter (AWS Lambda Developer Guide, "Improving startup
    performance with Lambda SnapStart")."""
    for name, function in functions(template).items():
        assert not {"EphemeralStorage", "FileSystemConfigs"} & set(function), name
    for name, alias in of_type(template, "AWS::Lambda::Alias").items():
        assert "ProvisionedConcurrencyConfig" not in alias, name


NEWS: Document = {
    "Type": "AWS::Events::Rule",
    "Properties": {"Targets": [{"Arn": arn("LettersFunction"), "Id": "news"}]},
}
PERMISSION: Document = {
    "Type": "AWS::Lambda::Permission",
    "Properties": {"FunctionName": ref("LettersFunction")},
}


@fails_with(
    put("GiftWrapFunctionRequests/FunctionName", ref("GiftWrapFunction")),
    put("GiftWrapReplies/FunctionName", arn("SchedulerFunction")),
    put("SupervisorFunctionRounds/Target/Arn", arn("SupervisorFunction")),
    in_statement(
        "SupervisorScheduleRole", "SendsTheSupervisorOnItsRounds", "Resource", arn(SUPERVISOR)
    ),
    put("Resources/NewsPermission", PERMISSION),
    put("Resources/NewsRule", NEWS),
)
def test_what_invokes_a_function_invokes_its_alias(template: Document) -> None:
    direct = [name for name in _invocations(template) if reference(name) in functions(template)]
    assert not direct
    assert any(reference(name) in aliases(template) for name in _invocations(template))


def _invocations(template: Document) -> Iterator[Json]:
    """What may name a function to invoke."""
    for kind in ("AWS::Lambda::EventSourceMapping", "AWS::Lambda::Permission"):
        for properties in of_type(template, kind).values():
            yield at(properties, "FunctionName")
    for schedule in of_type(template, "AWS::Scheduler::Schedule").values():
        yield at(schedule, "Target", "Arn")
    for rule in of_type(template, "AWS::Events::Rule").values():
        yield from (at(target, "Arn") for target in mappings_in(at(rule, "Targets")))
    for statement in chain.from_iterable(allowed_to(template, role) for role in roles(template)):
        if "lambda:InvokeFunction" in texts(at(statement, "Action")):
            yield from items(at(statement, "Resource"))


@fails_with(put("SupervisorFunctionEventInvokeConfig/Qualifier", "$LATEST"))
def test_the_settings_of_asynchronous_invocations_are_those_of_the_alias(
    template: Document,
) -> None:
    """Lambda applies the settings of the function itself to `$LATEST` only."""
    for name, config in of_type(template, "AWS::Lambda::EventInvokeConfig").items():
        assert at(config, "Qualifier") == LIVE, name


@fails_with(drop("Resources/SubmissionFunction/DependsOn"))
def test_submission_is_updated_after_the_schedulers_alias(template: Document) -> None:
    """New plans start once the scheduler can read them."""
    wanted = {name for name, function in aliases(template).items() if function == FIRST}
    assert wanted
    assert wanted <= set(texts(at(template, "Resources", THEN, "DependsOn")))
