"""Bulk runs: one command for the orders of a filter or for those that are named.

The supervisor carries a run out, so the browser may close as soon as the run is stored. A run is
over exactly the orders that its dry run was about, whatever the filter matches by then; the
supervisor decides on each before it sends.
"""

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from roundsman.model.bulk_run import OrderGroup, Run, Terms
from roundsman.model.instants import iso
from roundsman.model.json import sha256
from roundsman.model.states import TaskState
from roundsman_console.acts import verbs
from roundsman_console.acts.actor import read_name
from roundsman_console.acts.bulk.completed import selects_completed
from roundsman_console.acts.bulk.dry_run import (
    Tried,
    check_bounded,
    check_holds,
    choose_for,
    try_out,
)
from roundsman_console.acts.bulk.limits import (
    AT_ONCE,
    CANARY,
    CANARY_WAIT,
    LONGEST_SELECTION,
    RATE,
    read_terms,
)
from roundsman_console.acts.bulk.start import check_alone, new_run, start_run
from roundsman_console.acts.bulk.words import order_of_going, search_words
from roundsman_console.acts.changes import plan_lines
from roundsman_console.acts.hold.agents import can_be_released, release_agent
from roundsman_console.acts.hold.results import Released
from roundsman_console.acts.hold.verbs import WOKEN_LATER
from roundsman_console.acts.hold.wake import waiting_words
from roundsman_console.acts.order.corrections import corrects, known_workflows
from roundsman_console.acts.order.verbs import OrderVerb
from roundsman_console.acts.verb import Asked, Form, Item, Preview, Progress, no_progress
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.base.counted import counted
from roundsman_console.base.errors import (
    USAGE,
    AgentOnHold,
    ConsoleError,
    InspectorError,
    UnboundedSelection,
    WrongFields,
    sentence_of,
)
from roundsman_console.base.limits import STOP_AT
from roundsman_console.base.result import Result
from roundsman_console.faces.web.access.session import Session
from roundsman_console.faces.web.command_page import (
    CommandPage,
    FormCommand,
    FormField,
    NextStep,
    fields_of,
    incident_of,
    page_of,
    read_both,
    reason_of,
)
from roundsman_console.faces.web.forms.order import in_states
from roundsman_console.faces.web.previews import agreed_preview, search
from roundsman_console.faces.web.readings.released import note_result
from roundsman_console.faces.web.readings.unreadable_parts import AWS_ERRORS
from roundsman_console.faces.web.selection_fields import (
    asked_of,
    for_command,
    option_text,
    selection_of,
)
from roundsman_console.facts.agent.reading import find_agent
from roundsman_console.facts.group.reading import states_of_group
from roundsman_console.facts.orders.selection import Selection
from roundsman_console.inspector import Inspector

MOST_NAMED = 1_000
"""The number of orders that can be named in a form. Each is read on its own."""
ORDERS = FormField(
    "orders", "The orders, by their ids", "lines", "With spaces or lines between.", required=True
)
RELEASE = "release"
"""The field with the agent that is released before the run begins."""
ANYWAY = FormField("anyway", "Also send to orders that would wait for a held agent", "check")
MORE = "More options"
DEFAULTS = {
    "canary": str(CANARY),
    "rate": f"{RATE:g}",
    "at_once": str(AT_ONCE),
    "stop_at": STOP_AT,
    "canary_wait": CANARY_WAIT,
}
LIMITS = (
    FormField(
        "canary",
        "Orders that are sent first",
        hint="0 to 100, and the rest wait for their results",
        option="--canary",
        if_empty=DEFAULTS["canary"],
    ),
    FormField(
        "rate",
        "Orders a second",
        hint="0.001 to 25",
        option="--rate",
        if_empty=DEFAULTS["rate"],
    ),
    FormField(
        "at_once",
        "Orders in flight at most",
        hint="1 to 1000",
        folded=MORE,
        option="--at-once",
        if_empty=DEFAULTS["at_once"],
    ),
    FormField(
        "stop_at",
        "The run stops if more fail again",
        hint="0% to 100%",
        folded=MORE,
        option="--stop-at",
        if_empty=DEFAULTS["stop_at"],
    ),
    FormField(
        "canary_wait",
        "Longest wait for the next result",
        hint="such as 30s or 5m",
        folded=MORE,
        option="--canary-wait",
        if_empty=DEFAULTS["canary_wait"],
    ),
    ANYWAY,
)
ALWAYS_SHOWN = frozenset({"step", "did", "seconds", "again", "keep"})
"""The arguments of verbs that are not folded away in the form for many orders."""
IN_GROUPS = frozenset({TaskState.ARCHIVED, TaskState.UNDONE})
"""The states of the members of failure groups."""


