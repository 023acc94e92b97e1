"""What the demo sends, what goes wrong on purpose, and how each order must end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from roundsman.agents.attempt import TRIES
from roundsman.testing.remote_services.values import Json
from workflows.order_fulfilment import (
    charge_card,
    create_shipment,
    order_fulfilment,
    reserve_stock,
    send_confirmation,
)

STEPS = tuple(step.name for step in order_fulfilment.steps)
ONCE = range(1, 2)
AT_MOST_ONCE = range(2)


class End(StrEnum):
    """How a message that was sent may end."""

    COMPLETED = "Completed"
    UNDONE = "Undone"
    CANCELLED = "Cancelled"
    ARCHIVED = "Archived"
    ACCEPTED = "Accepted"
    REJECTED = "Rejected"
    NOTHING_NEW = "Nothing new"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One file of `events/`, sent once: what it shows, and how it must end.

    `processed` are the steps whose effect must have happened, once; no other may have. `undone`
    are those of them whose effect must have been undone, once. `failures` bounds the FailureCount
    of the steps that may have one, at what they did last. `called_again` are those whose remote
    service must have seen the same key more than once, `undo_called_again` the same of undoing.
    `reason` is in the reason that the task ended for; `problems` are the paths named in a
    rejection. `follows` means that it is sent once the order of that id was taken.
    """

    event: str
    order_id: str
    shows: str
    end: End
    fault: Mapping[str, Json] | None = None
    processed: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()
    failures: Mapping[str, range] = field(default_factory=dict)
    called_again: tuple[str, ...] = ()
    undo_called_again: tuple[str, ...] = ()
    reason: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    follows: bool = False

    @property
    def makes_a_task(self) -> bool:
        """Whether this very message makes a task."""
        return self.end in (End.COMPLETED, End.UNDONE, End.CANCELLED, End.ARCHIVED)


@dataclass(frozen=True)
class Sent:
    """A case with the text of its message."""

    case: Case
    body: str


CASES: tuple[Case, ...] = (
    Case(
        event="good.json",
        order_id="ord-1001",
        shows="nothing goes wrong",
        end=End.COMPLETED,
        processed=STEPS,
    ),
    Case(
        event="transient.json",
        order_id="ord-1002",
        shows="payment answers 503 three times",
        end=End.COMPLETED,
        # As often as one attempt tries, so that the step waits for its next attempt.
        fault={"operation": "POST /charges", "status": 503, "times": TRIES},
        processed=STEPS,
        failures={charge_card.name: ONCE},
        called_again=(charge_card.name,),
    ),
    Case(
        event="lost-answer.json",
        order_id="ord-1003",
        shows="charged, but the answer is lost",
        end=End.COMPLETED,
        fault={"operation": "POST /charges", "loseAnswer": True, "times": 1},
        # The agent asks the service whether it happened, within the same attempt.
        processed=STEPS,
    ),
    Case(
        event="hangs.json",
        order_id="ord-1004",
        shows="inventory hangs past complete-by",
        end=End.COMPLETED,
        # Longer than the step's complete-by. Whether the late call or the retry comes first, they
        # have one key.
        fault={"operation": "POST /reservations", "hang": 45, "times": 1},
        processed=STEPS,
        # Not counted where its time is over before it is heard, and no mark shows its reading.
        failures={reserve_stock.name: AT_MOST_ONCE},
        called_again=(reserve_stock.name,),
    ),
    Case(
        event="declined.json",
        order_id="ord-1005",
        shows="the card is declined",
        end=End.UNDONE,
        processed=(reserve_stock.name,),
        undone=(reserve_stock.name,),
        reason=(charge_card.name, "CardDeclined"),
    ),
    Case(
        event="malformed.json",
        order_id="ord-1006",
        shows="eight things are wrong with it",
        end=End.REJECTED,
        problems=(
            "currency",
            "lines[0].quantity",
            "lines[1].unitPrice",
            "shippingAddress.postalCode",
            "shippingAddress.country",
            "processing.processAt",
            "processing.prority",
            "processing.workflow",
        ),
    ),
    Case(
        event="urgent.json",
        order_id="ord-1007",
        shows="urgent: queues of its own",
        end=End.COMPLETED,
        processed=STEPS,
    ),
    Case(
        event="undeliverable.json",
        order_id="ord-1008",
        shows="charged, then no such address",
        end=End.UNDONE,
        # The refund's first attempt fails, and the next has the same key.
        fault={"operation": "POST /refunds", "status": 503, "times": TRIES},
        processed=(reserve_stock.name, charge_card.name),
        undone=(reserve_stock.name, charge_card.name),
        failures={charge_card.name: ONCE},
        undo_called_again=(charge_card.name,),
        reason=(create_shipment.name, "AddressUndeliverable"),
    ),
    Case(
        event="no-mail.json",
        order_id="ord-1009",
        shows="the confirmation is refused",
        end=End.ARCHIVED,
        fault={"operation": "POST /messages", "status": 422, "body": {"error": "NoSuchMailbox"}},
        processed=(reserve_stock.name, charge_card.name, create_shipment.name),
        reason=(send_confirmation.name, "NoSuchMailbox"),
    ),
    Case(
        event="later.json",
        order_id="ord-1010",
        shows="waits, and is taken back meanwhile",
        end=End.CANCELLED,
        reason=("cancelled by application", "ordered twice"),
    ),
    Case(
        event="cancel.json",
        order_id="ord-1010",
        shows="the application cancels later.json",
        end=End.ACCEPTED,
        reason=("cancelled by application",),
        follows=True,
    ),
    Case(
        event="duplicate.json",
        order_id="ord-1001",
        shows="good.json again, in other bytes",
        end=End.NOTHING_NEW,
        follows=True,
    ),
    Case(
        event="conflicting.json",
        order_id="ord-1001",
        shows="good.json's id, another order",
        end=End.REJECTED,
        problems=("orderId",),
        follows=True,
    ),
)


def fault_rules(cases: Sequence[Case]) -> list[Json]:
    """The faults as the remote services take them, in the order of the cases that have one."""
    return [{"orderId": case.order_id, **case.fault} for case in cases if case.fault]


def read_events(folder: Path, cases: Sequence[Case]) -> list[Sent]:
    """The messages to send. Raises OSError or UnicodeDecodeError where a file cannot be read."""
    return [Sent(case, (folder / case.event).read_text(encoding="utf-8")) for case in cases]
