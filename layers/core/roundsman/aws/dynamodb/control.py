"""What ControlTable keeps for the whole stack: plans, the agents' marks, supervisors' leases.

The holds on agents are in `roundsman.aws.dynamodb.holds`, their breakers and rates beside it.

A plan is a row of its own, `plan#<hash>`. All marks are in the one row `marks`, an attribute a
queue (`payment/normal`): a single read, of one unit, shows every queue at one instant, and a
reader need not know which agents there are. The writes to it are few: each instance of an agent
writes at most every five seconds, and the row takes a thousand a second.

All leases are in the one row `leases`, written as a whole on the version that was read. With 16
shards it is under 1 KB, one write unit; a pass writes it five times.
"""

from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.codec import Item, number, text
from roundsman.aws.dynamodb.holds import DynamoHolds
from roundsman.aws.dynamodb.item_reader import ItemReader, OnUnreadable, ignore_unreadable
from roundsman.aws.errors import ConditionFailed, aws_errors
from roundsman.errors import TryAgain, UnreadableRecord
from roundsman.model.events import Agents
from roundsman.model.holds import Hold, with_holds
from roundsman.model.instants import SECOND
from roundsman.model.leases import Lease, Leases
from roundsman.model.plan import Plan, read_plan
from roundsman.model.queue_lag import NEWS_FOR, ReadMark, ReadMarkWriter, queue_key, view
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
"""How old the marks may be that an instance decides by: as old as agents let them become."""


class DynamoPlans:
    """PlanStore over ControlTable. A plan never changes, so an instance keeps what it has seen."""

    def __init__(self, client: "DynamoDBClient", *, control_table: str) -> None:
        self._client = client
        self._table = control_table
        self._known: dict[str, Plan] = {}

    def put_plan(self, plan: Plan) -> None:
        """Store the plan under its hash, once an instance. Storing it again is harmless."""
        if plan.hash in self._known:
            return
        with aws_errors(f"storing the plan {plan.hash}"):
            self._client.put_item(
                TableName=self._table,
                Item={ID: text(_plan_id(plan.hash)), "Text": text(plan.text)},
            )
        self._known[plan.hash] = plan

    def plan(self, plan_hash: str) -> Plan | None:
        """The plan; None where it is not stored. Raises UnreadableRecord where it was altered."""
        known = self._known.get(plan_hash)
        if known is not None:
            return known
        found = self._read(plan_hash, consistent=False) or self._read(plan_hash, consistent=True)
        if found is not None:
            self._known[plan_hash] = found
        return found

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
            raise UnreadableRecord(record, "Text", "is not the text that has this hash")
        return plan


def _plan_id(plan_hash: str) -> str:
    return f"plan#{plan_hash}"


class DynamoAgentBoard:
    """AgentBoard over the marks and the holds. What it tells is at most `keep_for` ms old.

    Where either cannot be read, nothing is decided and the message comes again. A hold is a
    person's word that a service must be left alone, or a breaker's that it is down: not knowing
    is no reason to call it. Both rows are in the table that the plans are in, so this fails
    hardly anything that would not have failed already.

    One attribute that is no mark, or no hold, is its own queue's or agent's trouble: without its
    mark nothing is known of a queue, and the next one takes its place.
    """

    def __init__(
        self,
        client: "DynamoDBClient",
        *,
        control_table: str,
        clock: Clock,
        keep_for: int = KEEP_MARKS_FOR,
        on_unreadable: OnUnreadable = ignore_unreadable,
    ) -> None:
        self._client = client
        self._table = control_table
        self._clock = clock
        self._keep_for = keep_for
        self._on_unreadable = on_unreadable
        self._hold_store = DynamoHolds(
            client, control_table=control_table, clock=clock, on_unreadable=on_unreadable
        )
        self._read_at: int | None = None
        self._marks: dict[str, ReadMark] = {}
        self._holds: list[Hold] = []

    def agents(self) -> Agents:
        """By agent and priority (`payment/normal`).

        Of a queue that was never read there is nothing, unless its agent is held.
        """
        now = self._clock()
        if self._read_at is None or now - self._read_at >= self._keep_for:
            self._marks, self._holds = self._read_marks(), self._hold_store.stored()
            self._read_at = now
        views = {queue: view(mark, now) for queue, mark in self._marks.items()}
        return with_holds(views, self._holds, now)

    def _read_marks(self) -> dict[str, ReadMark]:
        with aws_errors("reading the agents' marks"):
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