def verbs_on_many() -> dict[str, type[OrderVerb]]:
    """Return the verbs that are offered for all orders of a filter, by their names in the browser.

    The engine decides for each order.
    """
    return {f"{verb.name}-all": verb for verb in verbs.order_verbs() if verb.of_many}


def commands_on_many() -> dict[str, FormCommand]:
    """Return the commands on many orders, by their names in the browser."""
    return {name: _starts(name, verb) for name, verb in verbs_on_many().items()}


def commands_for(selection: Selection) -> list[tuple[str, str]]:
    """Return the names and titles of the commands that are offered for all that a filter selects.

    None for a filter that selects too much (`missing_in`).
    """
    if missing_in(selection):
        return []
    states = IN_GROUPS if selection.state is None else {selection.state}
    return [(name, _title(verb)) for name, verb in verbs_on_many().items() if verb.states & states]


def missing_in(selection: Selection) -> str:
    """Return what a filter lacks that selects too much for a command; empty if it does not."""
    if selection.where is not None:
        return "To command orders that are found by a field, tick their boxes."
    try:
        check_bounded(selection, frozenset(TaskState))
    except UnboundedSelection as error:
        return str(error)
    return ""


def _title(verb: type[OrderVerb], released: str = "", orders: str = "all") -> str:
    """The title of the command on many orders, before which an agent may be released."""
    first, *rest = verb.title.split()
    title = " ".join((first, orders, *rest))
    return f"Release {released} and {title[:1].lower()}{title[1:]}" if released else title


def _starts(name: str, verb: type[OrderVerb]) -> FormCommand:
    def show(inspector: Inspector, given: Form) -> CommandPage:
        selection = selection_of(asked_of(given, command=True))
        return form_on_many(name, given, states_of(inspector.stack, selection))

    def carry_out(inspector: Inspector, given: Form, session: Session) -> CommandPage:
        page = show(inspector, given)
        return page if page.impossible else _start(inspector, page, verb, given, session)

    return FormCommand(verb.name, show, carry_out)


def states_of(stack: DeployedStack, selection: Selection) -> Collection[TaskState]:
    """Return the states in which the selected orders can be; empty if it is not known."""
    if selection.state is not None:
        return {selection.state}
    return states_of_group(stack, selection.group) if selection.group else ()


def form_on_many(name: str, given: Form, states: Collection[TaskState]) -> CommandPage:
    """Return the form of a command on many orders, which can be in `states`. Nothing is read.

    Raises what `_about` raises.
    """
    verb, asked = verbs_on_many()[name], asked_of(given, command=True)
    hidden = for_command(asked)
    about, back = _about(asked, _named(given), verb)
    fields = (*(() if hidden else (ORDERS,)), *_fields(verb), *LIMITS)
    page = page_of(verb, about, "", back, {**DEFAULTS, **given}, name)
    page = replace(
        page,
        title=_title(verb, given.get(RELEASE, "")),
        fields=fields,
        hidden={**hidden, **page.hidden, **_released(given)},
        proposed={**DEFAULTS, **page.proposed},
    )
    if states and verb.states.isdisjoint(states):
        words = f"{page.title} is not possible: the orders are {' or '.join(sorted(states))}."
        return replace(page, sentence=words, impossible=True)
    return in_states(page, verb, states)


def _released(given: Form) -> Mapping[str, str]:
    """The field of the agent that is released, if there is one."""
    return {RELEASE: given[RELEASE]} if given.get(RELEASE) else {}


def _named(given: Form) -> list[str]:
    """The orders that are named, once each."""
    return list(dict.fromkeys(given.get(ORDERS.name, "").replace(",", " ").split()))


def _checked_names(given: Form, *, needed: bool) -> list[str]:
    """The orders that are named. Raises WrongFields if there are too many, or none is."""
    named = _named(given)
    if len(named) > MOST_NAMED:
        why = f"At most {MOST_NAMED} orders can be named. Use a filter."
        raise WrongFields({ORDERS.name: why})
    if needed and not named:
        raise WrongFields({ORDERS.name: "Name at least one order."})
    return named


