"""The tables of findings: each row is found by something, and names a page that exists."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from roundsman.model.holds import BREAKER, OPERATOR, Hold
from roundsman.model.instants import MINUTE
from roundsman_console.facts.finding.orders import order_without_task
from roundsman_console.facts.finding.report import Finding
from roundsman_console.facts.finding.standing import (
    Alarm,
    of_alarms,
    of_groups,
    of_holds,
    of_scheduler,
)
from roundsman_console.facts.finding.table import ALARMS, FindingKind, StandingKind, Trouble
from roundsman_console.facts.finding.tasks import findings
from roundsman_dev.preflight.table import Obstacle
from tests.console import test_doctor_checks
from tests.console.doctor_samples import GROUP, HOUR, WELL, archived, visited, with_tasks
from tests.contract.samples import NOW, PLAN, born, claimed, owing
from tests.unit.console.preflight import test_checks

ROOT = Path(__file__).parents[2]
ROWS: list[Trouble] = [*FindingKind, *StandingKind, *Obstacle]

ELSEWHERE: dict[Trouble, str] = {
    FindingKind.TASK_WITHOUT_ORDER: "tests/contract/test_doctor_reads.py",
    Obstacle.REGION_UNSET: "tests/console/test_preflight.py",
    Obstacle.CALLER_UNKNOWN: "tests/console/test_preflight.py",
}
"""The tests of rows that only a read of AWS finds."""


def of_tasks() -> list[Finding]:
    """What is found where each thing that a task depends on is wrong."""
    task, parts = claimed(born()), {("holds", "payment/operator.Until"): "is not a whole number"}
    return [
        found
        for facts in (
            with_tasks(owing(task, "started"), now=NOW + HOUR),
            replace(WELL, unreadable={"ord-1": "format 99"}, unreadable_parts=parts),
            replace(WELL, tasks=[replace(task, due_at=NOW + HOUR)], troubled={"ord-1001": 2}),
            replace(with_tasks(task), plans={PLAN.hash: "not stored"}),
            replace(with_tasks(task), agents=()),
            replace(with_tasks(archived()), groups=()),
            replace(WELL, leases=visited(0)),
        )
        for found in findings(facts)
    ]


def alerted() -> list[Finding]:
    """What stands as an alert."""
    holds = [Hold("mail", kind, 1, 2, "why", "amy") for kind in (OPERATOR, BREAKER)]
    return [
        *of_groups([replace(GROUP, count=1)], NOW),
        *of_holds(holds),
        *of_scheduler({"scheduler/commands": MINUTE}),
        *of_alarms(Alarm(name, "why", 1) for name in ("MailErrorsAlarm", *ALARMS)),
    ]


def test_every_row_is_found_by_something() -> None:
    tasks = [*of_tasks(), *order_without_task("ord-7", NOW - HOUR, 2 * HOUR, NOW), *alerted()]
    found = {row for one in tasks for row in (one.kind, one.row)}
    found |= {one.kind for broken, *_ in test_doctor_checks.BROKEN.values() for one in broken()}
    assert found | {*test_checks.FOUND} | {*ELSEWHERE} == {*ROWS}
    for row, path in ELSEWHERE.items():
        assert row not in found | {*test_checks.FOUND}
        assert str(row) in (ROOT / path).read_text(encoding="utf-8")


def test_an_id_names_one_row() -> None:
    assert len({str(row) for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS)
def test_the_page_of_a_row_exists(row: Trouble) -> None:
    path, _, anchor = row.page.partition("#")
    page = (ROOT / "docs" / path).read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", page, re.M)
    anchors = {re.sub(r"[^a-z0-9 -]", "", one.lower()).replace(" ", "-") for one in headings}
    assert not anchor or anchor in anchors


def test_the_page_of_an_alarm_is_that_of_the_index() -> None:
    index = (ROOT / "docs/runbook/index.md").read_text(encoding="utf-8")
    for end, row in ALARMS.items():
        (line,) = (one for one in index.splitlines() if one.startswith("|") and f"{end}`" in one)
        assert f"({row.page.removeprefix('runbook/')})" in line
