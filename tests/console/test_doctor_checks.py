"""What the doctor finds wrong with queues, functions, tables, alarms and schedules."""

from collections.abc import Callable, Iterable

import pytest

from roundsman_console.aws.subscriptions import Subscriptions
from roundsman_console.aws.versions import FunctionVersions
from roundsman_console.facts.finding.queues import (
    MappingFact,
    dead_letters,
    rejected,
    signals_without_id,
    unread,
)
from roundsman_console.facts.finding.report import Finding
from roundsman_console.facts.finding.stack import (
    function_findings,
    schedule_findings,
    silent_alarm,
    table_findings,
    topic_findings,
    version_findings,
)

Found = Iterable[Finding]


def function(
    state: str = "Active", update: str = "Successful", reason: str = "", reserved: int | None = None
) -> Found:
    return function_findings(
        "Pay", "s-Pay", state=state, update=update, reason=reason, reserved=reserved
    )


def table(
    ttl: bool | None = None,
    recovery: bool | None = None,
    protected: bool | None = None,
    status: str = "ACTIVE",
    **parameters: str,
) -> Found:
    return table_findings(
        "Tasks",
        "s-Tasks",
        parameters,
        status=status,
        ttl=ttl,
        recovery=recovery,
        protected=protected,
    )


def read_by(*states: str) -> Found:
    return unread("Q", [MappingFact("u-1", "s-Q", state) for state in states])


BROKEN: dict[str, tuple[Callable[[], Found], Callable[[], Found], str, str]] = {
    "dead-letters": (
        lambda: dead_letters("MailRequestQueue", 1),
        lambda: dead_letters("MailRequestQueue", 0),
        "MailRequestQueue",
        "1 message",
    ),
    "signals-without-id": (
        lambda: signals_without_id(3),
        lambda: signals_without_id(0),
        "SubmissionQueue",
        "3 signals in the last 24 hours",
    ),
    "rejected": (lambda: rejected(3), lambda: rejected(0), "RejectedQueue", "3 messages"),
    "queue-unread": (
        lambda: read_by("Disabled", "Disabling"),
        lambda: read_by("Disabled", "Enabling"),
        "Q",
        "its mapping is Disabled",
    ),
    "function-not-ready": (
        lambda: function(update="Failed", reason="no such layer"),
        lambda: function(update="InProgress"),
        "Pay",
        "last update Failed: no such layer",
    ),
    "function-stopped": (
        lambda: function(reserved=0),
        lambda: function(reserved=1),
        "Pay",
        "reserved concurrency is 0",
    ),
    "schedule-disabled": (
        lambda: schedule_findings("Rounds", "DISABLED"),
        lambda: schedule_findings("Rounds", "ENABLED"),
        "Rounds",
        "is DISABLED",
    ),
    "table-not-ready": (
        lambda: table(status="CREATING"),
        lambda: table(status="UPDATING"),
        "Tasks",
        "is CREATING",
    ),
    "ttl-off": (lambda: table(ttl=False), table, "Tasks", "TTL is not enabled"),
    "recovery-off": (
        lambda: table(recovery=False, PointInTimeRecovery="true"),
        lambda: table(recovery=False, PointInTimeRecovery="false"),
        "Tasks",
        "point-in-time recovery is not enabled",
    ),
    "orphan-version": (
        lambda: version_findings(FunctionVersions("Pay", "shop-Pay", 7, [7, 8])),
        lambda: version_findings(FunctionVersions("Pay", "shop-Pay", 7, [7, 8], frozenset({8}))),
        "Pay",
        "version 8 is newer than 7, which runs",
    ),
    "snapshots-pile-up": (
        lambda: version_findings(
            FunctionVersions("Pay", "shop-Pay", 4, [1, 2, 3, 4], snapshots=[1, 2, 3, 4])
        ),
        lambda: version_findings(
            FunctionVersions("Pay", "shop-Pay", 4, [1, 2, 3, 4], snapshots=[2, 3, 4])
        ),
        "Pay",
        "4 versions keep a snapshot each",
    ),
    "protection-off": (
        lambda: table(protected=False, DeletionProtection="later"),
        lambda: table(protected=False, DeletionProtection="false"),
        "Tasks",
        "it does not refuse to be deleted; DeletionProtection is later",
    ),
    "alarm-silent": (
        lambda: [silent_alarm("A", "s-A")],
        list,
        "A",
        "its actions are disabled",
    ),
    "alerts-unheard": (
        lambda: topic_findings("arn:t", Subscriptions(0, ["email a@b"])),
        lambda: topic_findings("arn:t", Subscriptions(1, ["email a@b"])),
        "AlertTopic",
        "1 not confirmed",
    ),
}
"""Of each kind: what has it, what just does not, where it is found, what shows it."""


@pytest.mark.parametrize("kind", BROKEN)
def test_a_finding_is_made_where_its_reason_is_and_not_short_of_it(kind: str) -> None:
    broken, well, where, evidence = BROKEN[kind]
    (found,) = broken()
    assert found.kind == kind
    assert found.where == where
    assert evidence in found.evidence
    assert list(well()) == []


def test_what_could_not_be_read_of_a_table_is_no_finding() -> None:
    assert list(table()) == []
    assert list(table(ttl=True, recovery=True, protected=True)) == []


def test_dead_letters_that_were_order_events_say_so() -> None:
    (found,) = dead_letters("SubmissionQueue", 1)
    assert found.evidence == "1 message: orders that were never accepted"
    assert found.command == "roundsman dlq ls SubmissionQueue"


def test_a_queue_without_any_mapping_has_none_to_enable() -> None:
    (found,) = read_by()
    assert (found.evidence, found.command) == ("it has no mapping", None)
    (disabled,) = read_by("Disabled")
    assert disabled.command == "aws lambda update-event-source-mapping --uuid u-1 --enabled"


def test_a_topic_without_any_subscription_is_found_with_the_command_for_one() -> None:
    (found,) = topic_findings("arn:t", Subscriptions(0))
    assert found.evidence == "no subscription"
    assert str(found.command).startswith("aws sns subscribe --topic-arn arn:t ")
