"""The rules of the faults of a stack: when one is alerted, and when its all-clear is sent. Pure.

A fault is stored when it is first seen. It is alerted once, after it was seen at each look for as
long as its kind asks. If it is not seen for CLEAR_FOR, its all-clear is sent and it is removed; one
that was never alerted is removed at the first look that does not see it.

An alert is first stored as being sent, then sent, then stored as sent: it may come twice, and is
never lost. Every write is conditional on the version that was read.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from roundsman.alerts.group import SENDING_LEASE, AlertKind
from roundsman.command_line import command_line
from roundsman.model.instants import MINUTE, format_duration, iso
from roundsman.model.json import Json
from roundsman.model.stack_faults import FaultKind, Sighting, StackFault
from roundsman.wire.alert import Alert, alert_of
from roundsman.wire.alert_email import AlertText

CLEAR_FOR = 10 * MINUTE
"""How long in ms a fault must not be seen before its all-clear is sent. An order that waits for the
scheduler is looked at every five minutes."""

MOST_FAULTS = 100
"""The most faults that are stored at once; about 20 KB. Further ones are seen again later."""

SEVERITY = {
    FaultKind.REJECTED: "warning",
    FaultKind.BACKLOG: "warning",
    FaultKind.BEHIND: "warning",
}
"""The severity of each kind; `error` for all others."""


@dataclass(frozen=True, slots=True)
class FaultUpdate:
    """What follows from a look."""

    faults: Mapping[str, StackFault]
    """The faults to store, by key."""
    news: tuple[tuple[str, AlertKind], ...]
    """(key, FIRST or CLEAR) of each alert to send. Its fault is in `faults`."""


def judge(
    stored: Mapping[str, StackFault],
    seen: Iterable[Sighting],
    looked_at: Collection[str],
    patience: Mapping[FaultKind, int],
    now: int,
) -> FaultUpdate:
    """Compare what is stored with what was seen.

    `looked_at` has the keys of the stored faults that this look could have seen; the others stay as
    they are. `patience` is how long a kind must be seen before it is alerted, in ms; 0 if absent.
    """
    after, news = dict(stored), list[tuple[str, AlertKind]]()
    current = {each.key: each for each in seen}
    for key, sighting in current.items():
        fault = stored.get(key)
        if fault is None:
            if len(after) >= MOST_FAULTS:
                continue
            fault = StackFault(sighting.kind, sighting.about, now, sighting.amount)
        fault = replace(fault, clear_since=None)
        due = fault.alerted_at is None and now - fault.since >= patience.get(sighting.kind, 0)
        if due and fault.alerting_until <= now:
            fault = replace(fault, alerting_until=now + SENDING_LEASE, amount=sighting.amount)
            news.append((key, AlertKind.FIRST))
        after[key] = fault
    for key in stored.keys() & set(looked_at) - current.keys():
        fault = stored[key]
        if fault.alerted_at is None and fault.alerting_until <= now:
            del after[key]
        elif fault.clear_since is None:
            after[key] = replace(fault, clear_since=now)
        elif now - fault.clear_since >= CLEAR_FOR and fault.alerting_until <= now:
            after[key] = replace(fault, alerting_until=now + SENDING_LEASE)
            news.append((key, AlertKind.CLEAR))
    return FaultUpdate(after, tuple(news))


def sent(
    faults: Mapping[str, StackFault], news: Iterable[tuple[str, AlertKind]], now: int
) -> dict[str, StackFault]:
    """Return the faults after these alerts were published."""
    after = dict(faults)
    for key, kind in news:
        if kind is AlertKind.CLEAR:
            del after[key]
        else:
            after[key] = replace(after[key], alerted_at=now, alerting_until=0)
    return after


def stack_fault_alert(news: AlertKind, fault: StackFault, now: int) -> Alert:
    """Return the alert of a fault, or its all-clear."""
    clear = news is AlertKind.CLEAR
    title, sentence, look = _words(fault)
    summary = (
        f"All clear: {_CLEAR[FaultKind(fault.kind)].format(fault.about)}" if clear else sentence
    )
    title = f"Roundsman: {'all clear: ' if clear else ''}{title}"
    severity = "info" if clear else SEVERITY.get(FaultKind(fault.kind), "error")
    words = AlertText().line(summary)
    words.pair("since", iso(fault.since))
    words.commands("To look at it", look)
    document: dict[str, Json] = {
        "alert": "stack_fault",
        "news": news.value,
        "severity": severity,
        "summary": summary,
        "fault": fault.kind,
        "about": fault.about,
        "since": iso(fault.since),
        "at": iso(now),
        "do": {"look": look},
    }
    filters = {"fault": fault.kind, "about": fault.about, "news": news.value}
    thread = f"stack:{fault.kind}/{fault.about}"
    return alert_of(title, document, words, thread=thread, filters=filters)


_CLEAR = {
    FaultKind.DEAD_LETTERS: "{} has no dead letters any more",
    FaultKind.REJECTED: "{} has no messages any more",
    FaultKind.BACKLOG: "no messages wait in {} any more",
    FaultKind.BEHIND: "no order waits for the {} any more",
    FaultKind.LATE: "the {} keeps up again",
}


def _words(fault: StackFault) -> tuple[str, str, str]:
    """The title without its beginning, the sentence, and the command that shows more."""
    messages = "1 message" if fault.amount == 1 else f"{fault.amount} messages"
    match FaultKind(fault.kind):
        case FaultKind.DEAD_LETTERS:
            sentence = f"{messages} of {fault.about} failed every delivery"
            return f"dead letters of {fault.about}", sentence, command_line("dlq ls", fault.about)
        case FaultKind.REJECTED:
            sentence = f"{messages} in {fault.about} can never be handled"
            return "messages were rejected", sentence, "roundsman rejected ls"
        case FaultKind.BACKLOG:
            sentence = f"messages wait in {fault.about} at each look, {fault.amount} now"
            return f"messages wait in {fault.about}", sentence, "roundsman stats"
        case FaultKind.BEHIND:
            delay = format_duration(fault.amount)
            sentence = f"the scheduler is {delay} behind: orders are late, and none fails for that"
            return "the scheduler is behind", sentence, "roundsman stats"
        case FaultKind.LATE:
            delay = format_duration(fault.amount)
            sentence = f"the supervisor is {delay} late: tasks are found long after they are due"
            return "the supervisor is late", sentence, "roundsman doctor"
