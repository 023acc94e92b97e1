"""The `processing` part: what an application may wish for, and what is refused."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.instants import iso
from roundsman.model.json import Json, canonical_json
from roundsman.model.schedules import Overlap, RecurringRun
from roundsman.submission.events import EventReader
from roundsman.submission.processing import read_processing
from roundsman.submission.submission import ValidOrder
from tests.support.orders_samples import (
    GOOD,
    NOW,
    REPLY_QUEUE,
    changed,
    problems,
    read,
    rejected,
    reply_queue_problem,
    wrong_paths,
)
from workflows.registry import WORKFLOWS

YEAR = 366 * 86_400


def options(**processing: Json) -> ProcessingOptions:
    return read({**GOOD, "processing": processing}).options


def problems_of(**processing: Json) -> list[str]:
    return problems({**GOOD, "processing": processing})


def test_an_order_without_processing_wishes_for_nothing() -> None:
    assert read(GOOD).options == ProcessingOptions()


@pytest.mark.parametrize("processing", [None, {}])
def test_null_or_empty_processing_is_the_same_as_none(processing: Json) -> None:
    event = read({**GOOD, "processing": processing})

    assert event.options == ProcessingOptions()
    assert event.content == read(GOOD).content


def test_a_wish_that_is_null_is_the_same_as_absent() -> None:
    names = ("workflow", "priority", "processAt", "processIn", "retention")
    more = ("completeWithin", "replyTo", "correlationId", "tenant")

    assert options(**dict.fromkeys((*names, *more))) == ProcessingOptions()


def test_every_wish_is_read_with_durations_in_milliseconds() -> None:
    assert options(
        workflow="order_fulfilment",
        priority="urgent",
        processIn=30,
        retention=86_400,
        completeWithin=7_200,
        replyTo=REPLY_QUEUE,
        correlationId="web-7",
        tenant="shop-1",
    ) == ProcessingOptions(
        start_at=NOW + 30_000,
        retain_for=86_400_000,
        complete_within=7_200_000,
        priority="urgent",
        reply_to=REPLY_QUEUE,
        correlation_id="web-7",
        tenant="shop-1",
    )


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-12-01T09:00:00Z", 1_796_115_600_000),
        ("2026-12-01T10:00:00+01:00", 1_796_115_600_000),
        ("2026-12-01T03:30:00-05:30", 1_796_115_600_000),
        ("2026-12-01T09:00Z", 1_796_115_600_000),
        ("2026-12-01T09:00:00.25Z", 1_796_115_600_250),
        ("2026-12-01T09:00:00.123456789Z", 1_796_115_600_123),
        ("2026-12-01 09:00:00Z", 1_796_115_600_000),
        ("20261201T090000Z", 1_796_115_600_000),
        ("2026-W49-2T09:00Z", 1_796_115_600_000),
        ("2026-12-01T10:00:00+0100", 1_796_115_600_000),
    ],
)
def test_an_instant_with_its_offset_is_read_exactly(text: str, instant: int) -> None:
    assert options(processAt=text).start_at == instant


def test_a_run_outside_the_calendar_is_refused() -> None:
    found = problems(changed("processing.run", "0001-01-01T00:00:00+14:00"))

    assert found == ["processing.run: is before the year 1 or after the year 9999 in UTC"]


@pytest.mark.parametrize("text", ["2020-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00"])
def test_an_instant_in_the_past_means_now(text: str) -> None:
    assert options(processAt=text).start_at == NOW


def test_no_delay_means_now() -> None:
    assert options(processIn=0).start_at == NOW


@pytest.mark.parametrize("text", ["2026-12-01T09:00:00", "2026-12-01T09:00", "2026-12-01"])
def test_an_instant_without_an_offset_is_refused_because_nobody_knows_when_it_is(text: str) -> None:
    (sentence,) = problems_of(processAt=text)

    assert sentence.startswith("processing.processAt: must include its offset from UTC")


@pytest.mark.parametrize("value", ["tomorrow", "1.12.2026 09:00Z", "09:00Z"])
def test_what_is_no_instant_is_refused_with_an_example(value: str) -> None:
    (sentence,) = problems_of(processAt=value)

    assert "such as 2026-12-01T09:00:00Z" in sentence


@pytest.mark.parametrize("value", [1_796_115_600, "", "2026-12-01T09:00:00Z\n", True, [], "\u0662"])
def test_what_is_no_text_of_an_instant_is_refused(value: Json) -> None:
    assert wrong_paths({**GOOD, "processing": {"processAt": value}}) == ["processing.processAt"]


@pytest.mark.parametrize(
    "value",
    ["2026-02-30T09:00:00Z", "2026-12-01T25:00:00Z", "2026-12-01T09:00:61Z", "0000-01-01T00:00Z"],
)
def test_an_instant_that_never_comes_is_refused(value: str) -> None:
    (found,) = problems_of(processAt=value)
    assert found.startswith("processing.processAt: is not a valid date and time such as ")


def test_a_start_is_accepted_up_to_a_year_ahead() -> None:
    assert options(processAt="2027-09-22T14:13:20Z").start_at == NOW + YEAR * 1000
    assert problems_of(processAt="2027-09-22T14:13:20.001Z") == [
        "processing.processAt: is more than 366 days in the future"
    ]
    assert options(processIn=YEAR).start_at == NOW + YEAR * 1000
    assert problems_of(processIn=YEAR + 1) == [
        "processing.processIn: must be a whole number from 0 to 31622400"
    ]


@pytest.mark.parametrize(
    ("process_at", "process_in"), [("2026-12-01T09:00:00Z", 30), ("2026-12-01T09:00:00Z", 0)]
)
def test_two_ways_to_say_the_start_are_one_too_many(process_at: str, process_in: int) -> None:
    assert problems_of(processAt=process_at, processIn=process_in) == [
        "processing.processIn: give processAt or processIn, not both"
    ]


def test_two_starts_are_refused_beside_what_else_is_wrong_with_them() -> None:
    found = wrong_paths({**GOOD, "processing": {"processAt": "soon", "processIn": -1}})

    assert found == ["processing.processAt", "processing.processIn", "processing.processIn"]


def test_a_start_given_once_and_null_once_counts_as_given_once() -> None:
    assert options(processAt=None, processIn=5).start_at == NOW + 5_000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("workflow", ""),
        ("workflow", 5),
        ("priority", "high"),
        ("priority", "URGENT"),
        ("priority", ""),
        ("priority", True),
        ("processIn", -1),
        ("processIn", 1.5),
        ("processIn", "30"),
        ("processIn", True),
        ("retention", -1),
        ("retention", 3_660 * 86_400 + 1),
        ("retention", "1d"),
        ("completeWithin", 0),
        ("completeWithin", YEAR + 1),
        ("completeWithin", 7.0),
        ("completeWithin", False),
        ("replyTo", ""),
        ("replyTo", 7),
        ("replyTo", "q\n"),
        ("replyTo", "q" * 513),
        ("correlationId", ""),
        ("correlationId", "x" * 129),
        ("correlationId", "a\x00"),
        ("correlationId", 7),
        ("tenant", ""),
        ("tenant", "shop 1"),
        ("tenant", "x" * 129),
        ("tenant", "shöp"),
        ("tenant", "shop\n"),
        ("tenant", 1),
        ("Workflow", "order_fulfilment"),
        ("complete_within", 60),
    ],
)
def test_a_wrong_wish_is_named_by_its_path(name: str, value: Json) -> None:
    assert wrong_paths({**GOOD, "processing": {name: value}}) == [f"processing.{name}"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention", 0),
        ("retention", 3_660 * 86_400),
        ("completeWithin", 1),
        ("completeWithin", YEAR),
        ("correlationId", "Anfrage Nº 7 / Köln"),
        ("tenant", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
        ("tenant", "x" * 128),
        ("priority", "normal"),
    ],
)
def test_wishes_at_the_edge_of_what_is_allowed_are_accepted(name: str, value: Json) -> None:
    options(**{name: value})


@pytest.mark.parametrize("processing", [[], "urgent", 7, True, [{}]])
def test_processing_that_is_no_object_is_refused(processing: Json) -> None:
    assert problems({**GOOD, "processing": processing}) == ["processing: must be an object"]


def test_an_unknown_workflow_is_refused_with_the_ones_there_are() -> None:
    assert problems_of(workflow="order_fulfillment") == [
        "processing.workflow: unknown workflow; the workflows are: order_fulfilment"
    ]


def test_the_workflow_is_one_of_those_that_the_application_has() -> None:
    (fast,) = WORKFLOWS.values()
    slow = replace(fast, name="slow")
    events = EventReader({"fast": fast, "slow": slow})

    def workflow_of(event: dict[str, Json]) -> str:
        found = events.read(canonical_json(event), NOW, reply_queue_problem)
        assert isinstance(found, ValidOrder)
        return found.plan.workflow

    assert workflow_of(changed("processing.workflow", "slow")) == "slow"
    assert workflow_of(GOOD) == "order_fulfilment"  # the first


def test_a_foreign_reply_queue_is_refused_with_the_callers_sentence() -> None:
    assert problems(changed("processing.replyTo", "https://elsewhere.example/q")) == [
        "processing.replyTo: is not a reply queue of this stack"
    ]


# A recurring order: the same event each time, and another order each time


@pytest.mark.parametrize(
    ("run", "order_id"),
    [
        ("2026-12-01T09:00:00Z", "ord-1001-20261201T090000Z"),
        ("2026-12-01T10:00:00+01:00", "ord-1001-20261201T090000Z"),
        ("2026-12-08T09:00:00.25Z", "ord-1001-20261208T090000Z"),
    ],
)
def test_the_time_of_its_run_becomes_part_of_the_orders_id(run: str, order_id: str) -> None:
    event = read(changed("processing.run", run))

    assert event.order_id == order_id
    assert isinstance(event.content, dict)
    assert event.content["orderId"] == order_id


def test_a_run_that_is_delivered_twice_is_the_same_order_and_the_next_run_another() -> None:
    first, again, following = (
        read(changed("processing.run", f"2026-12-0{day}T09:00:00Z")) for day in (1, 1, 2)
    )

    assert (again.order_id, again.content_hash) == (first.order_id, first.content_hash)
    assert following.order_id != first.order_id
    assert following.content_hash != first.content_hash


def test_what_a_schedule_did_not_replace_is_refused() -> None:
    (found,) = problems_of(run="<aws.scheduler.scheduled-time>")

    assert found.startswith("processing.run: is not a valid date and time such as ")


def test_an_id_that_its_runs_time_makes_too_long_is_refused() -> None:
    event = {**changed("processing.run", "2026-12-01T09:00:00Z"), "orderId": "a" * 112}

    assert problems(event) == [
        "orderId: has 129 characters with the time of its run; at most 128 are allowed"
    ]
    assert read({**event, "orderId": "a" * 111}).order_id == "a" * 111 + "-20261201T090000Z"


def test_a_rejected_run_is_reported_under_its_own_id() -> None:
    event = {**changed("processing.run", "2026-12-01T09:00:00Z"), "currency": "euro"}

    assert rejected(event).order_id == "ord-1001-20261201T090000Z"


LIMITED = replace(WORKFLOWS["order_fulfilment"], deadline=timedelta(hours=1))


def problems_of_limited(**processing: Json) -> list[str]:
    found = read_processing(
        processing,
        now=NOW,
        workflows={LIMITED.name: LIMITED},
        reply_queue_problem=reply_queue_problem,
    )
    return [str(problem) for problem in found.problems]


def test_a_start_later_than_the_deadline_of_the_workflow_is_refused_at_its_path() -> None:
    message = f"starts later than the deadline of {LIMITED.name}, which is 1 h after submission"
    late = iso(NOW + 3_600_001)
    assert problems_of_limited(processAt=late) == [f"processing.processAt: {message}"]
    assert problems_of_limited(processIn=3_601) == [f"processing.processIn: {message}"]


def test_a_start_at_the_deadline_and_a_longer_complete_within_are_accepted() -> None:
    assert problems_of_limited(processAt=iso(NOW + 3_600_000)) == []
    assert problems_of_limited(processIn=3_600, completeWithin=86_400) == []


def test_a_start_too_far_ahead_is_one_problem() -> None:
    (found,) = problems_of_limited(processAt=iso(NOW + 2 * YEAR * 1000))
    assert found == "processing.processAt: is more than 366 days in the future"


def test_what_a_run_may_say_is_of_a_run_only() -> None:
    sentence = "is only for the run of a schedule: add processing.run"
    assert problems_of(overlap="skip", evenIfPaused=True) == [
        f"processing.evenIfPaused: {sentence}",
        f"processing.overlap: {sentence}",
    ]
    at = "2026-12-01T09:00:00Z"
    assert problems_of(run=at, overlap="wait") == ["processing.overlap: must be allow, skip, queue"]
    found = read({**GOOD, "processing": {"run": at, "overlap": "queue"}})
    assert found.run == RecurringRun("ord-1001", Overlap.QUEUE)
    assert found.order_id == "ord-1001-20261201T090000Z"
    same = read({**GOOD, "processing": {"run": at, "evenIfPaused": True}})
    assert same.run == RecurringRun("ord-1001", even_if_paused=True)
    assert same.content_hash == found.content_hash
    assert read(GOOD).run is None
