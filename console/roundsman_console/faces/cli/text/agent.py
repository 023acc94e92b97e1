"""The table of a stack's agents and their holds, and the sentences of holds on orders."""

from collections.abc import Sequence

from rich.table import Table

from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.instants import format_duration
from roundsman_console.base.hints import hint
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.faces.cli.terminal import short_instant
from roundsman_console.facts.agent.reading import AgentNow
from roundsman_console.facts.hold.view import order_hold_sentence, release_command


def order_hold_lines(holds: Sequence[Hold]) -> list[str]:
    """Return two lines for each hold on orders: what it is, and the command that ends it."""
    found = []
    for hold in holds:
        found += [order_hold_sentence(hold), f"Let go on: {hint(release_command(hold))}"]
    return found


def agents_table(agents: list[AgentNow], at: int) -> Table:
    """Return a table with one row for each agent, or one for each hold on it.

    `at` is now, in epoch ms.
    """
    table = Table(box=None, pad_edge=False)
    held = any(agent.holds for agent in agents)
    table.add_column("Agent", overflow="fold")
    for heading in ("Work", *(("Since", "Until") if held else ()), "Lag"):
        table.add_column(heading, no_wrap=True)
    if held:
        table.add_column("Why", overflow="fold")
    for agent in agents:
        lag = max((agent.lags or {}).values(), default=0)
        behind = plain(format_duration(lag) if lag else "")
        if not agent.holds:
            rest = [plain("") for _ in range(2 if held else 0)]
            table.add_row(plain(agent.name), plain("taken", "green"), *rest, behind)
        for row, hold in enumerate(agent.holds):
            operator = hold.kind == OPERATOR
            table.add_row(
                plain("" if row else agent.name),
                plain("held" if operator else "circuit open", "yellow" if operator else "red"),
                plain(short_instant(hold.since, at)),
                plain(short_instant(hold.until, at)),
                plain("") if row else behind,
                plain(f"{hold.by}: {hold.reason}" if operator else hold.reason),
            )
    return table
