"""Reads all that there is of a proof: its records, its ledger, its queues and its logs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from roundsman.aws.errors import aws_errors
from roundsman.engine.due import Lane, lane_key
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.facts.audit.reading import LANES, OrderReader, Scope, UnreadOrder
from roundsman_console.facts.audit.stored_order import StoredOrder
from roundsman_console.facts.overview.queues import find_queues
from roundsman_console.facts.set_aside.queues import counts, sources
from roundsman_dev.prove.document import (
    Circumstances,
    LedgerRow,
    MadeFault,
    ProofDocument,
    QueueAtEnd,
    SentOrder,
)
from roundsman_dev.prove.function_logs import read_logs

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

LEDGER = "LedgerTableName"
_LEAST_READ = 100


@dataclass(frozen=True, slots=True)
class Numbers:
    """How far a proof has come, in numbers of orders."""

    stored: int
    ended: int


def read_numbers(stack: DeployedStack, most: int) -> Numbers:
    """Count the orders by the index, each lane up to `most`. Raises TryAgain and CallRefused."""
    counts = dict.fromkeys(LANES, 0)
    for lane in LANES:
        for shard in stack.every_shard:
            counts[lane] += stack.records.count(lane_key(lane, shard), most)
    return Numbers(sum(counts.values()), sum(counts.values()) - counts[Lane.OPEN])


def read_document(
    stack: DeployedStack,
    circumstances: Circumstances,
    sent: Sequence[SentOrder],
    faults: Sequence[MadeFault],
) -> ProofDocument:
    """Read everything. Raises TryAgain and CallRefused."""
    reader = OrderReader(stack, Scope(most=max(_LEAST_READ, 2 * len(sent))))
    orders: list[StoredOrder] = []
    unread: dict[str, str] = {}
    for part in reader.read():
        for one in part:
            if isinstance(one, UnreadOrder):
                unread[one.order_id] = one.why
            else:
                orders.append(one[0])
    if circumstances.finished:  # nothing follows any more
        orders = [replace(order, at_rest=True) for order in orders]
    return ProofDocument(
        circumstances=circumstances,
        sent=sent,
        orders=sorted(orders, key=lambda order: order.task.task_id),
        ledger=sorted(read_ledger(stack.dynamodb, stack.output(LEDGER)), key=lambda row: row.key),
        queues=read_queues(stack),
        faults=faults,
        logs=read_logs(stack.name, circumstances.began_at),
        unread=unread,
    )


def read_queues(stack: DeployedStack) -> list[QueueAtEnd]:
    """Count the messages of each queue, and those of its dead-letter queue.

    Raises TryAgain and CallRefused.
    """
    dead: dict[str, int] = {}
    for source in sources(stack):
        with aws_errors(f"counting what {source.name} has given up"):
            dead[source.name] = counts(stack.sqs, source.dead_url).all
    return [
        QueueAtEnd(one.name, one.waiting, one.in_flight, one.delayed, dead.get(one.name, 0))
        for one in find_queues(stack, now())
    ]


def read_ledger(client: "DynamoDBClient", table: str) -> Iterator[LedgerRow]:
    """Yield the rows of the ledger. Raises TryAgain and CallRefused."""
    with aws_errors("reading the ledger"):
        pages = client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
        for page in pages:
            for item in page["Items"]:
                yield ledger_row(item)


def ledger_row(item: "Mapping[str, Value]") -> LedgerRow:
    """Return a row of the ledger, as `application.ledger` writes it."""

    def number(name: str) -> int | None:
        value = item.get(name, {}).get("N")
        return None if value is None else int(value)

    return LedgerRow(
        key=item["Key"]["S"],
        agent=item.get("AgentName", {}).get("S"),
        calls=number("Calls") or 0,
        undo_calls=number("UndoCalls") or 0,
        effects=number("Effects") or 0,
        stands="Standing" in item,
        took_at=number("TookAt"),
        undone_at=number("UndoneAt"),
        fenced=number("Fenced") or 0,
        late=number("Late") or 0,
        inputs=frozenset(item.get("Inputs", {}).get("SS", [])),
    )
