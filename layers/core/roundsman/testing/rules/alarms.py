"""Alarms: each state that needs a person raises one, at the alert topic."""

from collections.abc import Iterator

from roundsman.testing.rules.application import Application, Rule, compare
from roundsman.testing.rules.reading import (
    agents,
    at,
    dead_letter_queues,
    environment,
    functions,
    of_type,
    reference,
    work_queues,
)
from roundsman.testing.stack.template import Document

SUPERVISOR_ALARM = "SupervisorHasNotRunAlarm"


def alarms(template: Document) -> dict[str, Document]:
    """The properties of every alarm, by logical id."""
    return of_type(template, "AWS::CloudWatch::Alarm")


def watched(template: Document, namespace: str, metric: str) -> list[str]:
    """What the alarms on a metric watch: logical ids, or values of the dimension `service`."""
    return sorted(_watched(template, namespace, metric))


def _watched(template: Document, namespace: str, metric: str) -> Iterator[str]:
    for name, alarm in alarms(template).items():
        if (alarm.get("Namespace"), alarm.get("MetricName")) == (namespace, metric):
            match alarm.get("Dimensions"):
                case [{"Name": "service", "Value": str(service)}]:
                    yield service
                case [{"Name": "QueueName" | "FunctionName", "Value": value}] if reference(value):
                    yield reference(value)
                case _:
                    yield f"an unknown dimension of {name}"


def dead_letter_alarms(application: Application) -> list[str]:
    """Every dead-letter queue has one alarm, which is raised if the queue is not empty."""
    template = application.template
    found = watched(template, "AWS/SQS", "ApproximateNumberOfMessagesVisible")
    return compare("the alarms on dead letters", found, dead_letter_queues(template))


def backlog_alarms(application: Application) -> list[str]:
    """Every queue that functions read has one alarm, on the age of its oldest message.

    The threshold is OldestMessageAlarmSeconds for all.
    """
    template = application.template
    found = watched(template, "AWS/SQS", "ApproximateAgeOfOldestMessage")
    wanted = at(alarms(template).get("SubmissionBacklogAlarm"), "Threshold")
    return [
        *compare("the alarms on the oldest message", found, work_queues(template)),
        *(
            f"{name}: Threshold must be the engine's OldestMessageAlarmSeconds"
            for name, alarm in alarms(template).items()
            if alarm.get("MetricName") == "ApproximateAgeOfOldestMessage"
            and alarm.get("Threshold") != wanted
        ),
    ]


def error_alarms(application: Application) -> list[str]:
    """Every function has one alarm on its errors: a crash, a time-out, a failed import."""
    template = application.template
    found = watched(template, "AWS/Lambda", "Errors")
    return compare("the alarms on errors of functions", found, functions(template))


def archived_alarms(application: Application) -> list[str]:
    """An archived task raises an alarm, whether the scheduler or the supervisor archived it."""
    found = watched(application.template, "Roundsman", "TasksArchived")
    return compare("the alarms on archived tasks", found, ("scheduler", "supervisor"))


def handler_alarms(application: Application) -> list[str]:
    """Every agent has an alarm on requests that its code has no function for.

    The plan and the agent's code are then of different versions.
    """
    template = application.template
    found = watched(template, "Roundsman", "StepsWithoutHandler")
    expected = [agent.name for agent in agents(template)]
    return compare("the alarms on steps without a handler", found, expected)


def rejected_alarm(application: Application) -> list[str]:
    """A rejected message raises an alarm, whichever function rejected it."""
    found = watched(application.template, "AWS/SQS", "NumberOfMessagesSent")
    return compare("the alarms on rejected messages", found, ("RejectedQueue",))


def alarmed_services(application: Application) -> list[str]:
    """The services that alarms name are those of functions (POWERTOOLS_SERVICE_NAME).

    An alarm on another name is never raised.
    """
    template = application.template
    named = {environment(template, name)["POWERTOOLS_SERVICE_NAME"] for name in functions(template)}
    return [
        f"the alarms on {metric} name {service}, which is the name of no function"
        for metric in ("TasksArchived", "StepsWithoutHandler")
        for service in watched(template, "Roundsman", metric)
        if service not in named
    ]


def supervisor_alarm(application: Application) -> list[str]:
    """A supervisor that does not run raises an alarm; missing data counts as a failure.

    Nothing overdue is recovered without it, and nothing else would report it.
    """
    template, problems = application.template, list[str]()
    found = watched(template, "AWS/Lambda", "Invocations")
    problems += compare("the alarms on invocations", found, ("SupervisorFunction",))
    alarm = alarms(template).get(SUPERVISOR_ALARM)
    for name, value in (
        ("ComparisonOperator", "LessThanThreshold"),
        ("Threshold", 1),
        ("TreatMissingData", "breaching"),
    ):
        if at(alarm, name) != value:
            problems.append(f"{SUPERVISOR_ALARM}: {name} must be {value}")
    return problems


def alarm_actions(application: Application) -> list[str]:
    """Every alarm is sent to the alert topic, with a description."""
    problems = []
    for name, alarm in alarms(application.template).items():
        if alarm.get("AlarmActions") != [{"Ref": "AlertTopic"}]:
            problems.append(f"{name}: AlarmActions must be AlertTopic")
        if not str(alarm.get("AlarmDescription", "")).strip():
            problems.append(f"{name}: AlarmDescription must say what happened")
    return problems


def missing_data(application: Application) -> list[str]:
    """Missing data raises no alarm, except that of the supervisor.

    A queue or a function without traffic sends none.
    """
    problems = []
    for name, alarm in alarms(application.template).items():
        if name == SUPERVISOR_ALARM:
            continue
        if alarm.get("TreatMissingData") != "notBreaching":
            problems.append(f"{name}: TreatMissingData must be notBreaching")
        if alarm.get("ComparisonOperator") != "GreaterThanThreshold":
            problems.append(f"{name}: ComparisonOperator must be GreaterThanThreshold")
    return problems


RULES: tuple[Rule, ...] = (
    dead_letter_alarms,
    backlog_alarms,
    error_alarms,
    archived_alarms,
    handler_alarms,
    rejected_alarm,
    alarmed_services,
    supervisor_alarm,
    alarm_actions,
    missing_data,
)
