"""What the doctor finds wrong with queues, functions, tables, alarms and supervisors."""

from dataclasses import replace

import pytest

from roundsman.model.instants import MINUTE, SECOND
from roundsman_console.inspector.doctor.catalog import CATALOG
from roundsman_console.inspector.doctor.facts import (
    AlarmFact,
    QueueFact,
    ScheduleFact,
    StackFacts,
    TableFact,
    TopicFact,
)
from roundsman_console.inspector.doctor.stack_checks import spans
from roundsman_console.inspector.documents.doctor import FindingKind, Severity
from tests.console.doctor_samples import (
    HOUR,
    PAYMENT_QUEUE,
    SCHEDULER_QUEUE,
    WELL,
    dead_queue,
    function,
    mapping,
    of,
    visited,
)
from tests.contract.samples import NOW


def with_queue(**changes: object) -> StackFacts:
    """The same stack with another payment queue."""
    changed = replace(PAYMENT_QUEUE, **changes)  # type: ignore[arg-type]  # as each test says
    return replace(WELL, work_queues=(SCHEDULER_QUEUE, changed))


def with_function(**changes: object) -> StackFacts:
    changed = replace(function(), **changes)  # type: ignore[arg-type]  # as each test says
    return replace(WELL, functions=(function("SchedulerFunction"), changed))


def with_table(**changes: object) -> StackFacts:
    table = TableFact("TasksTable", "s-TasksTable", indexes={"due": "ACTIVE"})
    return replace(WELL, tables=(replace(table, **changes),))  # type: ignore[arg-type]  # likewise


def one_dead_letter() -> StackFacts:
    return replace(WELL, dead_letter_queues=(replace(dead_queue(), waiting=1),))


def rejected(waiting: int = 0, in_flight: int = 0) -> StackFacts:
    aside = QueueFact("RejectedQueue", "u", "a", waiting=waiting, in_flight=in_flight)
    return replace(WELL, rejected_queue=aside)


def disabled() -> StackFacts:
    return replace(
        WELL,
        mappings=(
            mapping(SCHEDULER_QUEUE, "SchedulerFunction"),
            mapping(PAYMENT_QUEUE, "PaymentFunction", "Disabled"),
        ),
    )


BROKEN = {
    "supervisor-late": (
        replace(WELL, leases=visited(NOW - 121 * SECOND)),
        replace(WELL, leases=visited(NOW - 120 * SECOND)),
        "shard 0-15",
        "2 min ago",
    ),
    "control-unreadable": (
        replace(WELL, unreadable_parts={("marks", "mail/normal.ReadAt"): "is missing"}),
        WELL,
        "marks: mail/normal.ReadAt",
        "is missing",
    ),
    "dead-letters": (one_dead_letter(), WELL, "PaymentRequestQueueDead", "1 message"),
    "rejected": (rejected(waiting=2, in_flight=1), rejected(), "RejectedQueue", "3 messages"),
    "queue-unread": (disabled(), WELL, "PaymentRequestQueue", "its mapping is Disabled"),
    "function-not-ready": (
        with_function(update="Failed", reason="no such layer"),
        with_function(update="InProgress"),
        "PaymentFunction",
        "last update Failed: no such layer",
    ),
    "function-stopped": (
        with_function(reserved=0),
        with_function(reserved=1),
        "PaymentFunction",
        "reserved concurrency is 0",
    ),
    "schedule-disabled": (
        replace(WELL, schedules=(ScheduleFact("Rounds", "s-Rounds", "DISABLED"),)),
        WELL,
        "Rounds",
        "is DISABLED",
    ),
    "table-not-ready": (
        with_table(indexes={"due": "ACTIVE", "failures": "CREATING"}),
        with_table(status="UPDATING"),
        "TasksTable, index failures",
        "is CREATING",
    ),
    "ttl-off": (with_table(ttl=False), with_table(ttl=None), "TasksTable", "TTL is not enabled"),
    "recovery-off": (
        with_table(recovery=False),
        with_table(recovery=True),
        "TasksTable",
        "point-in-time recovery is not enabled",
    ),
    "protection-off": (
        replace(with_table(protected=False), parameters={"DeletionProtection": "later"}),
        replace(with_table(protected=False), parameters={"DeletionProtection": "false"}),
        "TasksTable",
        "it does not refuse to be deleted; DeletionProtection is later",
    ),
    "alarm-silent": (
        replace(WELL, alarms=(AlarmFact("A", "s-A", enabled=False),)),
        WELL,
        "A",
        "its actions are disabled",
    ),
    "alerts-unheard": (
        replace(WELL, topic=TopicFact("arn:t", 0, 1)),
        replace(WELL, topic=TopicFact("arn:t", 1, 1)),
        "AlertTopic",
        "1 not confirmed",
    ),
}
"""Of each kind: a stack that has it, one that just does not, where it is found, what shows it."""


