"""Presenting an agent and its holds to people (text) and scripts (JSON)."""

from rich.table import Table

from roundsman.model.holds import BREAKER, OPERATOR, Hold
from roundsman.model.instants import format_duration, iso
from roundsman.model.json import Json
from roundsman_console.read.agents import AgentNow
from roundsman_console.sanitize import plain
from roundsman_console.views.task_view import second


def agent_document(agent: AgentNow) -> dict[str, Json]:
    """Return the agent as JSON for scripts; lags are in seconds."""
    operator, breaker = agent.hold(OPERATOR), agent.hold(BREAKER)
    lags = agent.lags or {}
    return {
        "agent": agent.name,
        "takesWork": not agent.holds,
        "hold": hold_document(operator),
        "circuit": hold_document(breaker),
        "lag": {priority: lag / 1000 for priority, lag in sorted(lags.items())},
    }


def hold_document(hold: Hold | None) -> Json:
    """Return a hold as JSON for scripts; None for no hold."""
    if hold is None:
        return None
    return {
        "since": iso(hold.since),
        "until": iso(hold.until),
        "by": hold.by,
        "reason": hold.reason,
    }


def hold_words(hold: Hold) -> str:
    """Return the reason for the hold, to follow the agent's name: `is held by amy: maintenance`."""
    if hold.kind == OPERATOR:
        return f"is held by {hold.by}: {hold.reason}"
    return f"has its circuit open: {hold.reason}"


def agents_table(agents: list[AgentNow]) -> Table:
    """Return a table with one row for each agent, or one for each hold on it."""
    table = Table(box=None, pad_edge=False)
    held = any(agent.holds for agent in agents)
    for heading in ("Agent", "Work", *(("Since", "Until") if held else ()), "Lag"):
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
                plain(second(hold.since)),
                plain(second(hold.until)),
                plain("") if row else behind,
                plain(f"{hold.by}: {hold.reason}" if operator else hold.reason),
            )
    return table
