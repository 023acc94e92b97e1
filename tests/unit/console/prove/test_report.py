"""What a report says, as JSON and as a page."""

import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO

import pytest
from rich.console import Console

from roundsman.model.states import TaskState
from roundsman_console.prove.document import FaultOutcome, MadeFault, ProofDocument, SpentLine
from roundsman_console.prove.report import percentile, report_of
from roundsman_console.prove.report_html import report_html
from roundsman_console.prove.text import print_report
from tests.unit.console.prove.sound import sound


def test_a_sound_proof_is_kept_and_counts_what_was_seen() -> None:
    report = report_of(sound())
    assert report["verdict"] == "kept"
    assert report["sent"] == report["stored"] == sum(report["ended"].values()) == 25
    assert report["copies"] == 3
    assert report["effects"] == sum(row.stands for row in sound().ledger)
    assert len(report["run"]["plans"]) == 8
    assert report["run"]["templates"].keys() == {
        "template.yaml",
        "stacks/engine.yaml",
        "stacks/agent.yaml",
        "stacks/schedule.yaml",
    }
    assert sum(one["orders"] for one in report["latencies"]) == 25


def test_a_proof_that_did_not_see_everything_is_unfinished() -> None:
    early = replace(sound(), circumstances=replace(sound().circumstances, finished=False))
    assert report_of(early)["verdict"] == "unfinished"
    gap = replace(sound(), orders=sound().orders[1:], unread={sound().sent[0].order_id: "gone"})
    assert report_of(gap)["verdict"] == "unfinished"


def test_a_broken_promise_is_named_with_its_order() -> None:
    first = sound().orders[0]
    wrong = replace(first, task=replace(first.task, state=TaskState.UNDONE))
    report = report_of(replace(sound(), orders=[wrong, *sound().orders[1:]]))
    assert report["verdict"] == "broken"
    found = [one for one in report["violations"] if one["promise"] == "AS_ANSWERED"]
    assert [one["order"] for one in found] == [first.task.task_id]


def test_a_right_that_was_refused_is_listed_and_breaks_nothing() -> None:
    refused = MadeFault("paused mapping", FaultOutcome.REFUSED, "lambda:UpdateEventSourceMapping")
    made = MadeFault("no concurrency", FaultOutcome.MADE, began_at=1_000, ended_at=31_000)
    report = report_of(replace(sound(), faults=[refused, made]))
    assert report["verdict"] == "kept"
    assert report["refusedRights"] == ["lambda:UpdateEventSourceMapping"]
    assert [one["seconds"] for one in report["faults"]] == [0, 30]


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
    console = Console(record=True, width=400, file=StringIO())
    print_report(report_of(document), console)
    return console.export_text()


def with_cost(spent: Sequence[SpentLine], unpriced: str = "") -> ProofDocument:
    place = replace(sound().circumstances, spent=spent, unpriced=unpriced)
    return replace(sound(), circumstances=place)


def test_the_cost_is_by_service_and_says_what_is_not_reported_yet() -> None:
    text = printed(with_cost(SPENT))
    assert "DynamoDB 0.0125 USD in part, SQS not reported yet, Lambda 0.5000 USD\n" in text
    page = Tags(report_html(report_of(with_cost(SPENT)))).text
    assert page.count("not reported yet") == 2
    assert "0.5125" in page


def test_the_cost_is_not_known_without_the_right_to_read_it() -> None:
    document = with_cost([], "no right")
    assert "not known: no right" in printed(document)
    assert "Not known: no right" in Tags(report_html(report_of(document))).text


def test_a_failure_of_a_function_is_shown_with_what_made_it() -> None:
    text, page = printed(sound()), Tags(report_html(report_of(sound()))).text
    for shown in (text, page):
        assert "the services give no answer until the function runs out of time" in shown
    assert "failed: stock, 2 times: its process ended, by the services have the effect" in text


class Tags(HTMLParser):
    """The tags of a page, and the text outside of them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_text_from_elsewhere_is_only_text_on_the_page() -> None:
    hostile = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&"
    circumstances = replace(
        sound().circumstances,
        run=hostile,
        region=hostile,
        version=hostile,
        runtime=hostile,
        local=False,
    )
    found = replace(
        sound(),
        circumstances=circumstances,
        faults=[MadeFault(hostile, FaultOutcome.FAILED, hostile)],
        unread={hostile: hostile},
    )
    page = Tags(report_html(report_of(found)))
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert not {name for name in page.attributes if name.startswith("on") or name == "src"}
    assert page.text.count(hostile) >= 5


def test_a_page_loads_nothing_and_shows_the_verdict_and_every_promise() -> None:
    report = report_of(sound())
    text = report_html(report)
    assert "default-src 'none'" in text
    assert not re.search(r"https?://|src=|href=", text)
    page = Tags(text)
    for one in report["promises"]:
        assert one["promise"] in page.text
    assert "kept" in page.text
    assert report["run"]["seen"] in page.text
