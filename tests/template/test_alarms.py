"""Whatever needs a person rings, and rings at the alert topic."""

from collections.abc import Iterator

import pytest

from roundsman.testing.stack.template import Document, mapping_of
from tests.project import translate
from tests.template.reading import dead_letter_queues, of_type, referred, work_queues

AGENTS = ("inventory", "payment", "shipping", "mail")


def alarms(document: Document) -> dict[str, Document]:
    return of_type(document, "AWS::CloudWatch::Alarm")


def watched(document: Document, namespace: str, metric: str) -> list[str]:
    """What the alarms on one metric watch: logical ids, or values of the dimension `service`."""
    return sorted(_watched(document, namespace, metric))


def _watched(document: Document, namespace: str, metric: str) -> Iterator[str]:
    for alarm in alarms(document).values():
        if (alarm["Namespace"], alarm["MetricName"]) == (namespace, metric):
            match alarm["Dimensions"]:
                case [{"Name": "service", "Value": str(service)}]:
                    yield service
                case [{"Name": "QueueName" | "FunctionName", "Value": reference}]:
                    yield referred(reference)
                case other:
                    raise AssertionError(f"unexpected dimensions: {other}")


def test_every_dead_letter_queue_rings_when_it_is_not_empty(document: Document) -> None:
    found = watched(document, "AWS/SQS", "ApproximateNumberOfMessagesVisible")
    assert found == sorted(dead_letter_queues(document))


def test_every_work_queue_rings_when_its_oldest_message_waits_too_long(
    document: Document,
) -> None:
    found = watched(document, "AWS/SQS", "ApproximateAgeOfOldestMessage")
    assert found == sorted(work_queues(document))
    for alarm in alarms(document).values():
        if alarm["MetricName"] == "ApproximateAgeOfOldestMessage":
            assert alarm["Threshold"] == {"Ref": "OldestMessageAlarmSeconds"}


def test_every_function_rings_when_it_fails(document: Document) -> None:
    found = watched(document, "AWS/Lambda", "Errors")
    assert found == sorted(of_type(document, "AWS::Lambda::Function"))


def test_archived_tasks_ring_whoever_archives_them(document: Document) -> None:
    assert watched(document, "Roundsman", "TasksArchived") == ["scheduler", "supervisor"]


def test_a_request_that_no_code_can_handle_rings(document: Document) -> None:
    assert watched(document, "Roundsman", "StepsWithoutHandler") == sorted(AGENTS)


def test_a_rejected_message_rings_whoever_rejects_it(document: Document) -> None:
    assert watched(document, "AWS/SQS", "NumberOfMessagesSent") == ["RejectedQueue"]


def test_the_services_that_alarms_name_are_those_that_functions_are_called(
    document: Document,
) -> None:
    named = {
        str(
            mapping_of(mapping_of(mapping_of(f["Environment"])["Variables"]))[
                "POWERTOOLS_SERVICE_NAME"
            ]
        )
        for f in of_type(document, "AWS::Lambda::Function").values()
    }
    for metric in ("TasksArchived", "StepsWithoutHandler"):
        assert set(watched(document, "Roundsman", metric)) <= named


def test_a_supervisor_that_does_not_run_rings_since_silence_counts_as_failure(
    document: Document,
) -> None:
    alarm = alarms(document)["SupervisorHasNotRunAlarm"]
    assert watched(document, "AWS/Lambda", "Invocations") == ["SupervisorFunction"]
    assert alarm["ComparisonOperator"] == "LessThanThreshold"
    assert alarm["Threshold"] == 1
    assert alarm["TreatMissingData"] == "breaching"


@pytest.mark.parametrize(
    ("interval", "period", "rate"),
    [
        ("5", 60, "rate(1 minute)"),
        ("60", 60, "rate(1 minute)"),
        ("300", 300, "rate(5 minutes)"),
        ("3600", 3600, "rate(1 hour)"),
    ],
)
def test_a_supervisor_on_longer_rounds_is_given_longer(
    interval: str, period: int, rate: str
) -> None:
    document = translate({"SupervisorIntervalSeconds": interval})
    alarm = alarms(document)["SupervisorHasNotRunAlarm"]
    schedule = of_type(document, "AWS::Scheduler::Schedule")["SupervisorFunctionRounds"]
    assert alarm["Period"] == period
    assert schedule["ScheduleExpression"] == rate


def test_every_alarm_goes_to_the_alert_topic_and_says_what_it_means(document: Document) -> None:
    for name, alarm in alarms(document).items():
        assert alarm["AlarmActions"] == [{"Ref": "AlertTopic"}], name
        assert str(alarm["AlarmDescription"]).strip(), name


def test_silence_is_no_alarm_but_for_the_supervisor(document: Document) -> None:
    for name, alarm in alarms(document).items():
        if name != "SupervisorHasNotRunAlarm":
            assert alarm["TreatMissingData"] == "notBreaching", name
            assert alarm["ComparisonOperator"] == "GreaterThanThreshold", name
