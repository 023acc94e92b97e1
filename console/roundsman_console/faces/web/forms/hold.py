"""The hold of an agent or of orders, and its end."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from roundsman.model.holds import BREAKER, EVERY_WORKFLOW, OPERATOR, Hold
from roundsman.model.instants import SECOND, format_duration, second
from roundsman_console.acts.actor import read_name
from roundsman_console.acts.hold.agents import (
    AgentHold,
    AgentRelease,
    can_be_released,
    hold_agent,
    release_agent,
)
from roundsman_console.acts.hold.orders import (
    OrdersRelease,
    find_order_hold,
    held_orders,
    hold_orders,
    release_orders,
)
from roundsman_console.acts.hold.sentences import (
    held_lines,
    released_lines,
    watched_lines,
    woken_lines,
)
from roundsman_console.acts.hold.verbs import HoldVerb, ReleaseVerb
from roundsman_console.acts.hold.wake import Woken, wake_released
from roundsman_console.acts.hold.watch import watch_released
from roundsman_console.acts.verb import Form
from roundsman_console.base.errors import InspectorError
from roundsman_console.faces.web.command_page import (
    INCIDENT,
    CommandPage,
    FormCommand,
    FormField,
    NextStep,
    WayBack,
    agreed,
    asking,
    fields_of,
    incident_of,
    page_of,
    read_both,
    reason_of,
)
from roundsman_console.faces.web.released import note_release
from roundsman_console.faces.web.session import GO, SHOWN, Session
from roundsman_console.faces.web.work import Work, WorkResult, works_of
from roundsman_console.facts.agent.reading import AgentNow, find_agent
from roundsman_console.facts.hold.view import circuit_sentence, order_hold_sentence, orders_of
from roundsman_console.inspector import Inspector

HOLD_ORDERS, RELEASE_ORDERS = "hold-orders", "release-orders"
"""The names of the commands on orders in the browser."""

WORKFLOW = FormField(
    "workflow", "Workflow", hint="its name, as in the list of orders", required=True
)
UNDOS = FormField("undos", "Undos wait too", "check")
SHARE = FormField("share", "Share of the orders in percent", hint="1, 10 or 100; all by default")
WATCH = FormField(
    "watch", "Watch the woken orders for", hint="30s or 5m; 2m by default for a share"
)
STOP_AT = FormField("stop_at", "Hold all again if more fail", hint="20% by default")

HOLD_AGENT_DOES = (
    "Give the agent no work for a while. Orders that need it wait and lose no attempt, and calls "
    "under way may finish."
)
RELEASE_AGENT_DOES = "End the hold of the agent, and wake the orders that wait for it."
HOLD_ORDERS_DOES = (
    "Let no step of these orders begin for a while. New orders are accepted and wait, and what "
    "runs at an agent is finished. No attempt is counted."
)
RELEASE_ORDERS_DOES = (
    "Let these orders go on, all or a share of them, which contains each smaller share. If too "
    "many of the woken orders fail while they are watched, all are held again."
)


def commands_on_holds() -> dict[str, FormCommand]:
    """Return the commands that hold and release, by their names in the browser."""
    return {
        HoldVerb.name: FormCommand("hold", partial(_show, HoldVerb), _hold_agent),
        ReleaseVerb.name: FormCommand("release", partial(_show, ReleaseVerb), _release_agent),
        HOLD_ORDERS: FormCommand("hold", _hold_orders_form, _hold_orders),
        RELEASE_ORDERS: FormCommand("release", _release_orders_form, _release_orders),
    }


# ---- agents --------------------------------------------------------------------------------------


def _show(verb: type[HoldVerb | ReleaseVerb], inspector: Inspector, given: Form) -> CommandPage:
    return form_on(find_agent(inspector.stack, given.get("agent", "")), verb, given)


def form_on(agent: AgentNow, verb: type[HoldVerb | ReleaseVerb], given: Form) -> CommandPage:
    """Return the form of a verb on an agent. Nothing is read."""
    page = page_of(verb, agent.name, "agent", "/agents", given)
    page = replace(page, does=HOLD_AGENT_DOES if verb is HoldVerb else RELEASE_AGENT_DOES)
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


def _hold_agent(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    agent = find_agent(inspector.stack, given.get("agent", ""))
    page, version = form_on(agent, HoldVerb, given), _version(agent.holds)
    reason, verb = read_both(lambda: reason_of(page, given), lambda: HoldVerb.read_form(given))
    lasts = format_duration(verb.seconds * SECOND)
    if not agreed(given, session, version):
        would = (
            f"{agent.name} would make no new call for {lasts}: orders that need it wait, and calls "
            "under way may finish."
        )
        return asking(page, given, session, version, would)
    held = hold_agent(inspector.stack, agent, verb.seconds, by=read_name(None), reason=reason)
    return _held(page, held, lasts, given, session)


def _held(
    page: CommandPage, held: AgentHold, lasts: str, given: Form, session: Session
) -> CommandPage:
    """Return the page of an agent that is held, with the way back if it was not held before."""
    agent = held.hold.agent
    words = f"{agent} is held for {lasts}.{_unalerted(held.not_alerted)}"
    incident = incident_of(given)
    form = {"agent": agent, "reason": "", **({INCIDENT: incident} if incident else {})}
    circuits = [hold for hold in held.before.holds if hold.kind == BREAKER]
    after = _version((*circuits, held.hold))
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
        way_back=back if held.replaced is None else None,
        next=() if incident else (NextStep("Failure groups", "/groups"),),
    )


def _release_agent(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    agent = find_agent(inspector.stack, given.get("agent", ""))
    page, version = form_on(agent, ReleaseVerb, given), _version(agent.holds)
    if page.impossible:
        return page
    reason, verb = read_both(lambda: reason_of(page, given), lambda: ReleaseVerb.read_form(given))
    if not agreed(given, session, version):
        would = f"The hold of {agent.name} would end now, and what waits for it would go on."
        return asking(page, given, session, version, would)
    release = release_agent(inspector.stack, agent.name, by=read_name(None), reason=reason)
    noted = note_release(inspector, release).note
    return _released(page, inspector, verb, release, [f"{agent.name} is released."], noted)


# ---- orders --------------------------------------------------------------------------------------


def _hold_orders_form(_inspector: Inspector, given: Form) -> CommandPage:
    page = _form_on_orders(HoldVerb, HOLD_ORDERS, [*fields_of(HoldVerb), UNDOS], given)
    return replace(page, does=HOLD_ORDERS_DOES)


def _release_orders_form(_inspector: Inspector, given: Form) -> CommandPage:
    page = _form_on_orders(ReleaseVerb, RELEASE_ORDERS, [SHARE, WATCH, STOP_AT], given)
    return replace(page, does=RELEASE_ORDERS_DOES)


def _form_on_orders(
    verb: type[HoldVerb | ReleaseVerb], name: str, fields: Sequence[FormField], given: Form
) -> CommandPage:
    """Return the form of a verb on the orders of the workflow that was chosen or typed."""
    workflow = given.get("workflow", "")
    if not workflow:  # it is typed in the form
        page = page_of(verb, "the orders of a workflow", "", "/agents", given, name)
        return replace(page, fields=[WORKFLOW, *fields], hidden={})
    page = page_of(verb, orders_of(workflow), "", "/agents", given, name)
    return replace(page, fields=fields, hidden={"workflow": workflow})


def _as_typed(given: Form) -> Form:
    """Return the form with its target as the command line has it."""
    workflow = given.get("workflow", "")
    everything = workflow == EVERY_WORKFLOW
    return {
        **given,
        "agent": "",
        "workflow": "" if everything else workflow,
        "everything": "yes" if everything else "",
    }


def _hold_orders(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    page = _hold_orders_form(inspector, given)
    reason, verb = read_both(
        lambda: reason_of(page, given), lambda: HoldVerb.read_form(_as_typed(given))
    )
    workflow = verb.orders_of or ""
    before = find_order_hold(inspector.stack, workflow)
    version = _version(() if before is None else (before,))
    lasts = format_duration(verb.seconds * SECOND)
    if not agreed(given, session, version):
        any_order = "any order" if workflow == EVERY_WORKFLOW else page.about
        would = f"No step of {any_order} would begin for {lasts}."
        would += f" {order_hold_sentence(before)}" if before else ""
        return asking(page, given, session, version, would)
    result = hold_orders(
        inspector.stack, workflow, verb.seconds, undos=verb.undos, by=read_name(None), reason=reason
    )
    first, *more = held_lines(result, lasts)
    return replace(page, sentence=first + _unalerted(result.not_alerted), problems=more, done=True)


def _release_orders(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    page = _release_orders_form(inspector, given)
    reason, verb = read_both(
        lambda: reason_of(page, given), lambda: ReleaseVerb.read_form(_as_typed(given))
    )
    workflow = verb.orders_of or ""
    try:
        before = held_orders(inspector.stack, workflow)
    except InspectorError as problem:
        return replace(page, sentence=str(problem), refused=True)
    version = _version([before])
    if not agreed(given, session, version):
        orders = "all orders" if workflow == EVERY_WORKFLOW else page.about
        would = f"{verb.goes_on} % of {orders} would go on now. {order_hold_sentence(before)}"
        return asking(page, given, session, version, would)
    release = release_orders(
        inspector.stack, workflow, verb.goes_on, by=read_name(None), reason=reason
    )
    return _released(page, inspector, verb, release, released_lines(release))


# ---- both ----------------------------------------------------------------------------------------


def _released(
    page: CommandPage,
    inspector: Inspector,
    verb: ReleaseVerb,
    release: AgentRelease | OrdersRelease,
    lines: Sequence[str],
    noted: Callable[[Woken], None] = lambda _: None,
) -> CommandPage:
    """Return the page of what was released, which follows the orders that it wakes.

    `noted` is called with the orders that were woken.
    """
    first, *more = lines
    done = first + _unalerted(release.not_alerted)
    page = replace(page, problems=more, done=True)
    try:
        work = works_of(inspector).start(
            f"Release of {page.about}",
            page.back,
            lambda work: _wake(inspector, verb, release, done, noted, work),
            done=done,
        )
    except InspectorError:
        # Too much runs in this console; the supervisor wakes the orders.
        later = f"{done} The supervisor wakes the orders that wait for it within two minutes"
        not_watched = ", and are not watched" if verb.watches_for else ""
        return replace(page, sentence=f"{later}{not_watched}.")
    follow = f"/progress/{work.id}"
    step = NextStep("See how many orders are woken", follow)
    return replace(page, sentence=done, goes_to=follow, next=[step])


def _wake(
    inspector: Inspector,
    verb: ReleaseVerb,
    release: AgentRelease | OrdersRelease,
    done: str,
    noted: Callable[[Woken], None],
    work: Work,
) -> WorkResult:
    """Wake the orders that wait for what was released, and watch them, as `roundsman release`."""
    work.counts("the first orders that wait for it are woken")
    woken, lost = wake_released(inspector.stack, release)
    noted(woken)
    notes = woken_lines(woken, release.first_wake)
    if lost is not None:
        notes.append(f"The first waiting tasks were not all woken at once: {lost}.")
    if isinstance(release, AgentRelease) or not verb.watches_for:
        return WorkResult(done, lost is None, notes)
    watched = watch_released(
        inspector.stack,
        release,
        woken,
        seconds=verb.watches_for,
        stop_at=verb.stops_at,
        progress=lambda so_far: work.counts(
            f"{so_far.failed} of {so_far.orders} woken orders have failed"
        ),
    )
    lines = watched_lines(release, watched, format_duration(verb.watches_for * SECOND))
    return WorkResult(done, lost is None and not watched.too_many_failed, [*notes, *lines])


def _unalerted(problem: str | None) -> str:
    return "" if problem is None else f" The other operators were not alerted: {problem}."


def _version(holds: Iterable[Hold]) -> str:
    """The holds, as a version of what is shown of them."""
    return str([(hold.kind, hold.since, hold.until, hold.released, hold.undos) for hold in holds])
