"""`roundsman alerts`: what was alerted and still stands."""

import json
from dataclasses import replace
from typing import get_args

import boto3
import pytest

from roundsman.model.failure import NO_STEP, Group
from roundsman.model.holds import BREAKER, OPERATOR, Hold
from roundsman_console.facts.finding.queues import dead_letters, rejected
from roundsman_console.facts.finding.report import newest_first
from roundsman_console.facts.finding.standing import (
    Alarm,
    each_once,
    of_alarms,
    of_groups,
    of_holds,
    of_scheduler,
)
from roundsman_console.facts.finding.table import AlertSeverity
from tests.console.operators import Operator, at_each_call, document, holds_of, note_reply_read
from tests.console.schemas import assert_schema
from tests.moto.orders import order
from tests.project import load_template

NO_MAIL: dict[str, object] = {"operation": "POST /messages", "status": 422}

COUNTED = 1_800_000_000_000  # 2027-01-15T08:00:00Z
GROUP = Group(
    id="f-1a2b3c4d",
    workflow="order_fulfilment",
    step="charge_card",
    how="archived",
    error_type="Declined",
    message="the acquirer sent # <b>",
    opened_by="ord-1",
    opened_at=1_000,
    since=1_000,
    alerted_at=2_000,
    count=200,
    looked_at=COUNTED,
)


def test_a_group_that_was_alerted_stands_until_it_is_closed_or_has_no_members() -> None:
    [found] = of_groups([GROUP], COUNTED)
    assert found.sentence == (
        "200 orders archived (order_fulfilment, charge_card): Declined: the acquirer sent # <b>"
    )
    assert (found.severity, found.since, found.count) == ("error", 1_000, 200)
    assert found.command == "roundsman ls --group f-1a2b3c4d"
    assert of_groups([replace(GROUP, closed_at=3_000)], COUNTED) == []
    assert of_groups([replace(GROUP, count=0)], COUNTED) == []
    [not_alerted] = of_groups([replace(GROUP, alerted_at=None, count=1)], COUNTED)
    assert not_alerted.sentence.startswith("1 order archived")
    [again] = of_groups([replace(GROUP, clear_since=1)], COUNTED)
    assert again.sentence == found.sentence
    [whole] = of_groups([replace(GROUP, step=NO_STEP)], COUNTED)
    assert whole.sentence.startswith("200 orders archived (order_fulfilment): ")


def test_a_number_that_was_not_counted_now_says_when_it_was_counted() -> None:
    [found] = of_groups([GROUP], COUNTED + 60_000)
    assert found.sentence.endswith("; counted at 2027-01-15T08:00:00Z")


def test_undone_orders_stand_only_where_they_were_alerted() -> None:
    undone = replace(GROUP, how="undone")
    assert of_groups([replace(undone, alerted_at=None)], COUNTED) == []
    assert of_groups([replace(undone, clear_since=1)], COUNTED) == []
    assert [one.severity for one in of_groups([undone], COUNTED)] == ["warning"]


def test_circuits_and_holds_stand_while_they_are_in_force() -> None:
    circuit, hold = of_holds(
        [
            Hold("payment", BREAKER, 1, 2, "5 calls failed", "the circuit breaker"),
            Hold("mail", OPERATOR, 1, 2, "maintenance", "amy"),
        ]
    )
    assert (circuit.kind, circuit.severity, circuit.command) == (
        "circuit",
        "error",
        "roundsman agents",
    )
    assert (hold.kind, hold.severity, hold.command) == ("hold", "info", "roundsman release mail")


def test_every_alarm_of_the_template_has_a_next_command_of_its_own() -> None:
    resources = load_template()["Resources"]
    assert isinstance(resources, dict)
    names = [name for name in resources if name.endswith("Alarm")]
    assert len(names) > 40
    found = of_alarms([Alarm(name, "why", 1) for name in names])
    assert {one.severity for one in found} <= set(get_args(AlertSeverity))
    by_name = {one.where: one.alert_document()["next"] for one in found}
    assert by_name["PaymentReplyDeadLettersAlarm"] == "roundsman dlq ls PaymentReplyQueue"
    assert by_name["RejectedMessagesAlarm"] == "roundsman rejected ls"
    assert by_name["SupervisorErrorsAlarm"] == "roundsman doctor"
    [unknown] = of_alarms([Alarm("SomethingElse", "why", 1)])
    assert (unknown.severity, unknown.alert_document()["next"]) == ("error", "roundsman doctor")


