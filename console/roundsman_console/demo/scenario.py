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


class ExpectedEnd(StrEnum):
    """How a message that was sent may end."""

    COMPLETED = "Completed"
    UNDONE = "Undone"
    CANCELLED = "Cancelled"
    ARCHIVED = "Archived"
    ACCEPTED = "Accepted"
    REJECTED = "Rejected"
    NOTHING_NEW = "Nothing new"


@dataclass(frozen=True, kw_only=True)
class DemoOrder:
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
    end: ExpectedEnd
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
        return self.end in (
            ExpectedEnd.COMPLETED,
            ExpectedEnd.UNDONE,
            ExpectedEnd.CANCELLED,
            ExpectedEnd.ARCHIVED,
        )


@dataclass(frozen=True)
class SentOrder:
    """A case with the text of its message."""

    case: DemoOrder
    body: str


CASES: tuple[DemoOrder, ...] = (
    DemoOrder(
        event="good.json",
        order_id="ord-1001",
        shows="nothing goes wrong",
        end=ExpectedEnd.COMPLETED,
        processed=STEPS,
    ),
    DemoOrder(
        event="transient.json",
        order_id="ord-1002",
        shows="payment answers 503 three times",
        end=ExpectedEnd.COMPLETED,
        # As often as one attempt tries, so that the step waits for its next attempt.
        fault={"operation": "POST /charges", "status": 503, "times": TRIES},
        processed=STEPS,
        failures={charge_card.name: ONCE},
        called_again=(charge_card.name,),
    ),
    DemoOrder(
        event="lost-answer.json",
        order_id="ord-1003",
        shows="charged, but the answer is lost",
        end=ExpectedEnd.COMPLETED,
        fault={"operation": "POST /charges", "loseAnswer": True, "times": 1},
        # The agent asks the service whether it happened, within the same attempt.
        processed=STEPS,
    ),
    DemoOrder(
        event="hangs.json",
        order_id="ord-1004",
        shows="inventory hangs past complete-by",
        end=ExpectedEnd.COMPLETED,
        # Longer than the step's complete-by. Whether the late call or the retry comes first, they
        # have one key.
        fault={"operation": "POST /reservations", "hang": 45, "times": 1},
        processed=STEPS,
        # Not counted where its time is over before it is heard, and no mark shows its reading.
        failures={reserve_stock.name: AT_MOST_ONCE},
        called_again=(reserve_stock.name,),
    ),
    DemoOrder(
        event="declined.json",
        order_id="ord-1005",
        shows="the card is declined",
        end=ExpectedEnd.UNDONE,
        processed=(reserve_stock.name,),
        undone=(reserve_stock.name,),
        reason=(charge_card.name, "CardDeclined"),
    ),
    DemoOrder(
        event="malformed.json",
        order_id="ord-1006",
        shows="eight things are wrong with it",
        end=ExpectedEnd.REJECTED,
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
    DemoOrder(
        event="urgent.json",
        order_id="ord-1007",
        shows="urgent: queues of its own",
        end=ExpectedEnd.COMPLETED,
        processed=STEPS,
    ),
    DemoOrder(
        event="undeliverable.json",
        order_id="ord-1008",
        shows="charged, then no such address",
        end=ExpectedEnd.UNDONE,
        # The refund's first attempt fails, and the next has the same key.
        fault={"operation": "POST /refunds", "status": 503, "times": TRIES},
        processed=(reserve_stock.name, charge_card.name),
        undone=(reserve_stock.name, charge_card.name),
        failures={charge_card.name: ONCE},
        undo_called_again=(charge_card.name,),
        reason=(create_shipment.name, "AddressUndeliverable"),
    ),
    DemoOrder(
        event="no-mail.json",
        order_id="ord-1009",
        shows="the confirmation is refused",
        end=ExpectedEnd.ARCHIVED,
        fault={"operation": "POST /messages", "status": 422, "body": {"error": "NoSuchMailbox"}},
        processed=(reserve_stock.name, charge_card.name, create_shipment.name),
        reason=(send_confirmation.name, "NoSuchMailbox"),
    ),
    DemoOrder(
        event="later.json",
        order_id="ord-1010",
        shows="waits, and is taken back meanwhile",
        end=ExpectedEnd.CANCELLED,
        reason=("cancelled by application", "ordered twice"),
    ),
    DemoOrder(
        event="cancel.json",
        order_id="ord-1010",
        shows="the application cancels later.json",
        end=ExpectedEnd.ACCEPTED,
        reason=("cancelled by application",),
        follows=True,
    ),
    DemoOrder(
        event="duplicate.json",
        order_id="ord-1001",
        shows="good.json again, in other bytes",
        end=ExpectedEnd.NOTHING_NEW,
        follows=True,
    ),
    DemoOrder(
        event="conflicting.json",
        order_id="ord-1001",
        shows="good.json's id, another order",
        end=ExpectedEnd.REJECTED,
        problems=("orderId",),
        follows=True,
    ),
)


def fault_rules(cases: Sequence[DemoOrder]) -> list[Json]:
    """The faults as the remote services take them, in the order of the cases that have one."""
    return [{"orderId": case.order_id, **case.fault} for case in cases if case.fault]


def read_events(folder: Path, cases: Sequence[DemoOrder]) -> list[SentOrder]:
    """The messages to send. Raises OSError or UnicodeDecodeError where a file cannot be read."""
    return [SentOrder(case, (folder / case.event).read_text(encoding="utf-8")) for case in cases]