def _about(
    asked: Mapping[str, str], named: Sequence[str], verb: type[OrderVerb]
) -> tuple[str, str]:
    """Which orders the run is about, in words, and the address of their page.

    Raises ConsoleError or InvalidArgument for a filter that is wrong, selects too much, or is given
    together with orders.
    """
    selection = selection_of(asked)
    if selection.everything:
        return (counted(len(named), "order") if named else "the orders that you name"), "/bulk"
    if named:
        raise ConsoleError("Give order ids or a filter, not both.", USAGE)
    check_bounded(selection, verb.states)
    if selection == Selection(group=selection.group):
        return asked["group"], f"/groups/{asked['group']}"
    return selection.words(), f"/orders?{urlencode(asked)}"


def _fields(verb: type[OrderVerb]) -> list[FormField]:
    """The fields of the command for one order, without those for one order only."""
    alone = {one.name for one in verb.arguments() if one.alone}
    return [
        replace(
            field,
            kind="text" if field.kind == "steps" else field.kind,
            folded="" if field.name in ALWAYS_SHOWN else MORE,
        )
        for field in fields_of(verb)
        if field.name not in alone
    ]


def _start(
    inspector: Inspector, page: CommandPage, kind: type[OrderVerb], given: Form, session: Session
) -> CommandPage:
    stack, by, asked = inspector.stack, read_name(None), asked_of(given, command=True)
    (reason, named), (verb, terms) = read_both(
        lambda: read_both(
            lambda: reason_of(kind, given),
            lambda: _checked_names(given, needed=not for_command(asked)),
        ),
        lambda: read_both(lambda: kind.read_form(given, many=True), lambda: _terms(given)),
    )
    kept = agreed_preview(given, session)
    if kept is not None:
        return _begun(inspector, page, kept, Asked(by, reason, 0))
    released = given.get(RELEASE, "")
    selected = shlex.join(named)[:LONGEST_SELECTION] if named else option_text(asked)
    selection, at = selection_of(asked), now()
    if selects_completed(selection):
        selected = f"{selected} --as-of {iso(at)}"[:LONGEST_SELECTION]
    run = new_run(verb.event, by, reason, selected, terms, at)
    if corrects(run.event):
        known_workflows(stack)

    def look(progress: Progress) -> Preview:
        progress("finding the orders")
        planned, choice = choose_for(
            stack,
            run,
            selection,
            named,
            progress,
            newest_plan_asked=verb.newest_plan,
            as_of=at if selects_completed(selection) else None,
        )
        tried = try_out(stack, planned, choice, progress, released=released)
        first, title = "", ""
        if released:
            first = f"{released} is released first: what waits for it goes on. "
            waits = waiting_words(stack, released)
            first += f"{waits} " if waits else ""
            all_seen = tried.looked_at == tried.selected
            many = tried.eligible if all_seen else tried.selected
            title = _title(kind, released, counted(many, "order")) if many else ""
        return Preview(
            f"{first}{_words(planned, tried)}",
            lambda asked: _start_now(stack, planned, choice.orders, released, asked),
            sha256("\n".join(choice.orders)),
            f"{page.title}?" if tried.eligible else "",
            title=title,
            notes=_notes(planned, tried),
            items=_items(planned, tried, verb),
            items_are=("Orders", "For example"),
            inputs=tried.inputs or (),
        )

    return search(inspector, page, given, session, look)


@dataclass(frozen=True, slots=True)
class _Started(Result):
    run: Run
    released: Released | None
    """The release of the agent before it; None if none was."""

    def words(self) -> Sequence[str]:
        released = (*self.released.words(), WOKEN_LATER) if self.released else ()
        begins = f"{self.run.id} is stored: the supervisor begins within a minute."
        return [" ".join((*released, begins))]

    def warnings(self) -> Sequence[str]:
        return self.released.warnings() if self.released else ()

    def leads_to(self) -> str:
        return self.run.id