def _mark(queue: str, value: "Value") -> ReadMark:
    reader = ItemReader(value.get("M", {}), MARKS, f"{queue}.")
    news_for = reader.optional_number("NewsFor")  # marks of older code have none
    sent_at, read_at = reader.number("ReadSentAt"), reader.number("ReadAt")
    lock = reader.optional_text("Lock")
    return ReadMark(sent_at, read_at, NEWS_FOR if news_for is None else news_for, lock)


class DynamoReadNotes:
    """ReadNotes over the marks: what an instance of an agent has read."""

    def __init__(self, client: "DynamoDBClient", *, control_table: str, clock: Clock) -> None:
        self._client = client
        self._table = control_table
        self._clock = clock
        self._notebooks: dict[str, ReadMarkWriter] = {}

    def note_read(self, agent: str, priority: str, sent_at: int, lock: str | None = None) -> None:
        """A request that was sent at `sent_at` (epoch ms) was read now. Call it before acting.

        What fails for now is written with a later read, and delays no request. Raises
        CallRefused where the agent may not write marks.
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
        """A mark replaces only an older one, or what is none. An overtaken one is not needed."""
        sent, read = number(mark.sent_at), number(mark.read_at)
        stored = {"ReadSentAt": sent, "ReadAt": read, "NewsFor": number(mark.news_for)}
        if mark.lock is not None:
            stored["Lock"] = text(mark.lock)
        try:
            with aws_errors(f"marking what was read of {queue}"):
                self._client.update_item(
                    TableName=self._table,
                    Key={ID: text(MARKS)},
                    UpdateExpression="SET #queue = :mark",
                    ConditionExpression=f"{MARK_IS_NONE} OR {MARK_IS_OLDER}",
                    ExpressionAttributeNames={"#queue": queue},
                    ExpressionAttributeValues={
                        ":mark": {"M": stored},
                        ":read": read,
                        ":n": text("N"),
                    },
                )
        except ConditionFailed:
            return


class DynamoLeases:
    """LeaseStore over one row."""

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
        """The leases; empty ones of version 0 where there is no row.

        What cannot be read counts as if it were not there, and is gone with the next write: a
        lease is for economy alone. Where it is the highest number of shards, the highest shard
        that has a lease says how many there were.
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
                raise UnreadableRecord(LEASES, field, "is not a shard's number")
            if "M" not in value:
                raise UnreadableRecord(LEASES, field, "is not a map")
            return _lease(ItemReader(value["M"], LEASES, f"{field}."))
        except UnreadableRecord as problem:
            self._on_unreadable(problem)
            return None

    def write(self, leases: Leases, *, seen: int) -> bool:
        """Store them on the version that was seen; False where another write came first.

        False may also mean this very write, its answer lost: whoever reads finds itself there.
        """
        shards = {str(shard): _lease_item(lease) for shard, lease in leases.by_shard.items()}
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


def _lease(reader: ItemReader) -> Lease:
    return Lease(
        owner=reader.optional_text("Owner"),
        until=reader.number("Until", 0),
        visited_at=reader.number("At", 0),
    )


def _lease_item(lease: Lease) -> "Value":
    item: Item = {}
    if lease.owner is not None:
        item |= {"Owner": text(lease.owner), "Until": number(lease.until)}
    if lease.visited_at:
        item["At"] = number(lease.visited_at)
    return {"M": item}
