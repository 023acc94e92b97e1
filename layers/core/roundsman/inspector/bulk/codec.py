"""Encoding a bulk run and its progress as JSON text for the run's record, and decoding it."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from roundsman.errors import InvalidMessage, UnreadableRecord
from roundsman.inspector.bulk.run import (
    InFlightOrder,
    OrderGroup,
    OrderResult,
    Run,
    RunProgress,
    Terms,
)
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


def read_run(text: str, run_id: str) -> Run:
    """Return the run. Raises UnreadableRecord if this code did not write the text."""
    try:
        found = _object(parse_json(text))
        event = read_command(_one(found["command"], str)).event
        rate, at_once, canary, stop_at, patience, anyway = _list(found["terms"])
        if event is None:
            raise _NotOne
        return Run(
            id=run_id,
            event=event,
            by=_one(found["by"], str),
            reason=_one(found["reason"], str),
            selection=_one(found["selection"], str),
            started_at=_one(found["startedAt"], int),
            selected=_one(found["selected"], int),
            terms=Terms(
                rate=_number(rate),
                at_once=_one(at_once, int),
                canary=_one(canary, int),
                stop_at=_number(stop_at),
                patience=_one(patience, int),
                anyway=_one(anyway, bool),
            ),
        )
    except (ValueError, KeyError, InvalidMessage) as error:
        raise UnreadableRecord(f"bulk#{run_id}", "Run", "cannot be read by this version") from error


def progress_text(progress: RunProgress) -> str:
    """Return the progress as JSON text.

    The times of the next checks (`look_at`, `pause`) are not stored, because a resumed run checks
    all orders in flight at once.
    """
    return canonical_json(
        {
            "reached": progress.reached,
            "sent": progress.sent,
            "onTheirWay": [
                [one.order, one.to_undo, one.sent, one.tries] for one in progress.on_their_way
            ],
            "ended": {verdict.value: count for verdict, count in progress.ended},
            "failed": [_kind_json(kind) for kind in progress.failed],
            "refused": [_kind_json(kind) for kind in progress.refused],
            "recent": progress.recent,
            "nextSendAt": progress.next_send_at,
            "newsAt": progress.news_at,
        }
    )


def read_progress(text: str, run_id: str) -> RunProgress:
    """Return the progress. Raises UnreadableRecord if this code did not write the text."""
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
        raise UnreadableRecord(
            f"bulk#{run_id}", "Progress", "cannot be read by this version"
        ) from error


def _sent(value: Json) -> InFlightOrder:
    order, to_undo, sent, tries = _list(value)
    return InFlightOrder(_one(order, str), _one(to_undo, bool), _one(sent, bool), _one(tries, int))


def _kind_json(kind: OrderGroup) -> Json:
    return [kind.key, kind.said, kind.orders, list(kind.samples)]


def _kind(value: Json) -> OrderGroup:
    key, said, orders, samples = _list(value)
    names = tuple(_one(one, str) for one in _list(samples))
    return OrderGroup(_one(key, str), _one(said, str), _one(orders, int), names)


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
