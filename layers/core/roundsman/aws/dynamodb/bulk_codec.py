"""Encoding a bulk run, its plan and its progress as JSON text for their rows, and decoding it.

A deployment may come while a run is under way, so code reads what the release before it wrote: what
was added to a text later may be missing in it.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from roundsman.errors import InvalidMessage, UnreadableRecord
from roundsman.model.bulk_run import (
    InFlightOrder,
    OrderGroup,
    OrderNote,
    OrderResult,
    PlannedOrder,
    Run,
    RunProgress,
    Terms,
)
from roundsman.model.corrections import changes_json, read_changes
from roundsman.model.json import Json, canonical_json, parse_json
from roundsman.wire.commands import command_of, read_command

T = TypeVar("T", str, int, float, bool)


class _NotOne(ValueError):
    """The text is JSON, but not in the format that this code writes."""


def run_text(run: Run) -> str:
    """Return the run as JSON text; its event is encoded as a command to the scheduler."""
    terms = run.terms
    return canonical_json(
        {
            "command": command_of(run.id, run.event).body(),
            "by": run.by,
            "reason": run.reason,
            "selection": run.selection,
            "startedAt": run.started_at,
            "selected": run.selected,
            "pinsVersions": run.pins_versions,
            "terms": [
                terms.rate,
                terms.at_once,
                terms.canary,
                terms.stop_at,
                terms.patience,
                terms.anyway,
            ],
        }
    )


def read_run(text: str, record: str, run_id: str, starter: str) -> Run:
    """Return the run in the row `record`.

    Raises UnreadableRecord if it is not in this format, or has limits that no run may have.
    """
    try:
        found = _object(parse_json(text))
        event = read_command(_one(found["command"], str)).event
        rate, at_once, canary, stop_at, patience, anyway = _list(found["terms"])
        terms = Terms(
            rate=_number(rate),
            at_once=_one(at_once, int),
            canary=_one(canary, int),
            stop_at=_number(stop_at),
            patience=_one(patience, int),
            anyway=_one(anyway, bool),
        )
        if event is None or not terms.allowed:
            raise _NotOne
        return Run(
            id=run_id,
            event=event,
            by=_one(found["by"], str),
            starter=starter,
            reason=_one(found["reason"], str),
            selection=_one(found["selection"], str),
            started_at=_one(found["startedAt"], int),
            selected=_one(found["selected"], int),
            pins_versions=_one(found["pinsVersions"], bool),
            terms=terms,
        )
    except (ValueError, KeyError, InvalidMessage) as error:
        raise UnreadableRecord(record, "Run", "cannot be read by this version") from error


def checked_text(orders: Sequence[PlannedOrder]) -> str | None:
    """Return what the plan has for each order besides its id, as JSON text; None if nothing."""
    found = [_checked_json(one) for one in orders]
    return canonical_json(found) if any(one is not None for one in found) else None


def _checked_json(one: PlannedOrder) -> Json:
    if one.version is None and one.refused is None:
        return None
    return [one.version, None if one.changes is None else changes_json(one.changes), one.refused]


def read_orders(ids: Sequence[str], text: str, record: str) -> list[PlannedOrder]:
    """Return the orders of one row of a plan; `text` is empty if it has only ids.

    Raises UnreadableRecord if the text is not in this format.
    """
    if not text:
        return [PlannedOrder(order) for order in ids]
    try:
        checked = _list(parse_json(text))
        return [_planned(order, one) for order, one in zip(ids, checked, strict=True)]
    except ValueError as error:
        raise UnreadableRecord(record, "Checked", "cannot be read by this version") from error


def _planned(order: str, value: Json) -> PlannedOrder:
    if value is None:
        return PlannedOrder(order)
    version, changes, refused = _list(value)
    return PlannedOrder(
        order,
        None if version is None else _one(version, int),
        None if changes is None else read_changes(changes),
        None if refused is None else _one(refused, str),
    )


def progress_text(progress: RunProgress) -> str:
    """Return the progress as JSON text."""
    return canonical_json(
        {
            "reached": progress.reached,
            "sent": progress.sent,
            "onTheirWay": [
                [one.order, one.to_undo, one.sent, one.tries, one.due, one.look_at, one.place]
                for one in progress.on_their_way
            ],
            "ended": {result.value: count for result, count in progress.ended},
            "failed": [_kind_json(kind) for kind in progress.failed],
            "refused": [_kind_json(kind) for kind in progress.refused],
            "recent": progress.recent,
            "nextSendAt": progress.next_send_at,
            "newsAt": progress.news_at,
        }
    )


def read_progress(text: str, record: str) -> RunProgress:
    """Return the progress. Raises UnreadableRecord if it is not in this format."""
    try:
        found = _object(parse_json(text))
        ended = _object(found["ended"])
        return RunProgress(
            reached=_one(found["reached"], int),
            sent=_one(found["sent"], int),
            on_their_way=tuple(_sent(one) for one in _list(found["onTheirWay"])),
            ended=tuple((OrderResult(name), _one(count, int)) for name, count in ended.items()),
            failed=tuple(_kind(one) for one in _list(found["failed"])),
            refused=tuple(_kind(one) for one in _list(found["refused"])),
            recent=_one(found["recent"], str),
            next_send_at=_one(found["nextSendAt"], int),
            news_at=_one(found["newsAt"], int),
        )
    except (ValueError, KeyError) as error:
        raise UnreadableRecord(record, "Progress", "cannot be read by this version") from error


def notes_text(notes: Sequence[OrderNote]) -> str:
    """Return orders that failed again or were refused as JSON text."""
    return canonical_json([[one.order, one.failed, one.reason] for one in notes])


def read_notes(text: str, record: str) -> list[OrderNote]:
    """Return the orders. Raises UnreadableRecord if the text is not in this format."""
    try:
        return [_note(one) for one in _list(parse_json(text))]
    except ValueError as error:
        raise UnreadableRecord(record, "Notes", "cannot be read by this version") from error


def _note(value: Json) -> OrderNote:
    order, failed, reason = _list(value)
    return OrderNote(_one(order, str), _one(failed, bool), _one(reason, str))


def _sent(value: Json) -> InFlightOrder:
    order, to_undo, sent, tries, due, look_at, place = _list(value)
    return InFlightOrder(
        _one(order, str),
        _one(to_undo, bool),
        _one(sent, bool),
        _one(tries, int),
        _one(due, int),
        _one(look_at, int),
        _one(place, int),
    )


def _kind_json(kind: OrderGroup) -> Json:
    return [kind.key, kind.reason, kind.orders, list(kind.samples)]


def _kind(value: Json) -> OrderGroup:
    key, reason, orders, samples = _list(value)
    names = tuple(_one(one, str) for one in _list(samples))
    return OrderGroup(_one(key, str), _one(reason, str), _one(orders, int), names)


def _one(value: Json, kind: type[T]) -> T:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _NotOne
    return value


def _number(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _NotOne
    return float(value)


def _list(value: Json) -> Sequence[Json]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _NotOne
    return value


def _object(value: Json) -> Mapping[str, Json]:
    if not isinstance(value, Mapping):
        raise _NotOne
    return value
