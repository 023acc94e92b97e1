"""Alarms: each state that needs a person raises one, at the alert topic."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from roundsman.testing.rules.application import Application, Rule, compare
from roundsman.testing.rules.reading import (
    ENGINE_TABLES,
    METRICS_NAMESPACE,
    STACK,
    at,
    chosen,
    dead_letter_queues,
    default_of,
    environment,
    functions,
    items,
    mappings_in,
    of_type,
    queues,
    reference,
    tables,
    work_queues,
)
from roundsman.testing.stack.template import Document, Json

SUPERVISOR_ALARM = "SupervisorHasNotRunAlarm"

Dimensions: TypeAlias = frozenset[str]
ALL: Dimensions = frozenset()
SERVICE: Dimensions = frozenset({"service"})
OWN = "the stack"
"""Stands for METRICS_NAMESPACE in the tables below."""


@dataclass(frozen=True)
class KnownMetric:
    """A metric that exists: with which names of dimensions, and which statistic tells something."""

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
    (OWN, "TasksTroubled"): KnownMetric((SERVICE,), "Sum"),
    (OWN, "SupervisorLagMs"): KnownMetric((SERVICE,), "Maximum"),
    (OWN, "SchedulerBehindMs"): KnownMetric((SERVICE,), "Maximum"),
}
"""The metrics that the alarms of an application may watch. An alarm on another name, dimension or
statistic of these namespaces would never be raised, or mean something else."""

OF_EVERY_STACK: Mapping[str, tuple[str, str, Json]] = {
    "ArchivedTasksAlarm": (OWN, "TasksArchived", None),
    "HandlerErrorsAlarm": (OWN, "HandlerErrors", None),
    "StepsWithoutHandlerAlarm": (OWN, "StepsWithoutHandler", None),
    "AlertsFailedAlarm": (OWN, "AlertsFailed", None),
    "TroubledTasksAlarm": (OWN, "TasksTroubled", [{"Name": "service", "Value": "supervisor"}]),
    "SupervisorLagAlarm": (OWN, "SupervisorLagMs", [{"Name": "service", "Value": "supervisor"}]),
    "SchedulerBehindAlarm": (
        OWN,
        "SchedulerBehindMs",
        [{"Name": "service", "Value": "supervisor"}],
    ),
    "AccountConcurrencyAlarm": ("AWS/Lambda", "ClaimedAccountConcurrency", None),
}
"""The alarms that are for the stack as a whole, with what each watches."""


def alarms(template: Document) -> dict[str, Document]:
    """The properties of every alarm, by logical id."""
    return of_type(template, "AWS::CloudWatch::Alarm")


def namespace_of(alarm: Document) -> str:
    """The namespace of an alarm's metric; OWN for that of the stack's own metrics."""
    found = alarm.get("Namespace")
    return OWN if found == METRICS_NAMESPACE else str(found)


def watched(template: Document, namespace: str, metric: str) -> list[str]:
    """What the alarms on a metric watch: logical ids of queues, functions and tables.

    An index is `TasksTable/due`.
    """
    return sorted(_watched(template, namespace, metric))


def _watched(template: Document, namespace: str, metric: str) -> Iterator[str]:
    for name, alarm in alarms(template).items():
        if (namespace_of(alarm), alarm.get("MetricName")) == (namespace, metric):
            match alarm.get("Dimensions"):
                case [{"Name": "QueueName" | "FunctionName" | "TableName", "Value": value}] if (
                    reference(value)
                ):
                    yield reference(value)
                case [
                    {"Name": "TableName", "Value": table},
                    {"Name": "GlobalSecondaryIndexName", "Value": str(index)},
                ]:
                    yield f"{reference(table)}/{index}"
                case _:
                    yield f"an unknown dimension of {name}"


def messages_put_aside(application: Application) -> list[str]:
    """An alarm is raised as long as RejectedQueue or a dead-letter queue has a message.

    It looks at what is there and not at what came in a minute, so it ends when somebody has dealt
    with the messages. Missing data leaves it as it is: SQS sends no metrics of a queue that nobody
    has used for some hours, whether or not messages are in it.
    """
    template, problems = application.template, list[str]()
    expected = ["RejectedQueue", *dead_letter_queues(template)]
    found = watched(template, "AWS/SQS", "ApproximateNumberOfMessagesVisible")
    problems += compare("the alarms on messages that were put aside", found, expected)
    for name, alarm in alarms(template).items():
        if alarm.get("MetricName") == "ApproximateNumberOfMessagesVisible":
            problems += _must(name, alarm, Threshold=0, TreatMissingData="ignore")
    return problems


def backlog_alarms(application: Application) -> list[str]:
    """Every queue that functions read has one alarm, on the age of its oldest message.

    A reply queue needs none: SchedulerBehindAlarm is raised once for all of them.

    The threshold is more than the queue's VisibilityTimeout: a message whose function died is
    hidden for that long, and is then read again.
    """
    template, problems = application.template, list[str]()
    found = watched(template, "AWS/SQS", "ApproximateAgeOfOldestMessage")
    seen, expected = (
        [name for name in names if not name.endswith("ReplyQueue")]
        for names in (found, work_queues(template))
    )
    problems += compare("the alarms on the oldest message", seen, expected)
    for name, alarm in alarms(template).items():
        if alarm.get("MetricName") != "ApproximateAgeOfOldestMessage":
            continue
        queue = next(iter(_queues_of(alarm)), "")
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


def _queues_of(alarm: Document) -> Iterator[str]:
    for dimension in mappings_in(alarm.get("Dimensions")):
        if dimension.get("Name") == "QueueName":
            yield reference(dimension.get("Value"))


def function_alarms(application: Application) -> list[str]:
    """Every function has an alarm on its errors (a crash, a time-out, a failed import) and one on
    its throttles: a start that Lambda refused."""
    template = application.template
    return [
        problem
        for metric in ("Errors", "Throttles")
        for problem in compare(
            f"the alarms on {metric} of functions",
            watched(template, "AWS/Lambda", metric),
            functions(template),
        )
    ]


def table_alarms(application: Application) -> list[str]:
    """Every table of the engine and every index of it has an alarm on refused reads and one on
    refused writes."""
    template = application.template
    expected = [
        place
        for table in ENGINE_TABLES
        for place in (table, *_indexes(table, tables(template).get(table)))
    ]
    return [
        problem
        for metric in ("ReadThrottleEvents", "WriteThrottleEvents")
        for problem in compare(
            f"the alarms on {metric} of tables",
            [name for name in watched(template, "AWS/DynamoDB", metric) if _is_engines(name)],
            expected,
        )
    ]


def _is_engines(place: str) -> bool:
    return place.partition("/")[0] in ENGINE_TABLES or " " in place


def _indexes(table: str, properties: Json) -> list[str]:
    found = mappings_in(at(properties, "GlobalSecondaryIndexes"))
    return [f"{table}/{index.get('IndexName')}" for index in found]


def stack_alarms(application: Application) -> list[str]:
    """The stack has each alarm of OF_EVERY_STACK, on its metric.

    Those without a dimension watch all functions of the stack at once, also agents that are added.
    """
    problems, found = [], alarms(application.template)
    for name, (namespace, metric, dimensions) in OF_EVERY_STACK.items():
        alarm = found.get(name, {})
        if (namespace_of(alarm), alarm.get("MetricName"), alarm.get("Dimensions")) != (
            namespace,
            metric,
            dimensions,
        ):
            seen = "all functions" if dimensions is None else "the supervisor"
            problems.append(f"{name} must watch {metric} of {namespace} for {seen}")
    return problems


def existing_metrics(application: Application) -> list[str]:
    """The metric of each alarm exists, with these dimensions, and its statistic tells something.

    An alarm on another name is never raised. Alarms on other namespaces are the application's.
    """
    template, problems = application.template, list[str]()
    namespaces = {namespace for namespace, _ in METRICS}
    services = {
        environment(template, name)["POWERTOOLS_SERVICE_NAME"] for name in functions(template)
    }
    for name, alarm in alarms(template).items():
        namespace, metric = namespace_of(alarm), str(alarm.get("MetricName"))
        if namespace == str(alarm.get("Namespace")) and namespace.startswith("Roundsman"):
            problems.append(f"{name}: Namespace must be Roundsman/{STACK}")
        if namespace not in namespaces:
            continue
        known = METRICS.get((namespace, metric))
        if known is None:
            problems.append(f"{name}: there is no metric {metric} of {namespace}")
            continue
        dimensions = mappings_in(alarm.get("Dimensions"))
        names = frozenset(str(one.get("Name")) for one in dimensions)
        if names not in known.dimensions or len(items(alarm.get("Dimensions"))) != len(names):
            problems.append(f"{name}: {metric} has no dimensions {', '.join(sorted(names)) or '-'}")
        if alarm.get("Statistic") != known.statistic:
            problems.append(f"{name}: Statistic must be {known.statistic}")
        problems += [
            f"{name}: {one.get('Value')} is the name of no function"
            for one in dimensions
            if one.get("Name") == "service" and one.get("Value") not in services
        ]
    return problems


def alarm_names(application: Application) -> list[str]:
    """The name of each alarm begins with that of the stack, and no two are the same.

    Two stacks in one account then share no alarm, and whoever is told of one knows whose it is.
    """
    problems, seen = [], set[str]()
    for name, alarm in alarms(application.template).items():
        given = str(at(alarm.get("AlarmName"), "Fn::Sub"))
        if not given.startswith(f"{STACK}-"):
            problems.append(f"{name}: AlarmName must begin with {STACK}-")
        if given in seen:
            problems.append(f"{name}: another alarm has the same AlarmName")
        seen.add(given)
    return problems


def _must(name: str, alarm: Document, **values: Json) -> list[str]:
    return [
        f"{name}: {key} must be {value}" for key, value in values.items() if alarm.get(key) != value
    ]


def supervisor_alarm(application: Application) -> list[str]:
    """A supervisor that does not run raises an alarm; missing data counts as a failure.

    Nothing overdue is recovered without it, and nothing else would report it.
    """
    template, problems = application.template, list[str]()
    found = watched(template, "AWS/Lambda", "Invocations")
    problems += compare("the alarms on invocations", found, ("SupervisorFunction",))
    return problems + _must(
        SUPERVISOR_ALARM,
        alarms(template).get(SUPERVISOR_ALARM, {}),
        ComparisonOperator="LessThanThreshold",
        Threshold=1,
        TreatMissingData="breaching",
    )


def alarm_actions(application: Application) -> list[str]:
    """Every alarm is sent to the alert topic, its end too, with a description."""
    problems = []
    for name, alarm in alarms(application.template).items():
        problems += [
            f"{name}: {action} must be AlertTopic"
            for action in ("AlarmActions", "OKActions")
            if alarm.get(action) != [{"Ref": "AlertTopic"}]
        ]
        if not str(alarm.get("AlarmDescription", "")).strip():
            problems.append(f"{name}: AlarmDescription must say what happened")
    return problems


def missing_data(application: Application) -> list[str]:
    """Missing data raises no alarm, except that of the supervisor.

    A queue, a table or a function without traffic sends none. Nor does it end an alarm on messages
    that were put aside (`messages_put_aside`).
    """
    problems = []
    for name, alarm in alarms(application.template).items():
        if name == SUPERVISOR_ALARM:
            continue
        put_aside = alarm.get("MetricName") == "ApproximateNumberOfMessagesVisible"
        if not put_aside and alarm.get("TreatMissingData") != "notBreaching":
            problems.append(f"{name}: TreatMissingData must be notBreaching")
        if alarm.get("ComparisonOperator") != "GreaterThanThreshold":
            problems.append(f"{name}: ComparisonOperator must be GreaterThanThreshold")
    return problems


RULES: tuple[Rule, ...] = (
    messages_put_aside,
    backlog_alarms,
    function_alarms,
    table_alarms,
    stack_alarms,
    existing_metrics,
    alarm_names,
    supervisor_alarm,
    alarm_actions,
    missing_data,
)
