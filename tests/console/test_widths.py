"""The width of what is printed: 80 columns on a terminal, each id whole in a pipe."""

import io
from contextlib import redirect_stdout
from datetime import UTC, datetime

import pytest
from rich.console import Console
from typer.testing import CliRunner

from roundsman.model.holds import BREAKER, OPERATOR, Hold
from roundsman_console.faces.cli.terminal import UNLIMITED, results, short_instant
from roundsman_console.faces.cli.text.agent import agents_table
from roundsman_console.facts.agent.reading import AgentNow
from roundsman_console.main import app
from tests.console.operators import Operator
from tests.moto.orders import order

AT = round(datetime(2027, 1, 15, 8, tzinfo=UTC).timestamp() * 1000)
DAY = 86_400_000
LONG = "order-of-the-northern-warehouse-0000001-with-a-long-id"


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        (AT + 3_600_000, "09:00:00"),
        (AT + DAY, "16 Jan 08:00"),
        (AT - 8 * 3_600_000 - 1, "14 Jan 23:59"),
        (AT - 15 * DAY, "2026-12-31"),
    ],
)
def test_an_instant_of_another_day_has_its_date(instant: int, expected: str) -> None:
    assert short_instant(instant, AT) == expected


def test_a_pipe_has_no_width_unless_columns_sets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with redirect_stdout(io.StringIO()):
        monkeypatch.delenv("COLUMNS", raising=False)
        assert results().width == UNLIMITED
        monkeypatch.setenv("COLUMNS", "80")
        assert results().width == 80


def test_agents_with_holds_from_another_day_fit_80_columns() -> None:
    holds = [
        Hold("a" * 40, kind, AT - 20 * DAY, AT + DAY, "moving house", "amy")
        for kind in (OPERATOR, BREAKER)
    ]
    console = Console(width=80, file=io.StringIO())
    console.print(agents_table([AgentNow("a" * 40, tuple(holds), {})], AT))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)
    assert "circuit open" in "".join(lines)


def piped(*words: str, **environment: str | None) -> str:
    return CliRunner(env={"COLUMNS": None, **environment}).invoke(app, words).stdout


@pytest.mark.exhaustive
def test_long_ids_are_folded_on_a_terminal_and_whole_in_a_pipe(operator: Operator) -> None:
    world = operator.world
    world.faults({"operation": "POST /messages", "status": 422, "body": {"error": "No"}})
    world.submit(order(LONG))
    world.run()
    world.submit({"orderId": f"{LONG}-bad"})
    world.run()
    for words in (["ls"], ["show", LONG], ["timeline", LONG], ["groups"], ["rejected", "ls"]):
        narrow = piped(*words, COLUMNS="80").splitlines()
        tables = [line for line in narrow if "  " in line.strip()]
        assert max(map(len, tables)) <= 80, words
        assert not [line for line in tables if "…" in line], words
    assert f"{LONG} " in piped("ls")
    assert f"{LONG}-bad " in piped("rejected", "ls")
