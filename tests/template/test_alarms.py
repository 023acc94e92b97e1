"""Alarms of our stacks: each state that needs a person raises one, at the alert topic."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from roundsman_dev.check.reading import (
    STACK,
    at,
    chosen,
    functions,
    mappings_in,
    reference,
)
from roundsman_dev.template import Document, Json
from tests.support.template_reading import (
    ENGINE_TABLES,
    METRICS_NAMESPACE,
    NO_VALUE,
    alarms,
    dead_letter_queues,
    environment,
    tables,
    work_queues,
)
from tests.template.faults import drop, fails_with, put, ref, sub

SUPERVISOR_ALARM = "SupervisorHasNotRunAlarm"

Dimensions: TypeAlias = frozenset[str]
ALL: Dimensions = frozenset()
INDEXES = "GlobalSecondaryIndexes"
SERVICE: Dimensions = frozenset({"service"})
OWN = "the stack"
"""Stands for METRICS_NAMESPACE in the tables below."""


@dataclass(frozen=True)
class KnownMetric:
    """A metric that exists: with which names of dimensions, and which statistic means something."""

    dimensions: tuple[Dimensions, ...]
    statistic: str


OF_A_FUNCTION = KnownMetric((frozenset({"FunctionName"}),), "Sum")
OF_A_QUEUE = KnownMetric((frozenset({"QueueName"}),), "Maximum")
OF_A_TABLE = KnownMetric(
    (frozenset({"TableName"}), frozenset({"TableName", "GlobalSecondaryIndexName"})), "Sum"
)
OF_ALL_FUNCTIONS = KnownMetric((SERVICE, ALL), "Sum")

METRICS: Mapping[tuple[str, str], KnownMetric] = {
    # https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
    ("AWS/Lambda", "Errors"): OF_A_FUNCTION,
    ("AWS/Lambda", "Throttles"): OF_A_FUNCTION,
    ("AWS/Lambda", "Invocations"): OF_A_FUNCTION,
    ("AWS/Lambda", "ClaimedAccountConcurrency"): KnownMetric((ALL,), "Maximum"),
    # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
    ("AWS/SQS", "ApproximateAgeOfOldestMessage"): OF_A_QUEUE,
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"): OF_A_QUEUE,
    # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html
    ("AWS/DynamoDB", "ReadThrottleEvents"): OF_A_TABLE,
    ("AWS/DynamoDB", "WriteThrottleEvents"): OF_A_TABLE,
    # what the functions write (roundsman.aws.observability)
    (OWN, "AlertsFailed"): OF_ALL_FUNCTIONS,
    (OWN, "HandlerErrors"): OF_ALL_FUNCTIONS,
    (OWN, "StepsWithoutHandler"): OF_ALL_FUNCTIONS,
    (OWN, "TasksArchived"): OF_ALL_FUNCTIONS,
    (OWN, "TasksCompleted"): OF_ALL_FUNCTIONS,
    (OWN, "TasksUndone"): OF_ALL_FUNCTIONS,
    (OWN, "TasksTroubled"): KnownMetric((SERVICE,), "Sum"),
    (OWN, "SupervisorLagMs"): KnownMetric((SERVICE,), "Maximum"),
    (OWN, "SchedulerBehindMs"): KnownMetric((SERVICE,), "Maximum"),
}
"""The metrics that alarms may watch. An alarm on another name, dimension or statistic would never
be raised, or mean something else."""

OF_THE_SUPERVISOR: Json = [{"Name": "service", "Value": "supervisor"}]
OF_EVERY_STACK: Mapping[str, tuple[str, str, Json]] = {
    "ArchivedTasksAlarm": (OWN, "TasksArchived", None),
    "HandlerErrorsAlarm": (OWN, "HandlerErrors", None),
    "StepsWithoutHandlerAlarm": (OWN, "StepsWithoutHandler", None),
    "AlertsFailedAlarm": (OWN, "AlertsFailed", None),
    "TroubledTasksAlarm": (OWN, "TasksTroubled", OF_THE_SUPERVISOR),
    "SupervisorLagAlarm": (OWN, "SupervisorLagMs", OF_THE_SUPERVISOR),
    "SchedulerBehindAlarm": (OWN, "SchedulerBehindMs", OF_THE_SUPERVISOR),
    "AccountConcurrencyAlarm": ("AWS/Lambda", "ClaimedAccountConcurrency", None),
}
"""The alarms that are for the stack as a whole, with what each watches."""


def namespace_of(metric: Json) -> str:
    """The namespace of a metric; OWN for that of the stack's own metrics."""
    found = at(metric, "Namespace")
    return OWN if found == METRICS_NAMESPACE else str(found)


def watched(template: Document, namespace: str, metric: str) -> list[str]:
    """What the alarms on a metric watch: logical ids of queues, functions and tables.

    An index is `TasksTable/due`.
    """
    return sorted(
        "/".join(reference(at(one, "Value")) or str(at(one, "Value")) for one in dimensions)
        for alarm in alarms(template).values()
        if (namespace_of(alarm), alarm.get("MetricName")) == (namespace, metric)
        for dimensions in [mappings_in(alarm.get("Dimensions"))]
    )


