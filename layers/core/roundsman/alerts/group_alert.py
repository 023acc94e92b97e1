"""The alert of a failure group: a summary in one sentence, JSON for programs, text for people.

    200 orders of order_fulfilment failed at charge_card and are archived: CardDeclined: declined

The alert states what failed and why, how many orders are affected, what an operator can safely do,
and the commands for it. It never contains order contents.
"""

from collections.abc import Mapping, Sequence

from roundsman.alerts.group import UNDONE_WITHIN, AlertKind, Census
from roundsman.alerts.samples import Sample, over, readable
from roundsman.command_line import GIVES_RESULT, REASON, command_line
from roundsman.model.events import Agents, HoldView
from roundsman.model.failure import (
    AWAITS_RESULT,
    NO_STEP,
    RETRIED,
    UNDO_FAILED,
    UNDONE,
    UNREADABLE,
    Group,
)
from roundsman.model.instants import format_duration, iso
from roundsman.model.json import Json
from roundsman.wire.alert import Alert, alert_of
from roundsman.wire.alert_email import AlertText

KINDS = {
    UNDO_FAILED: "task_archived",
    UNREADABLE: "task_unreadable",
    UNDONE: "orders_undone",
    RETRIED: "unexpected_error",
    AWAITS_RESULT: "result_awaited",
}
"""The alert's `kind`, by how the members failed; `task_archived` for all others.

A task whose undo failed is Archived too, but critical: a filter on `kind` matches both, a filter on
`severity` only the failed undo."""


def group_alert(
    news: AlertKind,
    group: Group,
    census: Census,
    samples: Sequence[Sample],
    agents: Agents | None,
    now: int,
) -> Alert:
    """Create the alert of a group, from a census and sample tasks that were read just before.

    `agents` is None if the agents' state is not known.
    """
    samples = readable(samples)
    clear = news is AlertKind.CLEAR
    severity = "info" if clear else group.severity
    kind = KINDS.get(group.how, "task_archived")
    sentence = summary(news, group, census, samples)
    document: dict[str, Json] = {
        "alert": kind,
        "news": news.value,
        "severity": severity,
        "summary": sentence,
        "group": group.id,
        "workflow": group.workflow,
        "step": group.step,
        "how": group.how,
        "error": {"type": group.error_type, "message": group.message},
        "count": census.count,
        "moreThanCount": census.more,
        "firstSeen": _when(census.first_at or group.since),
        "lastSeen": _when(census.last_at or group.last_at),
        "oldestCompleteBy": None if census.complete_by is None else _when(census.complete_by),
        "at": iso(now),
        "agents": [_agent(name, agents) for name in _agents_of(group, samples)],
    }
    commands = _commands(group, census, samples, clear=clear)
    if group.how == RETRIED and not clear:
        document["retriedUntil"] = _retried_until(samples)
    if not clear:
        document["overSamples"] = {"samples": len(samples), **over(samples)}
        document["samples"] = [sample.document() for sample in samples] or list(census.samples)
    document["do"] = commands
    return alert_of(
        title(news, group, census),
        document,
        _words(document, group, census, samples, agents, clear=clear),
        thread=group.id,
        filters={
            "workflow": group.workflow,
            "step": group.step,
            "group": group.id,
            "agent": group.agent or "none",
            "news": news.value,
        },
    )


def _when(instant: int) -> str:
    """The instant as ISO 8601 text, or in ms if it is out of range.

    An invalid record must not prevent an alert.
    """
    try:
        return iso(instant)
    except OverflowError:
        return f"{instant} ms"