def test_the_newest_comes_first_and_what_nobody_knows_the_beginning_of_last() -> None:
    [old] = of_groups([GROUP], COUNTED)
    [new] = of_groups([replace(GROUP, since=9_000)], COUNTED)
    [dead] = dead_letters("SchedulerQueue", 2)
    [lost] = rejected(1)
    assert newest_first([lost, old, dead, new]) == [new, old, dead, lost]


def test_what_was_set_aside_is_an_alert_in_other_words_than_the_doctors() -> None:
    [dead] = dead_letters("SchedulerQueue", 2)
    assert dead.alert_document() == {
        "kind": "dead_letters",
        "about": "SchedulerQueue",
        "severity": "error",
        "since": None,
        "count": 2,
        "sentence": "2 messages of SchedulerQueue failed every delivery",
        "next": "roundsman dlq ls SchedulerQueue",
        "page": "runbook/dead-letters.md",
    }
    [one], [many] = rejected(1), rejected(3)
    assert one.sentence == "1 message was rejected: no redelivery can succeed"
    assert many.sentence == "3 messages were rejected: no redelivery can succeed"
    assert (one.severity, one.command) == ("warning", "roundsman rejected ls")


def test_a_scheduler_that_is_behind_for_a_minute_is_one_problem() -> None:
    [found] = of_scheduler({"scheduler/commands": 60_000, "payment/replies": 720_000})
    assert found.sentence == (
        "the scheduler is 12 min behind: orders are late, and none fails for that"
    )
    assert (found.kind, found.where, found.command) == ("behind", "scheduler", "roundsman stats")
    assert of_scheduler({"payment/replies": 59_999}) == of_scheduler({}) == []


def test_the_alarms_of_the_same_backlog_are_not_listed_again() -> None:
    names = ("SchedulerBehindAlarm", "SchedulerBacklogAlarm", "SubmissionBacklogAlarm")
    raised = of_alarms([Alarm(name, "why", 1) for name in names])
    behind = of_scheduler({"scheduler/commands": 720_000})
    assert [one.where for one in each_once([*raised, *behind])] == [
        "SubmissionBacklogAlarm",
        "scheduler",
    ]
    assert each_once(raised) == raised
    assert {one.severity for one in raised} == {"warning"}


def test_what_the_marks_say_stands_until_they_are_out_of_date(operator: Operator) -> None:
    world = operator.world
    note_reply_read(world, "payment", waited=720_000)
    assert "the scheduler is 12 min behind" in operator.types("alerts").stdout
    found = operator.reads("alerts")
    assert_schema("alerts", found)
    assert [one["kind"] for one in alerts(found)] == ["behind"]


@pytest.mark.exhaustive
def test_all_that_stands_is_listed_with_what_to_run_next(operator: Operator) -> None:
    world = operator.world
    assert operator.types("alerts").stdout == "No alerts.\n"
    world.faults(NO_MAIL)
    world.submit("{not json", order("ord-1"))
    world.run()
    world.send("SchedulerDeadLetterQueue", "{}")
    until = world.clock() + 60_000
    holds_of(world).hold(Hold("mail", OPERATOR, world.clock(), until, "[b]red[/]\x1b[31m", "amy"))
    raise_alarms(operator, "roundsman", "roundsman-test")
    found = operator.reads("alerts")
    assert_schema("alerts", found)
    kinds = [str(one["kind"]) for one in alerts(found)]
    assert sorted(kinds) == ["alarm", "dead_letters", "group", "hold", "rejected"]
    printed = operator.types("alerts").stdout
    assert "1 message of SchedulerQueue failed every delivery" in printed
    assert "> roundsman dlq ls SchedulerQueue" in printed
    assert "1 order archived (order_fulfilment, send_confirmation)" in printed
    assert "> roundsman ls --group f-" in printed
    assert "[b]red[/]?[31m" in printed
    assert operator.reads("alerts", "--limit", "1")["more"] is True


