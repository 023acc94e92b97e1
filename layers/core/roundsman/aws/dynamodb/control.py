"""The rows of ControlTable for the whole stack: plans, read marks and the supervisors' leases.

The holds are in `roundsman.aws.dynamodb.holds`, the failure groups in
`roundsman.aws.dynamodb.groups`, the circuit breakers and rate limits in `roundsman.aws.guard`.

Each plan has a row of its own, `plan#<hash>`. All read marks are in the row `marks`, with one
attribute per queue (`payment/normal`): one read, of one unit, returns every queue at one instant,
and the reader need not know which agents exist. Writes to the row are few: each instance of an
agent writes a queue's mark at most every five seconds, and the row accepts a thousand writes a
second.

All leases are in the row `leases`. Each write replaces the whole row, on the version that was
read. With 16 shards the row is under 1 KB, one write unit; a pass writes it five times.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.codec import NUMBER, TEXT, Item, RecordTable, number, text
from roundsman.aws.dynamodb.holds import DynamoHolds
from roundsman.aws.dynamodb.item_reader import ItemReader, OnUnreadable, ignore_unreadable
from roundsman.aws.errors import ConditionFailed, aws_errors
from roundsman.definition.plan import Plan, read_plan
from roundsman.errors import TryAgain, UnreadableRecord
from roundsman.model.events import Agents
from roundsman.model.field_table import Field, FieldTable
from roundsman.model.holds import Hold, on_orders, with_holds
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.leases import Lease, Leases
from roundsman.model.queue_lag import (
    LAG_VALID_FOR,
    ReadMark,
    ReadMarkWriter,
    in_normal_queues,
    queue_key,
    view_of_mark,
)
from roundsman.model.scheduler_queues import QueueDepth, is_of_scheduler
from roundsman.ports import Clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

ID = "ControlId"
MARKS = "marks"
LEASES = "leases"
NO_SUCH_ROW = f"attribute_not_exists({ID})"
VERSION_IS_NONE = "NOT attribute_type(Version, :n)"
VERSION_IS_AS_SEEN = "Version = :seen"
MARK_IS_NONE = "NOT attribute_type(#queue.ReadAt, :n) OR NOT attribute_type(#queue.ReadSentAt, :n)"
MARK_IS_OLDER = "#queue.ReadAt < :read"
KEEP_MARKS_FOR = 5 * SECOND
"""How old the marks and holds in use may be, in ms; agents write marks no more often."""

STORED_FOR = 5 * MINUTE
"""How long an instance relies on a plan that it stored, in ms: restoring a table takes longer."""


MOST_PLANS = 100
"""How many plans an instance keeps: tasks of many releases may be under way, and a plan is a few
KB. The one that was kept first is read again."""


class DynamoPlans:
    """PlanStore in ControlTable. A plan never changes, so each instance caches MOST_PLANS of them.

    A restore may remove a plan, so an instance stores its plan again every STORED_FOR.
    """

    def __init__(self, client: "DynamoDBClient", *, control_table: str, clock: Clock) -> None:
        self._client = client
        self._table = control_table
        self._clock = clock
        self._known: dict[str, Plan] = {}
        self._stored_at: dict[str, int] = {}

    def put_plan(self, plan: Plan) -> None:
        """Store the plan under its hash, unless this instance did so less than STORED_FOR ago.

        Storing it again is harmless.
        """
        now, stored_at = self._clock(), self._stored_at.get(plan.hash)
        if stored_at is not None and now - stored_at < STORED_FOR:
            return
        with aws_errors(f"storing the plan {plan.hash}"):
            self._client.put_item(
                TableName=self._table,
                Item={ID: text(_plan_id(plan.hash)), "Text": text(plan.text)},
            )
        self._keep(plan)
        known = {one: at for one, at in self._stored_at.items() if now - at < STORED_FOR}
        self._stored_at = {**known, plan.hash: now}

    def plan(self, plan_hash: str) -> Plan | None:
        """The plan; None if it is not stored. Raises UnreadableRecord if its row was altered."""
        known = self._known.get(plan_hash)
        if known is not None:
            return known
        found = self._read(plan_hash, consistent=False) or self._read(plan_hash, consistent=True)
        if found is not None:
            self._keep(found)
        return found

    def _keep(self, plan: Plan) -> None:
        self._known[plan.hash] = plan
        if len(self._known) > MOST_PLANS:
            del self._known[next(iter(self._known))]

    def _read(self, plan_hash: str, *, consistent: bool) -> Plan | None:
        record = _plan_id(plan_hash)
        with aws_errors(f"reading the plan {plan_hash}"):
            found = self._client.get_item(
                TableName=self._table, Key={ID: text(record)}, ConsistentRead=consistent
            )
        if "Item" not in found:
            return None
        try:
            plan = read_plan(ItemReader(found["Item"], record).text("Text"))
        except ValueError as error:
            raise UnreadableRecord(record, "Text", f"is not a plan: {error}") from error
        if plan.hash != plan_hash:
            raise UnreadableRecord(record, "Text", "does not have the hash in the plan's id")
        return plan


def _plan_id(plan_hash: str) -> str:
    return f"plan#{plan_hash}"


class DynamoAgentBoard:
    """AgentBoard from the read marks and the holds. Its data is at most `keep_for` ms old.

    `depth_of` reads the depth of a queue that the scheduler reads, by the key of its mark. Without
    `urgent_queues`, urgent requests are in the normal queues, whose views are theirs.

    The holds are read eventually consistently, so they may be a second older.

    If either row cannot be read, nothing is decided and the message is redelivered. A hold means
    that an operator wants a service left alone, or that the circuit breaker found it down. If it
    is unknown whether there is a hold, the service must not be called. Both rows are in the same
    table as the plans, so nearly everything that this makes fail would fail anyway.

    An attribute that is not a valid mark or hold affects only its own queue or agent. Without a
    mark nothing is known of a queue; the next mark replaces the attribute.
    """

    def __init__(
        self,
        client: "DynamoDBClient",
        *,
        control_table: str,
        clock: Clock,
        keep_for: int = KEEP_MARKS_FOR,
        on_unreadable: OnUnreadable = ignore_unreadable,
        depth_of: Callable[[str], QueueDepth] | None = None,
        urgent_queues: bool = True,
    ) -> None:
        self._client = client
        self._table = control_table
        self._clock = clock
        self._keep_for = keep_for
        self._urgent_queues = urgent_queues
        self._on_unreadable = on_unreadable
        self._depth_of = depth_of
        self._notes = DynamoReadNotes(client, control_table=control_table, clock=clock)
        self._hold_store = DynamoHolds(
            client, control_table=control_table, clock=clock, on_unreadable=on_unreadable
        )
        self._read_at: int | None = None
        self._marks: dict[str, ReadMark] = {}
        self._holds: list[Hold] = []

    def agents(self) -> Agents:
        """The state of the agents' queues, by agent and priority (`payment/normal`).

        A queue that was never read is absent, unless its agent is on hold.
        """
        now = self._clock()
        self._refresh(now)
        views = {
            queue: view_of_mark(mark, now)
            for queue, mark in self._marks.items()
            if not is_of_scheduler(queue)
        }
        if not self._urgent_queues:
            views = in_normal_queues(views)
        return with_holds(views, self._holds, now)

    def order_holds(self) -> list[Hold]:
        """The stored holds on orders, of the same read as the views of `agents`."""
        self._refresh(self._clock())
        return on_orders(self._holds)

    def marks(self) -> Mapping[str, ReadMark]:
        """The read marks of the queues that the scheduler reads, by key."""
        self._refresh(self._clock())
        return {queue: mark for queue, mark in self._marks.items() if is_of_scheduler(queue)}

    def depth(self, key: str) -> QueueDepth | None:
        """The depth of a queue that the scheduler reads, from SQS; None without `depth_of`."""
        return None if self._depth_of is None else self._depth_of(key)

    def note_read(self, agent: str, priority: str, sent_at: int, lock: str | None = None) -> None:
        """Store a read mark. Raises CallRefused if the function may not write marks."""
        self._notes.note_read(agent, priority, sent_at, lock)

    def _refresh(self, now: int) -> None:
        if self._read_at is None or now - self._read_at >= self._keep_for:
            self._marks = self._read_marks()
            self._holds = self._hold_store.stored(latest=False)
            self._read_at = now

    def _read_marks(self) -> dict[str, ReadMark]:
        with aws_errors("reading the read marks of the queues"):
            found = self._client.get_item(
                TableName=self._table, Key={ID: text(MARKS)}, ConsistentRead=True
            )
        marks: dict[str, ReadMark] = {}
        for queue, value in found.get("Item", {}).items():
            if queue == ID:
                continue
            try:
                marks[queue] = _mark(queue, value)
            except UnreadableRecord as problem:
                self._on_unreadable(problem)
        return marks


MARK: "RecordTable[ReadMark]" = FieldTable(
    ReadMark,
    Field("ReadSentAt", "sent_at", NUMBER),
    Field("ReadAt", "read_at", NUMBER),
    Field("NewsFor", "lag_valid_for", NUMBER, LAG_VALID_FOR, always=True),
    Field("Lock", "lock", TEXT, None),
)
"""Marks that older code wrote have no `NewsFor` and no `Lock`."""


def _mark(queue: str, value: "Value") -> ReadMark:
    return MARK.read(ItemReader(value.get("M", {}), MARKS, f"{queue}."))


class DynamoReadNotes:
    """ReadNotes in the row `marks`: how far one instance of an agent has read its queues."""

    def __init__(self, client: "DynamoDBClient", *, control_table: str, clock: Clock) -> None:
        self._client = client
        self._table = control_table
        self._clock = clock
        self._notebooks: dict[str, ReadMarkWriter] = {}

    def note_read(self, agent: str, priority: str, sent_at: int, lock: str | None = None) -> None:
        """Note that a request sent at `sent_at` (epoch ms) was read now. Call it before acting.

        If a write fails temporarily, a later read writes the mark, and no request is delayed.
        Raises CallRefused if the agent may not write marks.
        """
        queue = queue_key(agent, priority)
        notebook = self._notebooks.setdefault(queue, ReadMarkWriter())
        mark = notebook.read(sent_at, self._clock(), lock)
        if mark is None:
            return
        try:
            self._write(queue, mark)
        except TryAgain:
            return
        notebook.written(mark)

    def _write(self, queue: str, mark: ReadMark) -> None:
        """Store the mark unless a newer one is stored; an invalid one is replaced."""
        try:
            with aws_errors(f"storing the read mark of {queue}"):
                self._client.update_item(
                    TableName=self._table,
                    Key={ID: text(MARKS)},
                    UpdateExpression="SET #queue = :mark",
                    ConditionExpression=f"{MARK_IS_NONE} OR {MARK_IS_OLDER}",
                    ExpressionAttributeNames={"#queue": queue},
                    ExpressionAttributeValues={
                        ":mark": {"M": MARK.written(mark)},
                        ":read": number(mark.read_at),
                        ":n": text("N"),
                    },
                )
        except ConditionFailed:
            return


LEASE: "RecordTable[Lease]" = FieldTable(
    Lease,
    Field("Owner", "owner", TEXT, None),
    Field("Until", "until", NUMBER, 0),
    Field("At", "visited_at", NUMBER, 0),
)


class DynamoLeases:
    """LeaseStore in one row of ControlTable."""

    def __init__(
        self,
        client: "DynamoDBClient",
        *,
        control_table: str,
        on_unreadable: OnUnreadable = ignore_unreadable,
    ) -> None:
        self._client = client
        self._table = control_table
        self._on_unreadable = on_unreadable

    def read(self) -> Leases:
        """The leases; empty, with version 0, if there is no row.

        A part that cannot be read counts as absent, and the next write removes it: leases only
        save work. If the number of shards (`Count`) cannot be read, it is derived from the highest
        shard that has a lease.
        """
        with aws_errors("reading the leases"):
            found = self._client.get_item(
                TableName=self._table, Key={ID: text(LEASES)}, ConsistentRead=True
            )
        if "Item" not in found:
            return Leases()
        reader = ItemReader(found["Item"], LEASES)
        by_shard: dict[int, Lease] = {}
        stored = found["Item"].get("Shards", {"M": {}})
        if "M" not in stored:
            self._on_unreadable(UnreadableRecord(LEASES, "Shards", "is not a map"))
        for shard, value in stored.get("M", {}).items():
            lease = self._lease(shard, value)
            if lease is not None:
                by_shard[int(shard)] = lease
        shards = self._number(reader, "Count", max(by_shard, default=-1) + 1)
        return Leases(self._number(reader, "Version", 0), shards, by_shard)

    def _number(self, reader: ItemReader, name: str, otherwise: int) -> int:
        try:
            return reader.number(name)
        except UnreadableRecord as problem:
            self._on_unreadable(problem)
            return otherwise

    def _lease(self, shard: str, value: "Value") -> Lease | None:
        field = f"Shards.{shard}"
        try:
            if not (shard.isascii() and shard.isdecimal()):
                raise UnreadableRecord(LEASES, field, "is not a shard number")
            if "M" not in value:
                raise UnreadableRecord(LEASES, field, "is not a map")
            return LEASE.read(ItemReader(value["M"], LEASES, f"{field}."))
        except UnreadableRecord as problem:
            self._on_unreadable(problem)
            return None

    def write(self, leases: Leases, *, seen: int) -> bool:
        """Store the leases if the stored version is `seen`; False if another write came first.

        False may also mean that this write succeeded and its answer was lost; the caller then
        finds its own leases when it reads them.
        """
        by_shard = leases.by_shard.items()
        shards: Item = {str(shard): {"M": LEASE.written(lease)} for shard, lease in by_shard}
        item: Item = {
            ID: text(LEASES),
            "Version": number(leases.version),
            "Count": number(leases.shards),
            "Shards": {"M": shards},
        }
        try:
            with aws_errors("writing the leases"):
                if seen == 0:
                    self._client.put_item(
                        TableName=self._table,
                        Item=item,
                        ConditionExpression=f"{NO_SUCH_ROW} OR {VERSION_IS_NONE}",
                        ExpressionAttributeValues={":n": text("N")},
                    )
                else:
                    self._client.put_item(
                        TableName=self._table,
                        Item=item,
                        ConditionExpression=VERSION_IS_AS_SEEN,
                        ExpressionAttributeValues={":seen": number(seen)},
                    )
        except ConditionFailed:
            return False
        return True