def title(news: AlertKind, group: Group, census: Census) -> str:
    """The subject of the alert: what fails, and how many orders are affected."""
    if news is AlertKind.CLEAR:
        return f"Roundsman: all clear: {_where(group)}: {group.error_type}"
    hit = f"{_orders(census)} now" if news is AlertKind.UPDATE else _orders(census)
    where, why = _where(group), f"{group.error_type} ({hit})"
    what = {
        UNREADABLE: "task records cannot be handled",
        UNDO_FAILED: f"the undo of {where} fails",
        UNDONE: f"{where} fails, orders are undone",
        RETRIED: f"{where} fails unexpectedly, orders are retried",
        AWAITS_RESULT: f"orders wait for a result of {where}",
    }.get(group.how, f"{where} fails")
    return f"Roundsman: {what}: {why}"


def _where(group: Group) -> str:
    return group.workflow if group.step == NO_STEP else f"{group.workflow}/{group.step}"


def _orders(census: Census) -> str:
    return "1 order" if (census.count, census.more) == (1, False) else f"{census.count_text} orders"


def summary(news: AlertKind, group: Group, census: Census, samples: Sequence[Sample] = ()) -> str:
    """The alert in one sentence; for a single order, with the order's own error message."""
    one = (census.count, census.more) == (1, False)
    message = _own_words(samples) if one else None
    why = ": ".join(part for part in (group.error_type, message or group.message) if part)
    at = "" if group.step == NO_STEP else f" at {group.step}"
    hit, of = _orders(census), f" of {group.workflow}"
    if group.overflow:
        look = command_line("groups show", group.id)
        why = f"too many different failures for one alert each; see {look}"
    if news is AlertKind.CLEAR:
        return _all_clear(group, of, f"{at}: {why}")
    if group.how == UNREADABLE:
        return f"{hit} cannot be processed, because the task record cannot be handled: {why}"
    if group.undone:
        were = "was" if one else "were"
        within = format_duration(UNDONE_WITHIN)
        return f"{hit}{of} failed{at} and {were} undone in the last {within}: {why}"
    if group.how == RETRIED:
        fail, until = "fails" if one else "fail", _retried_until(samples)
        least = f" until {until} at least" if until else ""
        are = "is" if one else "are"
        return f"{hit}{of} {fail}{at} with an unexpected error and {are} retried{least}: {why}"
    are = "is" if one else "are"
    what = {
        AWAITS_RESULT: f" {are} without the result of {group.step}, and its readers wait",
        UNDO_FAILED: f": the undo of {group.step} failed, so its effect may remain",
    }.get(group.how, f" failed{at} and {are} archived")
    return f"{hit}{of}{what}: {why}"


def _all_clear(group: Group, of: str, where: str) -> str:
    if group.undone:
        return f"All clear: few orders{of} are now undone after a failure{where}"
    if group.how == RETRIED:
        return f"All clear: no order{of} is retried any more after an unexpected error{where}"
    if group.how == AWAITS_RESULT:
        return f"All clear: no order{of} waits for a result any more{where}"
    return f"All clear: no order{of} remains failed{where}"


def _own_words(samples: Sequence[Sample]) -> str | None:
    error = samples[0].error if samples else None
    return None if error is None else error.message


def _retried_until(samples: Sequence[Sample]) -> str | None:
    """Until when the first of the samples is retried at least; None if none is retried."""
    found = (sample.retry_until for sample in samples)
    first = min((at for at in found if at is not None), default=None)
    return None if first is None else _when(first)


def _agents_of(group: Group, samples: Sequence[Sample]) -> list[str]:
    """The step's agent, and the other agents that the samples were moved to."""
    found = [group.agent] if group.agent else []
    for sample in samples:
        record = sample.task.step(sample.step) if sample.step else None
        if record is not None and record.agent:
            found.append(record.agent)
    return list(dict.fromkeys(found))


def _hold_on(agent: str, agents: Agents) -> HoldView | None:
    """The agent's hold; None if it is not on hold."""
    view = agents.get(f"{agent}/normal") or agents.get(f"{agent}/urgent")
    return None if view is None else view.agent_hold


def _agent(agent: str, agents: Agents | None) -> Json:
    if agents is None:
        return {"agent": agent, "takesWork": None, "why": "not known", "heldUntil": None}
    hold = _hold_on(agent, agents)
    if hold is None:
        return {"agent": agent, "takesWork": True, "why": None, "heldUntil": None}
    return {"agent": agent, "takesWork": False, "why": hold.why, "heldUntil": _when(hold.until)}