def test_an_alarm_without_data_is_raised_if_that_is_what_it_watches(operator: Operator) -> None:
    """SupervisorHasNotRunAlarm is, when the supervisor is not started. So is an alarm on a queue
    that nobody uses, which says nothing."""
    topic = operator.world.stack.outputs["AlertTopicArn"]
    client = boto3.client("cloudwatch")
    for name, actions in (("SupervisorHasNotRunAlarm", [topic]), ("MailBacklogAlarm", [])):
        client.put_metric_alarm(
            AlarmName=f"roundsman-{name}",
            AlarmDescription="The supervisor was not started",
            AlarmActions=[topic],
            InsufficientDataActions=actions,
            Namespace="AWS/Lambda",
            MetricName="Invocations",
            Statistic="Sum",
            ComparisonOperator="LessThanThreshold",
            Threshold=1,
            Period=60,
            EvaluationPeriods=3,
        )
        client.set_alarm_state(
            AlarmName=f"roundsman-{name}", StateValue="INSUFFICIENT_DATA", StateReason="x"
        )
    [found] = alerts(operator.reads("alerts"))
    assert found["kind"] == "alarm"
    assert "SupervisorHasNotRunAlarm" in json.dumps(found)


@pytest.mark.exhaustive
def test_orders_are_counted_when_the_alerts_are_listed(operator: Operator) -> None:
    operator.world.faults(NO_MAIL)
    operator.world.submit(*(order(name) for name in ("ord-1", "ord-2", "ord-3")))
    operator.world.run()
    assert "3 orders archived" in operator.types("alerts").stdout
    operator.world.faults()
    for name in ("ord-1", "ord-2", "ord-3"):
        assert operator.asks("resubmit", name).exit_code == 0
    operator.world.run()
    assert operator.types("alerts").stdout == "No alerts.\n"


def test_what_cannot_be_read_hides_nothing_else(operator: Operator) -> None:
    operator.world.submit("{not json")
    operator.world.run()

    def refuse(**_: object) -> None:
        raise client.exceptions.ClientError(
            {"Error": {"Code": "AccessDenied", "Message": "no"}}, "DescribeAlarms"
        )

    client = boto3.client("sqs")
    with at_each_call("cloudwatch.DescribeAlarms", refuse):
        result = operator.types("alerts", "--json")
    assert result.exit_code == 1
    assert "Alarms: AWS refused DescribeAlarms" in result.stderr
    assert [one["kind"] for one in alerts(document(result))] == ["rejected"]


def alerts(found: dict[str, object]) -> list[dict[str, object]]:
    listed = found["alerts"]
    assert isinstance(listed, list)
    return listed


def raise_alarms(operator: Operator, *stacks: str) -> None:
    """Alarms in ALARM as CloudFormation names those of these stacks; and one that is well."""
    client = boto3.client("cloudwatch")
    for stack in stacks:
        for name in ("MailErrorsAlarm", "WellAlarm"):
            topic = operator.world.stack.outputs["AlertTopicArn"]
            client.put_metric_alarm(
                AlarmName=f"{stack}-{name}-1A2B3C",
                AlarmDescription="The mail agent's function failed as a whole",
                AlarmActions=[topic if stack == "roundsman" else f"{topic}-other"],
                Namespace="AWS/Lambda",
                MetricName="Errors",
                Statistic="Sum",
                ComparisonOperator="GreaterThanThreshold",
                Threshold=0,
                Period=60,
                EvaluationPeriods=1,
            )
            client.set_alarm_state(
                AlarmName=f"{stack}-{name}-1A2B3C",
                StateValue="OK" if name == "WellAlarm" else "ALARM",
                StateReason="x",
            )
