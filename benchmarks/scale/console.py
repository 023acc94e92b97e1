"""What the pages of the console ask of AWS with many orders, and how long they take to make.

The tables are on DynamoDB Local. Old orders are entries of the index and no more, since no page
reads the record of each.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, TypeAlias
from unittest.mock import patch

import boto3
from botocore.client import BaseClient
from starlette.testclient import TestClient

from benchmarks.harness.orders import order
from benchmarks.harness.stack import stack_on_the_engine
from benchmarks.report import Report, Setting, Table, amount
from roundsman.engine.due import shard_of
from roundsman.model.instants import SECOND
from roundsman_console.aws.stack import find_stack
from roundsman_console.faces.web.access.one_browser import BrowserSession
from roundsman_console.faces.web.application import application
from roundsman_console.faces.web.server import prepare
from roundsman_console.facts.application import application_events
from roundsman_console.inspector import Inspector
from roundsman_testing.stack import Stack

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value
    from mypy_boto3_dynamodb.type_defs import WriteRequestTypeDef

Item: TypeAlias = "Mapping[str, Value]"

SIZES = (50_000, 200_000)
SHARDS = 16
OPEN_OF = 100
"""One of so many orders is open, and one of twice as many is archived."""
WITH_RECORDS = 2_000
"""The newest orders have whole records."""
BETWEEN = 30 * SECOND
"""The time from one reading of a page to the next, in ms: that of the overview."""
PAGES = (
    "/",
    "/orders",
    "/orders?state=Archived",
    "/groups",
    "/agents",
    "/workflows",
    "/shift",
)
PORT = 8_900
AT_ONCE = 25
WRITERS = 4
FAULTS: Sequence[Mapping[str, object]] = (
    {"operation": "POST /shipments", "status": 503, "retryAfter": 86_400, "orderId": "ord-open"},
    {"operation": "POST /charges", "status": 402, "orderId": "ord-archived"},
    {"operation": "POST /refunds", "status": 400, "orderId": "ord-archived"},
)
ORDERS = ("ord-done", "ord-open", "ord-archived")
"""Orders that are carried out, of whose records the others are copies."""


def measure(setting: Setting) -> Report:
    """Return the table of requests and times of each page."""
    shards = {"Engine.DueShards": str(SHARDS)}
    found: dict[str, list[str]] = {page: [] for page in PAGES}
    with stack_on_the_engine(setting.engine(), shards) as stack:
        stack.faults(*map(dict, FAULTS))
        stack.submit(*map(order, ORDERS))
        stack.run()
        written = 0
        for size in SIZES:
            setting.say(f"writing {size - written:,} orders")
            _write(stack, setting.engine(), written, size)
            written = size
            with _visitor(stack) as visitor:
                for page in PAGES:
                    setting.say(f"{page} with {size:,} orders")
                    found[page] += _measured(stack, visitor, page, setting.runs)
    headings = ["page", *(f"{what}, {size:,}" for size in SIZES for what in ("requests", "ms"))]
    rows = [[page, *cells] for page, cells in found.items()]
    return Report(
        [Table("Pages of the console by the number of orders", headings, rows)],
        [
            "Requests: the most of one reading. ms: the median of the console's processor time.",
        ],
    )


def _measured(stack: Stack, visitor: TestClient, page: str, runs: int) -> list[str]:
    """Return the most requests of one reading of the page, and its median time in ms."""
    requests, times = [], []
    for _ in range(runs):
        stack.clock.now += BETWEEN
        before = time.process_time()
        with _counted() as asked:
            answer = visitor.get(page)
        times.append((time.process_time() - before) * 1000)
        requests.append(len(asked))
        if answer.status_code != 200:
            raise AssertionError(f"{page}: {answer.status_code}")
    return [str(max(requests)), amount(median(times))]


@contextmanager
def _visitor(stack: Stack) -> Iterator[TestClient]:
    """Yield a browser before a console that has not read anything yet."""
    inspector = Inspector(find_stack(stack.stack.name, application_events()))
    session = BrowserSession(PORT)
    prepare(inspector)
    # The doctor's check goes on beside the pages; it is not a part of one.
    apart = "roundsman_console.faces.web.readings.background_checks.in_background"
    app = application(inspector, session)
    with patch(apart, lambda _: None), TestClient(app, base_url=session.address) as client:
        client.get(session.link_to())
        yield client


@contextmanager
def _counted() -> Iterator[list[str]]:
    """Yield a list to which each request to AWS adds its operation."""
    found: list[str] = []
    make = BaseClient._make_api_call  # type: ignore[attr-defined]  # what every call goes through

    def counted(self: BaseClient, operation: str, arguments: object) -> object:
        found.append(operation)
        return make(self, operation, arguments)

    with patch.object(BaseClient, "_make_api_call", counted):
        yield found


def _write(stack: Stack, endpoint: str, first: int, last: int) -> None:
    """Write the orders from `first` to `last` into the tasks table."""
    client: DynamoDBClient = boto3.client("dynamodb", endpoint_url=endpoint)
    table = stack.stack.outputs["TasksTableName"]
    models = {
        name: client.get_item(TableName=table, Key={"TaskId": {"S": name}})["Item"]
        for name in ORDERS
    }
    items = (_item(models, place, stack.clock.now) for place in range(first, last))

    def put(batch: Sequence[Item]) -> None:
        requests: Sequence[WriteRequestTypeDef] = [{"PutRequest": {"Item": item}} for item in batch]
        left = client.batch_write_item(RequestItems={table: requests})
        if left["UnprocessedItems"]:
            raise AssertionError("DynamoDB Local did not write all of a batch")

    batches = iter(lambda: list(islice(items, AT_ONCE)), [])
    with ThreadPoolExecutor(WRITERS) as pool:
        for _ in pool.map(put, batches):
            pass


def _item(models: Mapping[str, Item], place: int, at: int) -> Item:
    """Return the record of one order: of an old one only what the index has."""
    name, kind = f"ord-{place:06d}", "ord-done"
    if place % OPEN_OF == 0:
        kind = "ord-archived" if place % (2 * OPEN_OF) == 0 else "ord-open"
    model = models[kind]
    lane = str(model["Lane"]["S"]).partition("#")[0]
    own: dict[str, Value] = {
        "TaskId": {"S": name},
        "Lane": {"S": f"{lane}#{shard_of(name, SHARDS)}"},
        "DueAt": {"N": str(at - place * SECOND)},
    }
    if kind == "ord-done" and place > WITH_RECORDS:
        kept = ("Workflow", "CreatedAt", "Outcome")
        return {**{one: model[one] for one in kept if one in model}, **own}
    return {**model, **own}