def _commands(
    group: Group, census: Census, samples: Sequence[Sample], *, clear: bool
) -> Mapping[str, Json]:
    """The commands to inspect the group, to hold the agent and to resubmit, ready to paste."""
    looks: list[Json] = [command_line("groups show", group.id)]
    if clear:
        of = ("--workflow", group.workflow, "--state", "Archived")
        return {"look": [command_line("ls", options=of)]}
    orders = [sample.task.task_id for sample in samples] or list(census.samples)
    looks += [command_line("show", order) for order in orders[:1]]
    looks.append(command_line("ui", group.id))
    found: dict[str, Json] = {"look": looks}
    if group.agent:
        found["hold"] = command_line("hold", group.agent, options=("--for", "30m", *REASON))
    if group.how == RETRIED:
        found["run"] = command_line("run", options=("--group", group.id, *REASON))
    elif group.how == AWAITS_RESULT:
        steps = [sample.step or group.step for sample in samples] or [group.step]
        found["resolve"] = [command_line("resolve", orders[0], steps[0], options=GIVES_RESULT)]
    elif group.how != UNREADABLE:
        again = ("--again",) if group.undone else ()
        options = ("--group", group.id, *again, *REASON)
        found["resubmit"] = command_line("resubmit", options=options)
    return found


def _words(
    document: Mapping[str, Json],
    group: Group,
    census: Census,
    samples: Sequence[Sample],
    agents: Agents | None,
    *,
    clear: bool,
) -> AlertText:
    """The text for people: the summary, the main facts and the commands."""
    words = AlertText().line(str(document["summary"]))
    words.pair("group", f"{group.id} ({group.severity})")
    words.pair("orders", census.count_text)
    words.pair("first failure", str(document["firstSeen"]))
    words.pair("last failure", str(document["lastSeen"]))
    if document.get("retriedUntil") is not None:
        words.pair("retried until", str(document["retriedUntil"]))
    if census.complete_by is not None and not group.undone and not clear:
        words.pair("first complete-by", _when(census.complete_by))
    for agent in _agents_of(group, samples):
        hold = None if agents is None else _hold_on(agent, agents)
        state = "its state is not known" if agents is None else "accepts work"
        words.pair("agent", f"{agent}: {hold.why if hold else state}")
    if samples and not clear:
        _add_effects(words, samples)
    commands = document["do"]
    if isinstance(commands, Mapping):
        words.commands("To see the details", commands.get("look"))
        words.commands("To stop calls to the service for 30 minutes", commands.get("hold"))
        words.commands(
            "To resubmit the orders after the cause is repaired", commands.get("resubmit")
        )
        words.commands("To give the result of one order", commands.get("resolve"))
        words.commands(
            "To attempt the orders at once after the defect is repaired", commands.get("run")
        )
    if not clear:
        for sample in samples:
            words.item(sample.task.task_id, _what_failed(sample))
    return words


def _add_effects(words: AlertText, samples: Sequence[Sample]) -> None:
    of = f"in {len(samples)} sample orders" if len(samples) > 1 else ""
    for name, label in (
        ("mayHaveHappened", "effect may remain"),
        ("undone", "undone"),
        ("undoFailed", "undo failed"),
    ):
        counts = over(samples)[name]
        each = [f"{step} ({count})" if of else step for step, count in counts.items()]
        words.pair(label, f"{', '.join(each) or 'none'} {of}".strip())


def _what_failed(sample: Sample) -> str:
    task = sample.task
    tried = sample.attempts
    times = "" if not tried else f", tried {tried} time{'' if tried == 1 else 's'}"
    error = sample.error
    why = task.ending.why if task.ending else ""
    if not why and error is not None:
        why = f"{error.type}: {error.message}"
    return f"{task.state.value}{times}: {why}"
