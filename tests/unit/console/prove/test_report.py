"""What a report says, as JSON and as text."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from roundsman.model.states import TaskState
from roundsman_dev.prove.document import FaultOutcome, MadeFault, ProofDocument, SpentLine
from roundsman_dev.prove.report import percentile, report_of
from roundsman_dev.prove.text import report_text
from tests.unit.console.prove.sound import sound


def test_a_sound_proof_is_kept_and_counts_what_was_seen() -> None:
    report = report_of(sound())
    assert report.verdict == "kept"
    assert report.sent == report.stored == sum(report.ended.values()) == 25
    assert report.copies == 3
    assert report.effects == sum(row.stands for row in sound().ledger)
    assert len(report.run.plans) == 8
    assert report.run.templates.keys() == {
        "template.yaml",
        "stacks/engine.yaml",
        "stacks/agent.yaml",
        "stacks/schedule.yaml",
    }
    assert sum(one.orders for one in report.latencies) == 25


def test_a_proof_that_did_not_see_everything_is_unfinished() -> None:
    early = replace(sound(), circumstances=replace(sound().circumstances, finished=False))
    assert report_of(early).verdict == "unfinished"
    gap = replace(sound(), orders=sound().orders[1:], unread={sound().sent[0].order_id: "gone"})
    assert report_of(gap).verdict == "unfinished"


def test_a_broken_promise_is_named_with_its_order() -> None:
    first = sound().orders[0]
    wrong = replace(first, task=replace(first.task, state=TaskState.UNDONE))
    report = report_of(replace(sound(), orders=[wrong, *sound().orders[1:]]))
    assert report.verdict == "broken"
    found = [one for one in report.violations if one.promise == "AS_ANSWERED"]
    assert [one.order for one in found] == [first.task.task_id]


def test_a_right_that_was_refused_is_listed_and_breaks_nothing() -> None:
    refused = MadeFault("paused mapping", FaultOutcome.REFUSED, "lambda:UpdateEventSourceMapping")
    made = MadeFault("no concurrency", FaultOutcome.MADE, began_at=1_000, ended_at=31_000)
    report = report_of(replace(sound(), faults=[refused, made]))
    assert report.verdict == "kept"
    assert report.refused_rights == ["lambda:UpdateEventSourceMapping"]
    assert [one.seconds for one in report.faults] == [0, 30_000]


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 1), (50, 2), (75, 3), (76, 4), (99, 4), (100, 4)]
)
def test_a_percentile_is_the_least_time_that_so_many_are_within(
    percent: int, expected: int
) -> None:
    assert percentile([1, 2, 3, 4], percent) == expected


SPENT = [
    SpentLine("DynamoDB", "writes", 0.0125),
    SpentLine("DynamoDB", "reads", None),
    SpentLine("SQS", "messages", None),
    SpentLine("Lambda", "time", 0.5),
]


def printed(document: ProofDocument) -> str:
    return report_text(report_of(document))


def with_cost(spent: Sequence[SpentLine], unpriced: str = "") -> ProofDocument:
    place = replace(sound().circumstances, spent=spent, unpriced=unpriced)
    return replace(sound(), circumstances=place)


def test_the_cost_is_by_service_and_says_what_is_not_reported_yet() -> None:
    text = printed(with_cost(SPENT))
    assert "DynamoDB 0.0125 USD in part, SQS not reported yet, Lambda 0.5000 USD\n" in text


def test_the_cost_is_not_known_without_the_right_to_read_it() -> None:
    assert "not known: no right" in printed(with_cost([], "no right"))


def test_a_failure_of_a_function_is_shown_with_what_made_it() -> None:
    text = printed(sound())
    assert "failed: stock, 2 times: its process ended, by the services have the effect" in text


def test_the_text_of_a_report_has_the_verdict_every_promise_and_what_was_proved() -> None:
    report = report_of(sound())
    text = report_text(report)
    for one in report.promises:
        assert one.promise in text
    for latency in report.latencies:
        assert f"of which {latency.treatment}: half ended within" in text
    assert "Every promise that could be judged was kept." in text
    assert report.run.seen in text


def test_text_from_elsewhere_cannot_move_the_cursor_of_a_terminal() -> None:
    hostile = "\x1b[2J\x1b]0;owned\x07"
    found = replace(
        sound(),
        circumstances=replace(sound().circumstances, version=hostile, runtime=hostile),
        faults=[MadeFault(hostile, FaultOutcome.FAILED, hostile)],
        unread={hostile: hostile},
    )
    assert not {"\x1b", "\x07"} & set(printed(found))