@fails_with(
    drop("Resources/GiftWrapReplyDeadLettersAlarm"),
    drop("Resources/RejectedMessagesAlarm"),
    put("RejectedMessagesAlarm/MetricName", "NumberOfMessagesSent"),
    put("RejectedMessagesAlarm/TreatMissingData", "notBreaching"),
    put("GiftWrapReplyDeadLettersAlarm/Threshold", 10),
    drop("GiftWrapReplyDeadLettersAlarm/Dimensions"),
    put(
        "GiftWrapReplyDeadLettersAlarm/Dimensions/0/Value",
        {"Fn::GetAtt": ["BillingReplyDeadLetterQueue", "QueueName"]},
    ),
)
def test_an_alarm_is_raised_as_long_as_messages_are_put_aside(template: Document) -> None:
    """It looks at what is there and not at what came in a minute, so it ends when somebody has
    dealt with the messages. Missing data leaves it as it is: SQS sends no metrics of a queue that
    nobody has used for some hours, whether or not messages are in it."""
    found = watched(template, "AWS/SQS", "ApproximateNumberOfMessagesVisible")
    assert found == sorted(["RejectedQueue", *dead_letter_queues(template)])
    for name, alarm in alarms(template).items():
        if alarm.get("MetricName") == "ApproximateNumberOfMessagesVisible":
            assert (alarm["Threshold"], alarm["TreatMissingData"]) == (0, "ignore"), name


@fails_with(drop("Resources/GiftWrapRequestBacklogAlarm"), drop("Resources/SchedulerBacklogAlarm"))
def test_every_queue_that_is_read_has_an_alarm_on_its_oldest_message(template: Document) -> None:
    """A reply queue needs none: SchedulerBehindAlarm is raised once for all of them."""
    found = watched(template, "AWS/SQS", "ApproximateAgeOfOldestMessage")
    expected = [name for name in work_queues(template) if not name.endswith("ReplyQueue")]
    assert [name for name in found if not name.endswith("ReplyQueue")] == sorted(expected)


@fails_with(
    drop("Resources/GiftWrapErrorsAlarm"),
    drop("Resources/SchedulerThrottlesAlarm"),
    put("SupervisorHasNotRunAlarm/TreatMissingData", "notBreaching"),
    put("SupervisorHasNotRunAlarm/TreatMissingData", "breaching"),
    drop("SupervisorHasNotRunAlarm/InsufficientDataActions"),
    put("SupervisorHasNotRunAlarm/Threshold", 0),
    put("SupervisorHasNotRunAlarm/ComparisonOperator", "GreaterThanThreshold"),
    put("SupervisorHasNotRunAlarm/Dimensions/0/Value", ref("SchedulerFunction")),
)
def test_every_function_has_alarms_on_its_errors_and_throttles_and_the_supervisor_must_run(
    template: Document,
) -> None:
    """An error is a crash, a time-out or a failed import, a throttle a start that Lambda refused.
    Nothing overdue is recovered without the supervisor, and nothing else would report it."""
    for metric in ("Errors", "Throttles"):
        assert watched(template, "AWS/Lambda", metric) == sorted(functions(template)), metric
    assert watched(template, "AWS/Lambda", "Invocations") == ["SupervisorFunction"]
    alarm = alarms(template)[SUPERVISOR_ALARM]
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 1)
    assert alarm["TreatMissingData"] == "missing"
    assert alarm.get("InsufficientDataActions") == [ref("AlertTopic")]


@fails_with(
    drop("Resources/OrdersWriteThrottlesAlarm"),
    drop("Resources/DueIndexReadThrottlesAlarm"),
    drop("OrdersWriteThrottlesAlarm/Dimensions"),
)
def test_every_table_and_index_has_alarms_on_refused_reads_and_writes(template: Document) -> None:
    """The indexes of search, which the default has not, are none of them: docs/decisions/0147."""
    indexes = [
        f"{table}/{index['IndexName']}"
        for table in ENGINE_TABLES
        for index in mappings_in(chosen(template, at(tables(template).get(table), INDEXES)))
        if index != NO_VALUE
    ]
    for metric in ("ReadThrottleEvents", "WriteThrottleEvents"):
        found = watched(template, "AWS/DynamoDB", metric)
        assert found == sorted([*ENGINE_TABLES, *indexes]), metric


@fails_with(
    drop("Resources/ArchivedTasksAlarm"),
    drop("Resources/SchedulerBehindAlarm"),
    put("ArchivedTasksAlarm/Dimensions", [{"Name": "service", "Value": "scheduler"}]),
    put("HandlerErrorsAlarm/Namespace", "Roundsman"),
)
def test_the_stack_has_each_alarm_that_is_for_all_of_it(template: Document) -> None:
    """Those without a dimension watch all functions at once, also agents that are added."""
    found = {
        name: (namespace_of(alarm), alarm.get("MetricName"), alarm.get("Dimensions"))
        for name, alarm in alarms(template).items()
        if name in OF_EVERY_STACK
    }
    assert found == dict(OF_EVERY_STACK)


