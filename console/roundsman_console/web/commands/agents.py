"""The hold of an agent and its end."""

from collections.abc import Callable
from dataclasses import replace

from roundsman.model.instants import SECOND, format_duration
from roundsman_console.arguments import read_duration, read_name, read_reason
from roundsman_console.inspector import Inspector
from roundsman_console.inspector.errors import InspectorError
from roundsman_console.inspector.operate.holds import (
    LONGEST_HOLD,
    SHORTEST_HOLD,
    HoldRelease,
    hold_agent,
    release_agent,
    wake_after,
)
from roundsman_console.inspector.read.agents import AgentNow, find_agent
from roundsman_console.render.woken import woken_lines
from roundsman_console.web.commands.order_forms import Form, FormField
from roundsman_console.web.commands.page import CommandPage, FormCommand, not_sent
from roundsman_console.web.session import GO, Session
from roundsman_console.web.work import Work, WorkResult, works_of

HOLD_FIELDS = (FormField("for", "For how long", hint="90s, 30m, 2h or 1d; at most 7d"),)


def commands_on_agents() -> dict[str, FormCommand]:
    """Return the commands on an agent, by their names in the browser."""
    return {
        name: FormCommand(name, _shows(name), _carries_out(name)) for name in ("hold", "release")
    }


def _shows(name: str) -> Callable[[Inspector, Form], CommandPage]:
    return lambda inspector, given: _of_agent(_agent(inspector, given), name, given)


def _carries_out(name: str) -> Callable[[Inspector, Form, Session], CommandPage]:
    return lambda inspector, given, session: _agent_command(inspector, name, given, session)


def _agent(inspector: Inspector, given: Form) -> AgentNow:
    return find_agent(inspector.stack, given.get("agent", ""))


def _of_agent(agent: AgentNow, name: str, given: Form) -> CommandPage:
    if name == "hold":
        does = "The agent begins nothing new. Its steps wait, and no attempt is counted."
        return CommandPage(
            name, "Hold", does, agent.name, "agent", "/agents", HOLD_FIELDS, form=given
        )
    does = "Ends the operator's hold, and wakes the orders that wait for the agent."
    return CommandPage(
        name, "Release", does, agent.name, "agent", "/agents", form=given, reason="optional"
    )


def _agent_command(inspector: Inspector, name: str, given: Form, session: Session) -> CommandPage:
    agent = _agent(inspector, given)
    page, version, by = _of_agent(agent, name, given), _holds(agent), read_name(None)
    text = given.get("reason", "")
    reason = read_reason(text) if text.strip() or page.reason == "required" else ""
    seconds = 0
    would = f"The hold of {agent.name} would end now."
    done = f"{agent.name} is released."
    if page.name == "hold":
        seconds = read_duration(given.get("for", ""), least=SHORTEST_HOLD, most=LONGEST_HOLD)
        lasts = format_duration(seconds * SECOND)
        would = f"{agent.name} would begin nothing new for {lasts}."
        done = f"{agent.name} is held for {lasts}."
    if GO not in given or not session.take(given, version):
        shown = session.sign(given, version)
        return replace(page, sentence=not_sent(given, False) + would, asks=True, shown=shown)
    if page.name == "hold":
        not_alerted = hold_agent(inspector.stack, agent, seconds, by=by, reason=reason).not_alerted
        return replace(page, sentence=done + _unalerted(not_alerted), done=True)
    release = release_agent(inspector.stack, agent.name, by=by, reason=reason)
    done += _unalerted(release.not_alerted)
    try:
        work = works_of(inspector).start(
            f"Release of {agent.name}",
            "/agents",
            lambda work: _wake(inspector, release, done, work),
        )
    except InspectorError:
        # Too much runs in this console; the engine lets the orders go on by itself.
        later = " The orders that wait for it continue within minutes."
        return replace(page, sentence=done + later, done=True)
    return replace(page, goes_to=f"/progress/{work.id}")


def _wake(inspector: Inspector, release: HoldRelease, done: str, work: Work) -> WorkResult:
    """Wake the orders that wait for the released agent, as `roundsman release` does."""
    first = release.first_wake
    work.counts(done)
    woken, lost = wake_after(
        inspector.stack,
        release,
        first,
        lambda so_far: work.counts(
            f"{done} {so_far.looked} open orders examined, {so_far.woken} woken"
        ),
    )
    notes = woken_lines(woken, first)
    if lost is not None:
        notes.append(f"Not all waiting tasks were woken: {lost}.")
    return WorkResult(done, lost is None, notes)


def _unalerted(problem: str | None) -> str:
    return "" if problem is None else f" The other operators were not alerted: {problem}."


def _holds(agent: AgentNow) -> str:
    """The holds of the agent, as a version of what is shown of it."""
    return str([(hold.kind, hold.since, hold.until) for hold in agent.holds])
