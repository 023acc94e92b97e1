"""A tasks table with many orders in memory, whose index is read in pages as DynamoDB's is."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, cast

from roundsman.aws.dynamodb.codec import number, outcome_attribute, task_item, text
from roundsman.model.task import Task
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.task_records import Records
from roundsman_testing.dynamodb.expressions import Given, condition_of
from tests.console.shelves import NoPlans

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

LARGEST_PAGE = 8_000
"""The entries of the index in one page: some 130 bytes each, of 1 MB."""


@dataclass
class ManyOrders:
    """Stands in for DynamoDB: it answers queries of the index, and reads of tasks in batches."""

    tasks: dict[str, Task]
    lanes: dict[str, list[tuple[int, str]]] = field(init=False)
    requests: Counter[str] = field(default_factory=Counter)
    scanned: int = 0
    """The entries of the index that were looked at."""
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.lanes = {}
        for task in self.tasks.values():
            self.lanes.setdefault(task.lane, []).append((task.due_at, task.task_id))
        for lane in self.lanes.values():
            lane.sort()

    @classmethod
    def of(cls, tasks: Iterable[Task]) -> "ManyOrders":
        return cls({task.task_id: task for task in tasks})

    @classmethod
    def copies(cls, model: Task, count: int, shards: int) -> "ManyOrders":
        """So many copies of an order, each due 1 ms later; a record is made when it is read."""
        found, lane = cls(_Copies(model)), model.lane.partition("#")[0]
        for place in range(count):
            entries = found.lanes.setdefault(f"{lane}#{place % shards}", [])
            entries.append((model.due_at + place, f"ord-{place:06}"))
        return found

    def query(self, **asked: object) -> dict[str, object]:
        with self._lock:
            self.requests["Query"] += 1
        values = cast("Mapping[str, Value]", asked["ExpressionAttributeValues"])
        backwards = not asked.get("ScanIndexForward", True)
        found = self._between(values, cast("Mapping[str, Value]", asked.get("ExclusiveStartKey")))
        if backwards:
            found = found[::-1]
        most = min(cast("int", asked.get("Limit", LARGEST_PAGE)), LARGEST_PAGE)
        looked = found[:most]
        with self._lock:
            self.scanned += len(looked)
        items = [self._entry(task_id) for _, task_id in looked]
        if "FilterExpression" in asked:
            condition = condition_of(str(asked["FilterExpression"]))
            items = [item for item in items if condition.holds(item, Given(values=values))]
        page: dict[str, object] = {"Count": len(items), "ScannedCount": len(looked)}
        if asked.get("Select") != "COUNT":
            page["Items"] = items
        if len(found) > most:
            at, task_id = looked[-1]
            page["LastEvaluatedKey"] = {
                "TaskId": text(task_id),
                "Lane": values[":lane"],
                "DueAt": number(at),
                "Backwards": {"BOOL": backwards},
            }
        return page

    def scan(self, **_: object) -> dict[str, object]:
        """The first page of the table, which is never all of it."""
        with self._lock:
            self.requests["Scan"] += 1
        return {"Items": [], "LastEvaluatedKey": {"TaskId": text("t")}}

    def _between(
        self, values: "Mapping[str, Value]", start: "Mapping[str, Value] | None"
    ) -> list[tuple[int, str]]:
        lane = self.lanes.get(values[":lane"]["S"], [])
        first = bisect_left(lane, (int(values[":since"]["N"]), ""))
        last = bisect_right(lane, (int(values[":until"]["N"]), "\uffff"))
        if start is not None:
            place = (int(start["DueAt"]["N"]), start["TaskId"]["S"])
            if start["Backwards"]["BOOL"]:
                last = bisect_left(lane, place)
            else:
                first = bisect_right(lane, place)
        return lane[first:last]

    def _entry(self, task_id: str) -> "dict[str, Value]":
        task = self.tasks[task_id]
        priority = {} if task.priority == "normal" else {"Priority": text(task.priority)}
        return {
            "TaskId": text(task_id),
            "DueAt": number(task.due_at),
            "Workflow": text(task.workflow),
            "CreatedAt": number(task.created_at),
            **priority,
            **outcome_attribute(task),
        }

    def batch_get_item(self, **asked: object) -> dict[str, object]:
        self.requests["BatchGetItem"] += 1
        ((table, wanted),) = cast(
            "dict[str, dict[str, list[dict[str, Value]]]]", asked["RequestItems"]
        ).items()
        ids = [key["TaskId"]["S"] for key in wanted["Keys"]]
        assert len(ids) == len({*ids}) <= 100
        return {"Responses": {table: [task_item(self.tasks[one]) for one in ids]}}

    def records(self) -> Records:
        """What reads from here."""
        return Records(cast("DynamoDBClient", self), tasks_table="tasks")

    def stack(self, shards: int = 16) -> DeployedStack:
        """A stack that reads from here."""
        found = DeployedStack("roundsman", {}, {})
        # Where cached_property would keep the real ones.
        found.__dict__.update(records=self.records(), plans=NoPlans(), every_shard=range(shards))
        return found


class _Copies(dict[str, Task]):
    def __init__(self, model: Task) -> None:
        super().__init__()
        self._model = model

    def __missing__(self, task_id: str) -> Task:
        place = int(task_id.removeprefix("ord-"))
        return replace(self._model, task_id=task_id, due_at=self._model.due_at + place)