@fails_with(
    put("HandlerErrorsAlarm/MetricName", "HandlerFailures"),
    put("HandlerErrorsAlarm/Namespace", "Roundsman"),
    drop("TroubledTasksAlarm/Dimensions"),
    put("GiftWrapErrorsAlarm/Statistic", "Average"),
    put("TroubledTasksAlarm/Dimensions/0/Value", "supervising"),
    put("UndoneShareAlarm/Metrics/1/MetricStat/Metric/MetricName", "OrdersUndone"),
)
def test_the_metric_of_each_alarm_exists_with_its_dimensions_and_a_statistic_that_means_something(
    template: Document,
) -> None:
    services = {environment(template, f)["POWERTOOLS_SERVICE_NAME"] for f in functions(template)}
    for name, alarm in alarms(template).items():
        for metric, statistic in _metrics(alarm):
            known = METRICS.get((namespace_of(metric), str(metric.get("MetricName"))))
            assert known, name
            dimensions = mappings_in(metric.get("Dimensions"))
            assert frozenset(str(one.get("Name")) for one in dimensions) in known.dimensions, name
            assert statistic == known.statistic, name
            named = {str(at(o, "Value")) for o in dimensions if at(o, "Name") == "service"}
            assert named <= services, name


def _metrics(alarm: Document) -> Iterator[tuple[Document, Json]]:
    """The metric of an alarm, or those of its expression, each with its statistic."""
    if "Metrics" not in alarm:
        yield alarm, alarm.get("Statistic")
    for one in mappings_in(alarm.get("Metrics")):
        for stat in mappings_in(one.get("MetricStat")):
            for metric in mappings_in(stat.get("Metric")):
                yield metric, stat.get("Stat")


@fails_with(
    put("GiftWrapErrorsAlarm/AlarmName", "GiftWrapErrors"),
    put("GiftWrapErrorsAlarm/AlarmName", sub(f"{STACK}-SchedulerErrorsAlarm")),
)
def test_the_names_of_alarms_begin_with_that_of_the_stack_and_no_two_are_the_same(
    template: Document,
) -> None:
    """Two stacks in one account share no alarm, and whoever hears of one knows whose it is."""
    given = [str(at(alarm.get("AlarmName"), "Fn::Sub")) for alarm in alarms(template).values()]
    assert all(name.startswith(f"{STACK}-") for name in given)
    assert len(set(given)) == len(given)


@fails_with(
    put("GiftWrapErrorsAlarm/AlarmActions", []),
    put("GiftWrapErrorsAlarm/OKActions", [ref("AlertTopic")]),
    drop("SupervisorHasNotRunAlarm/OKActions"),
    put("GiftWrapErrorsAlarm/AlarmDescription", " "),
)
def test_every_alarm_is_sent_to_the_alert_topic_and_the_end_of_one_with_a_description(
    template: Document,
) -> None:
    """A new alarm that finds no trouble ends, so each with an action for its end would send a mail
    when the stack is created: some 60. That of the supervisor sends one, which shows that the stack
    works."""
    for name, alarm in alarms(template).items():
        assert alarm.get("AlarmActions") == [ref("AlertTopic")], name
        ends = [ref("AlertTopic")] if name == SUPERVISOR_ALARM else None
        assert alarm.get("OKActions") == ends, name
        assert str(alarm.get("AlarmDescription", "")).strip(), name


@fails_with(
    put("SupervisorHasNotRunAlarm/TreatMissingData", "breaching"),
    put("GiftWrapErrorsAlarm/OKActions", [ref("AlertTopic")]),
    put("GiftWrapErrorsAlarm/TreatMissingData", "breaching"),
)
def test_a_stack_that_is_created_and_works_sends_one_mail_beside_the_confirmation(
    template: Document,
) -> None:
    """CloudWatch creates an alarm in INSUFFICIENT_DATA. It then goes to OK, except that data which
    is missing and counts as breaching raises it at once; each change with an action is a mail."""
    sent = [
        name
        for name, alarm in alarms(template).items()
        for mails in (
            alarm.get("AlarmActions") if alarm.get("TreatMissingData") == "breaching" else None,
            alarm.get("OKActions"),
        )
        if mails
    ]
    assert sent == [SUPERVISOR_ALARM]


@fails_with(
    put("GiftWrapRequestBacklogAlarm/TreatMissingData", "breaching"),
    put("GiftWrapRequestBacklogAlarm/ComparisonOperator", "LessThanThreshold"),
)
def test_missing_data_raises_no_alarm_but_that_of_the_supervisor(template: Document) -> None:
    """A queue, a table or a function without traffic sends none."""
    for name, alarm in alarms(template).items():
        if name != SUPERVISOR_ALARM:
            assert alarm.get("TreatMissingData") in ("notBreaching", "ignore"), name
            put_aside = alarm.get("MetricName") == "ApproximateNumberOfMessagesVisible"
            assert put_aside or alarm["TreatMissingData"] == "notBreaching", name
            assert alarm.get("ComparisonOperator") == "GreaterThanThreshold", name
