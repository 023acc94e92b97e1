"""The hold of an agent and its end."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from roundsman.model.holds import BREAKER, OPERATOR, Hold
from roundsman.model.instants import SECOND, format_duration, second
from roundsman_console.agent.holds import (
    HoldRelease,
    HoldResult,
    can_be_released,
    hold_agent,
    release_agent,
    wake_after,
)
from roundsman_console.agent.reading import AgentNow, find_agent
from roundsman_console.agent.released import note_release
from roundsman_console.agent.verbs import HoldVerb, ReleaseVerb
from roundsman_console.agent.view import circuit_sentence
from roundsman_console.agent.woken_text import woken_lines
from roundsman_console.errors import InspectorError
from roundsman_console.inspector import Inspector
from roundsman_console.verbs.actor import read_name
from roundsman_console.verbs.verb import Form
from roundsman_console.web.command_page import (
    INCIDENT,
    CommandPage,
    FormCommand,
    NextStep,
    WayBack,
    agreed,
    asking,
    incident_of,
    page_of,
    read_both,
    reason_of,
)
from roundsman_console.web.session import GO, SHOWN, Session
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
    return form_on(agent, verb, given)


def form_on(agent: AgentNow, verb: type[HoldVerb | ReleaseVerb], given: Form) -> CommandPage:
    """Return the form of a verb on an agent. Nothing is read."""
    page = page_of(verb, agent.name, "agent", "/agents", given)
    held = agent.hold(OPERATOR)
    if verb is HoldVerb and held is not None:
        before = f"It would replace the hold by {held.by} until {second(held.until)}: {held.reason}"
        return replace(page, problems=[before])
    if verb is ReleaseVerb and not can_be_released(agent):
        circuit = agent.hold(BREAKER)
        also = f" {circuit_sentence(circuit)}" if circuit else ""
        words = f"{agent.name} is not held, so there is nothing to release.{also}"
        return replace(page, sentence=words, impossible=True)
    return page


def _agent_command(
    kind: type[HoldVerb | ReleaseVerb], inspector: Inspector, given: Form, session: Session
) -> CommandPage:
    stack = inspector.stack
    agent = find_agent(stack, given.get("agent", ""))
    page = form_on(agent, kind, given)
    if page.impossible:
        return page
    version, by = _holds(agent), read_name(None)
    reason, verb = read_both(lambda: reason_of(page, given), lambda: kind.read_form(given))
    if isinstance(verb, HoldVerb):
        lasts = format_duration(verb.seconds * SECOND)
        if not agreed(given, session, version):
            would = f"{agent.name} would begin nothing new for {lasts}."
            return asking(page, given, session, version, would)
        held = hold_agent(stack, agent, verb.seconds, by=by, reason=reason)
        return _held(page, held, lasts, given, session)
    if not agreed(given, session, version):
        would = f"The hold of {agent.name} would end now, and what waits for it would go on."
        return asking(page, given, session, version, would)
    release = release_agent(stack, agent.name, by=by, reason=reason)
    note_release(inspector, release)
    return _released(page, inspector, release)


def _held(
    page: CommandPage, held: HoldResult, lasts: str, given: Form, session: Session
) -> CommandPage:
    """Return the page of an agent that is held, with the way back if it was not held before."""
    agent = held.hold.agent
    words = f"{agent} is held for {lasts}.{_unalerted(held.not_alerted)}"
    incident = incident_of(given)
    form = {"agent": agent, "reason": "", **({INCIDENT: incident} if incident else {})}
    after = _holds(replace(held.before, holds=(*_circuits(held.before), held.hold)))
    signed = {**form, GO: "yes", SHOWN: session.sign({**form, "command": "release"}, after)}
    back = WayBack(f"Undo: release {agent}", ReleaseVerb.name, signed)
    return replace(
        page,
        sentence=words,
        done=True,
        problems=[
            "Calls under way at its service may finish. A step that waits for it counts no "
            "attempt, and its complete-by moves by the time waited.",
            "The hold ends by itself at that time.",
        ],
        way_back=back if held.before.hold(OPERATOR) is None else None,
        next=() if incident else (NextStep("Failure groups", "/groups"),),
    )


def _released(page: CommandPage, inspector: Inspector, release: HoldRelease) -> CommandPage:
    """Return the page of an agent that was released, which follows the orders that it wakes."""
    done = f"{page.about} is released.{_unalerted(release.not_alerted)}"
    try:
        work = works_of(inspector).start(
            f"Release of {page.about}",
            page.back,
            lambda work: _wake(inspector, release, done, work),
            done=done,
        )
    except InspectorError:
        # Too much runs in this console; the engine lets the orders go on by itself.
        later = " The orders that wait for it continue within minutes."
        return replace(page, sentence=done + later, done=True)
    follow = f"/progress/{work.id}"
    step = NextStep("See which orders are woken", follow)
    return replace(page, sentence=done, done=True, goes_to=follow, next=[step])


def _wake(inspector: Inspector, release: HoldRelease, done: str, work: Work) -> WorkResult:
    """Wake the orders that wait for the released agent, as `roundsman release` does."""
    first = release.first_wake
    work.counts("the orders that wait for it are woken")
    woken, lost = wake_after(
        inspector.stack,
        release,
        first,
        lambda so_far: work.counts(
            f"{so_far.looked} open orders examined, {so_far.woken} of them woken"
        ),
    )
    notes = woken_lines(woken, first)
    if lost is not None:
        notes.append(f"Not all waiting tasks were woken: {lost}.")
    return WorkResult(done, lost is None, notes)


def _circuits(agent: AgentNow) -> tuple[Hold, ...]:
    return tuple(hold for hold in agent.holds if hold.kind == BREAKER)


def _unalerted(problem: str | None) -> str:
    return "" if problem is None else f" The other operators were not alerted: {problem}."


def _holds(agent: AgentNow) -> str:
    """The holds of the agent, as a version of what is shown of it."""
    return str([(hold.kind, hold.since, hold.until) for hold in agent.holds])