def test_nothing_is_found_where_all_is_well() -> None:
    assert of(WELL) == {}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_finding_is_made_where_its_reason_is_and_not_short_of_it(kind: str) -> None:
    broken, well, where, evidence = BROKEN[kind]
    found = of(broken)
    assert set(found) == {kind}
    assert found[kind].where == where
    assert evidence in found[kind].evidence
    assert kind not in of(well)


@pytest.mark.parametrize("without", ["leases", "mappings", "holds", "agents", "topic"])
def test_what_could_not_be_looked_at_is_no_finding(without: str) -> None:
    assert of(replace(disabled(), work_queues=(), **{without: None})) == {}  # type: ignore[arg-type]
    assert of(replace(WELL, **{without: None})) == {}  # type: ignore[arg-type]


def test_of_a_stack_that_was_just_made_no_round_is_expected() -> None:
    never = visited(0)
    assert of(replace(WELL, leases=never, stack_created_at=NOW - MINUTE)) == {}
    assert "never visited" in of(replace(WELL, leases=never))["supervisor-late"].evidence


@pytest.mark.parametrize("kind", ["operator", "breaker"])
def test_a_hold_that_cannot_be_read_is_found_with_its_release(kind: str) -> None:
    parts = {("holds", f"payment/{kind}.Until"): "is not a whole number"}
    found = of(replace(WELL, unreadable_parts=parts))["control-unreadable"]
    assert found.where == f"holds: payment/{kind}.Until"
    assert found.evidence == "is not a whole number"
    assert found.command == "roundsman release payment"
    nobodys = replace(WELL, unreadable_parts={("holds", "payment.Since"): "is missing"})
    assert of(nobodys)["control-unreadable"].command is None


def test_a_supervisor_on_longer_rounds_is_given_longer() -> None:
    leases = visited(NOW - HOUR)
    assert of(replace(WELL, leases=leases, interval=30 * MINUTE)) == {}


def test_shards_that_were_used_before_their_number_was_lowered_are_looked_for() -> None:
    leases = replace(visited(NOW), shards=18)
    assert of(replace(WELL, leases=leases))["supervisor-late"].where == "shard 16-17"


def test_dead_letters_that_were_order_events_say_so() -> None:
    assert of(one_dead_letter())["dead-letters"].evidence == "1 message"
    source = replace(PAYMENT_QUEUE, url=WELL.submission_queue)
    facts = replace(one_dead_letter(), work_queues=(SCHEDULER_QUEUE, source))
    assert of(facts)["dead-letters"].evidence == "1 message: orders that were never accepted"


def test_a_queue_without_any_mapping_says_what_waits_there() -> None:
    waits = replace(PAYMENT_QUEUE, waiting=3)
    facts = replace(WELL, work_queues=(waits,), mappings=())
    assert of(facts)["queue-unread"].evidence == "it has no mapping; 3 messages waiting"


def test_a_stack_that_is_said_not_to_be_restorable_is_no_finding() -> None:
    facts = replace(with_table(recovery=False), parameters={"PointInTimeRecovery": "false"})
    assert of(facts) == {}


def test_shards_are_told_in_runs() -> None:
    assert spans([7, 0, 1, 2, 9]) == "0-2, 7, 9"


def test_each_kind_says_what_it_means_and_what_mends_it() -> None:
    assert set(CATALOG) == set(FindingKind)
    for entry in CATALOG.values():
        assert entry.severity in Severity
        assert entry.means.endswith(".")
        assert entry.repair.endswith(".")
