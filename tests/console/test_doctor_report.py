"""How the doctor prints what it found: the worst first, bounded, harmless, within 80 columns."""

import io

from rich.console import Console

from roundsman_console.faces.cli.text.doctor import print_plan, print_report
from roundsman_console.facts.finding.report import Finding, Looked, Repair, Report, Unseen
from roundsman_console.facts.finding.table import FindingKind
from tests.contract.samples import NOW

LOOKED = Looked("roundsman", NOW, {"open": 7}, ())
HOSTILE = "ord-\x1b[31m[bold]\u202e" + "x" * 100


def printed(report: Report) -> list[str]:
    """On a terminal of 80 columns."""
    out = io.StringIO()
    print_report(report, Console(file=out, width=80, highlight=False))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_every_kind_fits_eighty_columns_and_shows_nothing_that_acts_on_a_terminal() -> None:
    found = [Finding(kind, HOSTILE, HOSTILE * 2, HOSTILE) for kind in FindingKind]
    lines = printed(Report(LOOKED, found, [Unseen(HOSTILE, HOSTILE)], []))
    assert max(len(line) for line in lines if not line.startswith("  $ ")) <= 80
    assert "\x1b" not in "".join(lines)
    assert "\u202e" not in "".join(lines)
    assert "ord-?[31m[bold]?" in "".join(lines)
    for kind in FindingKind:
        assert any(f"{kind.severity}  {kind}" == line for line in lines)


def test_of_many_alike_the_first_are_shown_and_the_rest_counted() -> None:
    found = [Finding(FindingKind.TASK_STUCK, f"ord-{n}", "overdue") for n in range(9)]
    lines = printed(Report(LOOKED, found, ()))
    assert lines[0] == "critical  task-stuck  9"
    assert [line for line in lines if line.startswith("  ord-")] == [
        f"  ord-{n}  overdue" for n in range(5)
    ]
    assert "  and 4 more; --json lists them all" in lines
    assert "  $ roundsman show ord-4" in lines
    assert lines[-1] == "Checked 7 open and 0 archived tasks. 9 findings."


def test_what_could_not_be_looked_at_is_no_clean_bill_of_health() -> None:
    refused = Report(LOOKED, (), [Unseen("alarms", "AWS refused it.")])
    assert not refused.well
    assert printed(refused) == [
        "not checked: alarms: AWS refused it.",
        "Checked 7 open and 0 archived tasks. Nothing is wrong in what could be checked.",
    ]
    lacking = Report(LOOKED, (), [Unseen("alarms", "the stack lists none", lacking=True)])
    assert lacking.well


def test_nothing_wrong_in_a_part_of_the_tasks_is_said_of_that_part() -> None:
    looked = Looked("roundsman", NOW, {"open": 1_000, "archived": 3}, ("open",))
    assert printed(Report(looked, (), ())) == [
        "Checked 1000 open and 3 archived tasks; more open tasks exist (raise --limit).",
        "Nothing is wrong in what was checked.",
    ]


def test_a_plan_and_its_outcome_are_printed_for_each_task() -> None:
    stuck = Finding(FindingKind.TASK_STUCK, "ord-1", "", fixable=True)
    late = Finding(FindingKind.OWED_UNSENT, "ord-2", "", fixable=True)
    out = io.StringIO()
    print_plan([stuck, late], Console(file=out, width=80))
    assert out.getvalue() == (
        "To repair:\n  task-stuck  ord-1: make the scheduler inspect it\n"
        "  owed-unsent  ord-2: make the scheduler inspect it\n"
    )
    repairs = [Repair(stuck, mended=True), Repair(late, "the queue is gone")]
    assert printed(Report(LOOKED, (), (), repairs))[:3] == [
        "owed-unsent  ord-2: the queue is gone",
        "task-stuck  ord-1: repaired",
        "Repaired 1 of 2.",
    ]
