"""A proof as JSON lines, so that it can be judged elsewhere, and later.

The lines of orders and plans are those of an audit (`audit.stored_document`).
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from roundsman_console.base.errors import InspectorError
from roundsman_console.facts.audit.stored_document import LineWriter, read_lines
from roundsman_dev.prove.document import (
    Circumstances,
    FaultOutcome,
    FunctionLog,
    LedgerRow,
    LoggedFailure,
    MadeFault,
    ProofDocument,
    QueueAtEnd,
    SentOrder,
    SpentLine,
)

_OF_AN_AUDIT = ("plan", "order")
_KINDS = ("proof", "sent", "effect", "queue", "fault", "log", "unread")


def lines_of(document: ProofDocument) -> Iterator[str]:
    """Yield the lines of a proof, each with a line break. The first says where it was made."""
    yield _line("proof", asdict(document.circumstances))
    for sent in document.sent:
        yield _line("sent", asdict(sent))
    writer = LineWriter()
    for order in document.orders:
        yield from writer.lines(order)
    for row in document.ledger:
        yield _line("effect", {**asdict(row), "inputs": sorted(row.inputs)})
    for queue in document.queues:
        yield _line("queue", asdict(queue))
    for fault in document.faults:
        yield _line("fault", asdict(fault))
    for log in document.logs:
        failures = [[one.what, one.at] for one in log.failures]
        yield _line("log", {**asdict(log), "failures": failures})
    for order_id, why in document.unread.items():
        yield _line("unread", {"orderId": order_id, "why": why})


def read_proof(lines: Iterable[str]) -> ProofDocument:
    """Return the proof of lines that `lines_of` made. Raises InspectorError for any other lines."""
    of_orders: list[str] = []
    found: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    for number, line in enumerate(lines, start=1):
        try:
            [(kind, value)] = json.loads(line).items()
            if kind in _OF_AN_AUDIT:
                of_orders.append(line)
            else:
                found[kind].append(value)
        except (AttributeError, KeyError, ValueError) as error:
            raise InspectorError(f"Line {number} is not of a file that a proof wrote.") from error
    if len(found["proof"]) != 1:
        raise InspectorError("The file is not of a proof: it has no line that says where it was.")
    try:
        return _proof(found, of_orders)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InspectorError(f"The file is not of this release of a proof: {error}.") from error


# Any: JSON that was not checked yet. A wrong field is a TypeError of the dataclass that is made.
def _proof(found: Mapping[str, list[Any]], of_orders: list[str]) -> ProofDocument:
    [place] = found["proof"]
    return ProofDocument(
        circumstances=Circumstances(
            **{**place, "spent": [SpentLine(**one) for one in place.get("spent", ())]}
        ),
        sent=[SentOrder(**one) for one in found["sent"]],
        orders=list(read_lines(of_orders)),
        ledger=[
            LedgerRow(**{**one, "inputs": frozenset(one["inputs"])}) for one in found["effect"]
        ],
        queues=[QueueAtEnd(**one) for one in found["queue"]],
        faults=[
            MadeFault(
                **{
                    **one,
                    "outcome": FaultOutcome(one["outcome"]),
                    "makes": tuple((name, what) for name, what in one.get("makes", ())),
                }
            )
            for one in found["fault"]
        ],
        logs=[
            FunctionLog(
                **{**one, "failures": tuple(LoggedFailure(*each) for each in one["failures"])}
            )
            for one in found["log"]
        ],
        unread={one["orderId"]: one["why"] for one in found["unread"]},
    )


def _line(kind: str, value: object) -> str:
    return json.dumps({kind: value}, separators=(",", ":")) + "\n"
