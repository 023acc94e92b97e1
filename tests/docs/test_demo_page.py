"""docs/how-to/run-the-demo.md shows what the demo prints of its orders, effects and alerts."""

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from roundsman_testing import World
from tests.console.demo_samples import SENT, good_facts
from tests.docs.test_readme import RUN_AGAIN
from tools.demo.report import print_summary
from tools.demo.summary import Summary, summarise
from workflows.order_fulfilment import order_fulfilment

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "how-to" / "run-the-demo.md").read_text(encoding="utf-8")
[SHOWN] = [block for block in re.findall(r"```\n(.*?)```", PAGE, re.S) if "Remote effects" in block]
ORDERS, SUMS = (part.splitlines() for part in SHOWN.split("\n\n"))


@pytest.fixture(scope="module")
def summary() -> Summary:
    return summarise(SENT, good_facts())


def rejected_for(event: str) -> str:
    world = World(order_fulfilment)
    world.submit(json.loads((PROJECT / "events" / event).read_text(encoding="utf-8")))
    world.run()
    [rejected] = world.post.put_aside
    return "; ".join(map(str, rejected.problems))


def test_each_order_ends_as_the_demo_says(summary: Summary) -> None:
    ends = {(one.case.order_id, one.case.event, one.actual): one.detail for one in summary.verdicts}
    for line in ORDERS:
        order, event, actual, how = re.split(r" {2,}", line)
        said = ends[order, f"{event}.json", actual]
        if actual == "Rejected":
            assert rejected_for(f"{event}.json").startswith(how.removesuffix("; ..."))
        elif "failed for good" in how:
            failed, _, undone = how.partition("; undone")
            declined = re.sub(r"\w+(?=: )", "x", failed)
            blocks = (re.sub(r"\w+(?=: )", "x", block) for block in RUN_AGAIN)
            assert any(in_shape(declined) in in_shape(block) for block in blocks), failed
            assert said.startswith(f"{failed.split(': ')[0]}; {failed.split(': ')[2]}")
            assert said.endswith(f"undone{undone}") or not undone
        else:
            assert in_shape(how) == in_shape(said)


def test_the_sums_are_what_the_demo_prints(summary: Summary) -> None:
    printed = StringIO()
    print_summary(Console(file=printed, width=150), summary)
    lines = {in_shape(line) for line in printed.getvalue().splitlines()}
    assert [line for line in SUMS if in_shape(line) not in lines] == []


def test_the_alert_is_the_one_of_the_archived_order() -> None:
    world = World(order_fulfilment)
    world.on("send_confirmation").refuses("NoSuchMailbox")
    world.submit(json.loads((PROJECT / "events" / "no-mail.json").read_text(encoding="utf-8")))
    world.run()
    [alert] = world.post.alerts
    assert f"Alerts: 1 ({alert.subject})" in SUMS


def in_shape(line: str) -> str:
    """A line without its numbers, the steps in brackets in one order, and its alerts."""
    line = re.sub(r"^Alerts: .*", "Alerts", line)
    line = re.sub(r"\((ord-.*)\)", lambda found: str(sorted(found[1].split(", "))), line)
    return re.sub(r"(?<![-\w])\d+", "N", line)
