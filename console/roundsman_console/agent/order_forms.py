"""The hold of orders, of a workflow or all, and its end in shares."""

from dataclasses import replace
from functools import partial

from roundsman.model.holds import ALL_ORDERS, EVERY_WORKFLOW, Hold
from roundsman.model.instants import SECOND, format_duration
from roundsman_console.agent.order_hold_text import held_lines, released_lines, watched_lines
from roundsman_console.agent.order_holds import (
    OrdersRelease,
    Watched,
    find_order_hold,
    held_orders,
    hold_orders,
    release_orders,
    wake_released,
    watch_released,
)
from roundsman_console.agent.verbs import HoldVerb, ReleaseVerb
from roundsman_console.agent.view import order_hold_sentence
from roundsman_console.agent.woken_text import woken_lines
from roundsman_console.errors import InspectorError
from roundsman_console.inspector import Inspector
from roundsman_console.verbs.actor import read_name, read_reason
from roundsman_console.verbs.verb import Form
from roundsman_console.web.command_page import (
    CommandPage,
    FormCommand,
    FormField,
    agreed,
    asking,
    fields_of,
    page_of,
)
from roundsman_console.web.session import Session
from roundsman_console.web.work import Work, WorkResult, works_of

HOLD, RELEASE = "hold-orders", "release-orders"
"""The names of the commands in the browser."""

WORKFLOW = FormField("workflow", "Workflow", hint="its name, as in the list of orders")
UNDOS = FormField("undos", "Undos wait too", "check")
SHARE = FormField("share", "Share of the orders in percent", hint="1, 10 or 100; empty for all")
WATCH = FormField("watch", "Watch the woken orders for", hint="30s or 5m; 2m for a share")
STOP_AT = FormField("stop_at", "Hold all again if more fail", hint="20% if it is left empty")

HOLD_DOES = (
    "Let no step of these orders begin for a while. New orders are accepted and wait, and what "
    "runs at an agent is finished. No attempt is counted."
)
RELEASE_DOES = (
    "Let these orders go on, all or a share of them, which contains each smaller share. If too "
    "many of the woken orders fail while they are watched, all are held again."
)


def commands_on_held_orders() -> dict[str, FormCommand]:
    """Return the commands that hold and release orders, by their names in the browser."""
    return {
        HOLD: FormCommand("hold", partial(_page, HOLD), _hold),
        RELEASE: FormCommand("release", partial(_page, RELEASE), _release),
    }


def _page(name: str, _inspector: Inspector, given: Form) -> CommandPage:
    workflow = given.get("workflow", "")
    kind = HoldVerb if name == HOLD else ReleaseVerb
    about = "everything" if workflow == EVERY_WORKFLOW else f"the orders of {workflow}"
    asked = [*fields_of(kind), UNDOS] if name == HOLD else [SHARE, WATCH, STOP_AT]
    if not workflow:  # it is typed in the form
        about, asked = "the orders of a workflow", [WORKFLOW, *asked]
    page = page_of(kind, about, "", "/agents", given, name)
    does = HOLD_DOES if name == HOLD else RELEASE_DOES
    hidden = {"workflow": workflow} if workflow else {}
    return replace(page, does=does, fields=asked, hidden=hidden)


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


def _hold(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    verb = HoldVerb.read_form(_as_typed(given))
    page = _page(HOLD, inspector, given)
    by, reason = read_name(None), read_reason(given.get("reason", ""))
    workflow = verb.orders_of or ""
    before = find_order_hold(inspector.stack, workflow)
    lasts = format_duration(verb.seconds * SECOND)
    if not agreed(given, session, _version(before)):
        any_order = "any order" if workflow == EVERY_WORKFLOW else _orders(workflow)
        would = f"No step of {any_order} would begin for {lasts}."
        would += f" {order_hold_sentence(before)}" if before else ""
        return asking(page, given, session, _version(before), would)
    result = hold_orders(
        inspector.stack, workflow, verb.seconds, undos=verb.undos, by=by, reason=reason
    )
    first, *more = held_lines(result, lasts)
    return replace(page, sentence=first + _unalerted(result.not_alerted), problems=more, done=True)


def _release(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    verb = ReleaseVerb.read_form(_as_typed(given))
    page = _page(RELEASE, inspector, given)
    text = given.get("reason", "")
    by, reason = read_name(None), read_reason(text) if text.strip() else ""
    workflow = verb.orders_of or ""
    try:
        before = held_orders(inspector.stack, workflow)
    except InspectorError as problem:
        return replace(page, sentence=str(problem), refused=True)
    share = ALL_ORDERS if verb.share is None else verb.share
    if not agreed(given, session, _version(before)):
        would = f"{share} % of {_orders(workflow)} would go on now."
        would += f" {order_hold_sentence(before)}"
        return asking(page, given, session, _version(before), would)
    release = release_orders(inspector.stack, workflow, share, by=by, reason=reason)
    first, *more = released_lines(release)
    done = first + _unalerted(release.not_alerted)
    try:
        work = works_of(inspector).start(
            f"Release of {_orders(workflow)}",
            "/agents",
            lambda work: _go_on(inspector, verb, release, done, work),
        )
    except InspectorError:
        # Too much runs in this console; the engine lets the orders go on by itself.
        later = " The orders continue within minutes, and are not watched."
        return replace(page, sentence=done + later, problems=more, done=True)
    return replace(page, goes_to=f"/progress/{work.id}")


def _go_on(
    inspector: Inspector, verb: ReleaseVerb, release: OrdersRelease, done: str, work: Work
) -> WorkResult:
    """Wake and watch the orders that go on, as `roundsman release` does."""
    work.counts(done)
    woken, lost = wake_released(
        inspector.stack,
        release,
        lambda so_far: work.counts(
            f"{done} {so_far.looked} open orders examined, {so_far.woken} woken"
        ),
    )
    notes = woken_lines(woken, release.first_wake)
    if lost is not None:
        notes.append(f"Not all waiting tasks were woken: {lost}.")
    if not verb.watches_for:
        return WorkResult(done, lost is None, notes)

    def note(watched: Watched) -> None:
        work.counts(f"{done} {watched.failed} of {watched.orders} woken orders have failed")

    watched = watch_released(
        inspector.stack,
        release,
        woken,
        seconds=verb.watches_for,
        stop_at=verb.stops_at,
        progress=note,
    )
    well = lost is None and watched.failed <= verb.stops_at * watched.orders
    return WorkResult(done, well, [*notes, *watched_lines(release, watched, verb)])


def _orders(workflow: str) -> str:
    return "all orders" if workflow == EVERY_WORKFLOW else f"the orders of {workflow}"


def _unalerted(problem: str | None) -> str:
    return "" if problem is None else f" The other operators were not alerted: {problem}."


def _version(hold: Hold | None) -> str:
    """The hold, as a version of what is shown of it."""
    return "" if hold is None else str((hold.since, hold.until, hold.released, hold.undos))