def _start_now(
    stack: DeployedStack, planned: Run, orders: Sequence[str], agent: str, asked: Asked
) -> _Started:
    """Release the agent, if one is named and held, and store the run that was shown.

    Raises AgentOnHold, before anything is done, if an order would wait for another hold, and what
    `check_alone` raises.
    """
    run = replace(planned, started_at=now())
    check_alone(stack, run)
    check_holds(stack, run, orders, released=agent)
    released = _release(stack, agent, asked) if agent else None
    run = replace(run, started_at=now())  # the release is the earlier act
    try:
        return _Started(start_run(stack, run, orders, no_progress), released)
    except AWS_ERRORS as error:
        if released is None:
            raise
        raise InspectorError(
            f"{agent} is released, but the bulk run was not stored: {sentence_of(error)}"
        ) from error


def _release(stack: DeployedStack, agent: str, asked: Asked) -> Released | None:
    """Release the agent; None if somebody else has done it meanwhile."""
    if not can_be_released(find_agent(stack, agent)):
        return None
    return Released(release_agent(stack, agent, by=asked.by, reason=asked.reason))


def _begun(inspector: Inspector, page: CommandPage, found: Preview, asked: Asked) -> CommandPage:
    try:
        started = found.go(asked)
    except AgentOnHold as held:
        return replace(page, sentence=f"{held} {HELD}", refused=True)
    if isinstance(started, _Started) and started.released is not None:
        note_result(inspector, started.released)
    run = started.leads_to()
    follow = f"/bulk/{run}"
    page = replace(page, sentence=" ".join([*started.words(), *started.warnings()]), done=True)
    if incident_of(page.hidden):
        return replace(page, next=[NextStep(f"Follow {run}", follow)])
    return replace(page, about=run, back=follow)


HELD = f"To send to these orders nevertheless, choose: {ANYWAY.label}."


def _words(run: Run, tried: Tried) -> str:
    looked = "" if tried.looked_at == tried.selected else f" of the first {tried.looked_at}"
    eligible = (
        f"{tried.eligible}{looked} of {tried.selected} orders are eligible; nothing was sent."
    )
    if not tried.eligible:
        return eligible
    return (
        f"{eligible} {order_of_going(run.terms, tried.eligible)} The run stops if more than "
        f"{100 * run.terms.stop_at:g}% fail again."
    )


def _notes(run: Run, tried: Tried) -> list[str]:
    """What else is to be known of the dry run: its search, holds, and the changes of plans."""
    notes = [f"{search_words(tried)}."] if tried.examined else []
    notes += [HELD] if tried.held and not run.terms.anyway else []
    for one in tried.plans or ():
        notes += plan_lines(one, f"{counted(one.orders, 'order')}: the plan")
    return notes


def _items(run: Run, tried: Tried, verb: OrderVerb) -> list[Item]:
    """The orders of the dry run, eligible and not, by reason."""
    eligible = OrderGroup("", f"can be {verb.participle}", tried.eligible, tried.samples)
    return [
        *([_item(eligible, "eligible", goes=True)] if tried.eligible else []),
        *(_item(kind, "would wait", goes=run.terms.anyway) for kind in tried.held),
        *(_item(kind, "loses signals", goes=True) for kind in tried.lost_signals),
        *(_item(kind, "not eligible", goes=False) for kind in tried.refused),
    ]


def _item(kind: OrderGroup, verdict: str, *, goes: bool) -> Item:
    return Item(counted(kind.orders, "order"), ", ".join(kind.samples), verdict, kind.reason, goes)


def _terms(form: Form) -> Terms:
    """Read the limits of a run. Raises WrongFields for those that are not possible."""
    given = {**DEFAULTS, **{name: text for name, text in form.items() if text.strip()}}
    (canary, at_once), rate = read_both(
        lambda: read_both(lambda: _whole(given, "canary"), lambda: _whole(given, "at_once")),
        lambda: _rate(given),
    )
    return read_terms(
        canary,
        given["canary_wait"],
        rate,
        at_once,
        given["stop_at"],
        anyway=form.get("anyway") == "yes",
    )


def _whole(given: Form, name: str) -> int:
    try:
        return int(given[name])
    except ValueError as error:
        why = f"{given[name]!r} is not a whole number of orders."
        raise WrongFields({name: why}) from error


def _rate(given: Form) -> float:
    try:
        return float(given["rate"])
    except ValueError as error:
        why = f"{given['rate']!r} is not a number of orders a second."
        raise WrongFields({"rate": why}) from error
