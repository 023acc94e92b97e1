"""The scenario of the demo: the messages, the injected faults, and the expected ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from roundsman.agents.attempt import TRIES
from roundsman_testing.remote_services.values import Json
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
    """The possible ends of a message."""

    COMPLETED = "Completed"
    UNDONE = "Undone"
    CANCELLED = "Cancelled"
    ARCHIVED = "Archived"
    ACCEPTED = "Accepted"
    REJECTED = "Rejected"
    NOTHING_NEW = "Nothing new"


@dataclass(frozen=True, kw_only=True)
class DemoOrder:
    """A message of the demo, which is sent once, and its expected end."""

    event: str
    """The file in `events/`."""
    order_id: str
    shows: str
    """What the order demonstrates."""
    end: ExpectedEnd
    fault: Mapping[str, Json] | None = None
    """The fault rule for the remote services; None for no fault."""
    processed: tuple[str, ...] = ()
    """The steps whose effect must happen exactly once. No other step may have an effect."""
    undone: tuple[str, ...] = ()
    """The steps whose effect must be undone exactly once."""
    failures: Mapping[str, range] = field(default_factory=dict)
    """The allowed FailureCount of a step in its last operation; 0 if the step is not listed."""
    called_again: tuple[str, ...] = ()
    """The steps whose remote service must receive the same perform key more than once."""
    undo_called_again: tuple[str, ...] = ()
    """The steps whose remote service must receive the same undo key more than once."""
    reason: tuple[str, ...] = ()
    """Texts that the reason of the task's end must contain."""
    problems: tuple[str, ...] = ()
    """The paths that the rejection must name."""
    follows: bool = False
    """The message is sent after the order with the same ID has a task."""

    @property
    def makes_a_task(self) -> bool:
        """Whether this message creates a task."""
        return self.end in (
            ExpectedEnd.COMPLETED,
            ExpectedEnd.UNDONE,
            ExpectedEnd.CANCELLED,
            ExpectedEnd.ARCHIVED,
        )


@dataclass(frozen=True)
class SentOrder:
    """A message of the demo with its body."""

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
        # All tries of one attempt fail, so that the step waits for its next attempt.
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
        # Within the same attempt, the agent asks the service whether the charge happened.
        processed=STEPS,
    ),
    DemoOrder(
        event="hangs.json",
        order_id="ord-1004",
        shows="inventory hangs past complete-by",
        end=ExpectedEnd.COMPLETED,
        # Longer than the step's complete-by. The late call and the retry have the same idempotency
        # key, so their order does not matter.
        fault={"operation": "POST /reservations", "hang": 45, "times": 1},
        processed=STEPS,
        # The timeout is not counted if the agent has not reported on the attempt and no read mark
        # shows that it read the request.
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
        shows="the order has eight errors",
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
        # The first attempt of the refund fails, and the next attempt uses the same key.
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
        shows="waits, and is cancelled meanwhile",
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
    """Return the fault rules for the remote services, in the order of the cases with a fault."""
    return [{"orderId": case.order_id, **case.fault} for case in cases if case.fault]


def read_events(folder: Path, cases: Sequence[DemoOrder]) -> list[SentOrder]:
    """Read the messages to send. Raises OSError or UnicodeDecodeError if a file is unreadable."""
    return [SentOrder(case, (folder / case.event).read_text(encoding="utf-8")) for case in cases]
