"""The hold of an agent and its end."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from roundsman.model.instants import SECOND, format_duration
from roundsman_console.agent.holds import (
    HoldRelease,
    hold_agent,
    release_agent,
    wake_after,
)
from roundsman_console.agent.reading import AgentNow, find_agent
from roundsman_console.agent.verbs import HoldVerb, ReleaseVerb
from roundsman_console.agent.woken_text import woken_lines
from roundsman_console.errors import InspectorError
from roundsman_console.inspector import Inspector
from roundsman_console.verbs.actor import read_name, read_reason
from roundsman_console.verbs.verb import Form
from roundsman_console.web.command_page import CommandPage, FormCommand, agreed, asking, page_of
from roundsman_console.web.session import Session
from roundsman_console.web.work import Work, WorkResult, works_of

VERBS: Sequence[type[HoldVerb | ReleaseVerb]] = (HoldVerb, ReleaseVerb)


def commands_on_agents() -> dict[str, FormCommand]:
    """Return the commands on an agent, by their names in the browser."""
    return {
        verb.name: FormCommand(verb.name, partial(_show, verb), partial(_agent_command, verb))
        for verb in VERBS
    }


def _show(verb: type[HoldVerb | ReleaseVerb], inspector: Inspector, given: Form) -> CommandPage:
    agent = find_agent(inspector.stack, given.get("agent", ""))
    return page_of(verb, agent.name, "agent", "/agents", given)


def _agent_command(
    kind: type[HoldVerb | ReleaseVerb], inspector: Inspector, given: Form, session: Session
) -> CommandPage:
    agent = find_agent(inspector.stack, given.get("agent", ""))
    page = page_of(kind, agent.name, "agent", "/agents", given)
    version, by = _holds(agent), read_name(None)
    text = given.get("reason", "")
    reason = read_reason(text) if text.strip() or page.reason == "required" else ""
    verb = kind.read_form(given)
    would = f"The hold of {agent.name} would end now."
    done = f"{agent.name} is released."
    if isinstance(verb, HoldVerb):
        lasts = format_duration(verb.seconds * SECOND)
        would = f"{agent.name} would begin nothing new for {lasts}."
        done = f"{agent.name} is held for {lasts}."
    if not agreed(given, session, version):
        return asking(page, given, session, version, would)
    if isinstance(verb, HoldVerb):
        held = hold_agent(inspector.stack, agent, verb.seconds, by=by, reason=reason)
        not_alerted = held.not_alerted
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
