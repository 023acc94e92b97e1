"""Text of an order, or of a service, with terminal escapes and markup in it is shown inert."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console

from roundsman.alerts.group import opened
from roundsman.model.failure import failure_of
from roundsman.model.states import TaskState
from roundsman.model.task import StepError, Task, Termination
from roundsman_console.faces.commands import groups, ls, show, timeline, watch, why
from roundsman_console.facts.group.reading import GroupNow
from roundsman_console.facts.order.why import diagnose
from roundsman_console.facts.orders.counts import Count
from roundsman_console.facts.orders.listing import Page
from tests.console.shelves import Shelves, archived
from tests.console.step_samples import AT, facts

STRANGE = "\x1b[2J\x1b]0;owned\x07 [bold red]markup[/] \u202egnp.exe " + "long " * 40


def strange() -> Task:
    task = archived("ord-1")
    error = StepError("Strange", STRANGE)
    steps = {"charge": replace(task.steps["charge"], error=error)}
    ending = Termination(TaskState.ARCHIVED, f"charge: {STRANGE}", "charge", error=error)
    return replace(task, workflow=f"story {STRANGE}", tenant=STRANGE, steps=steps, ending=ending)


def show_group(task: Task) -> None:
    failure = failure_of(task)
    assert failure is not None
    row = opened(failure, agent="", task_id=task.task_id, since=AT, now=AT)
    group = GroupNow(
        id=row.id,
        workflow=task.workflow,
        step="charge",
        how="archived",
        error_type=STRANGE,
        message=STRANGE,
        count=Count(1),
        counted_at=AT,
        row=row,
        samples=(task,),
    )
    groups.print_group(group)
    groups.print_list([group])


VIEWS: dict[str, Callable[[Task], None]] = {
    "ls": lambda task: ls._print(Shelves().stack(), Page((task,), None, 1, {"ord-2": STRANGE}), 50),
    "why": lambda task: why._print(task, diagnose(facts(task))),
    "show": lambda task: show._print(facts(task), STRANGE),
    "timeline": lambda task: timeline._print(facts(task)),
    "groups": show_group,
    "watch": lambda task: Console().print(watch._failures([task])),
}


@pytest.mark.parametrize("view", VIEWS)
def test_it_is_shown_inert_within_80_columns(
    view: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    VIEWS[view](strange())
    shown = capsys.readouterr().out
    assert not any(hidden in shown for hidden in ("\x1b", "\x07", "\u202e"))
    assert "[bold" in shown
    # Commands and cursors are printed unbroken, to be copied; the terminal wraps them.
    lines = [line for line in shown.splitlines() if "roundsman " not in line]
    assert max(map(len, lines)) <= 80
