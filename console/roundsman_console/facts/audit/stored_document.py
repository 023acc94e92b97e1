"""What is stored of orders as JSON lines, so that they can be judged elsewhere, and later.

A line is `{"plan": TEXT}` or `{"order": ...}`. A plan comes before the first order of it. Records
and rows are as DynamoDB has them, without contents; bytes are base64.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from roundsman.aws.dynamodb.codec import (
    history_item,
    plain_task_item,
    read_history,
    read_task,
)
from roundsman.definition.plan import Plan, read_plan
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.task import SettledRow
from roundsman_console.base.errors import InspectorError
from roundsman_console.facts.audit.stored_order import StandingEffect, StoredOrder, StoredRow


class LineWriter:
    """Makes the lines of orders, and writes each plan once."""

    def __init__(self) -> None:
        self._plans: set[str] = set()

    def lines(self, order: StoredOrder) -> Iterator[str]:
        """Yield the lines of an order, each with a line break."""
        plan = order.plan
        if plan is not None and plan.hash not in self._plans:
            self._plans.add(plan.hash)
            yield _line({"plan": plan.text})
        yield _line({"order": _order(order)})


def read_lines(lines: Iterable[str]) -> Iterator[StoredOrder]:
    """Yield the orders of lines that LineWriter made. Raises InspectorError for any other line."""
    plans: dict[str, Plan] = {}
    for number, line in enumerate(lines, start=1):
        try:
            found = json.loads(line)
            if "plan" in found:
                plan = read_plan(found["plan"])
                plans[plan.hash] = plan
            else:
                yield _read(found["order"], plans.get)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InspectorError(f"Line {number} is not of a file that an audit wrote.") from error
        except (SchemaTooNew, UnreadableRecord) as error:
            raise InspectorError(f"Line {number} cannot be read: {error}.") from error


def _line(document: Mapping[str, object]) -> str:
    return json.dumps(document, separators=(",", ":"), default=_bytes) + "\n"


def _bytes(value: object) -> str:
    if not isinstance(value, bytes):
        raise TypeError(f"{type(value).__name__} has no equivalent in JSON")
    return b64encode(value).decode()


def _order(order: StoredOrder) -> dict[str, object]:
    task, row = order.task, order.row
    return {
        "task": plain_task_item(replace(task, settled=())),
        "settled": [[one.version, one.size, one.expires_at] for one in task.settled],
        "at": order.at,
        "row": None if row is None else [row.created_at, row.expires_at, row.has_content],
        "rowRead": order.row_read,
        "history": None
        if order.history is None
        else [history_item(task.task_id, one) for one in order.history],
        "effects": None
        if order.effects is None
        else [[one.step, one.key, one.times] for one in order.effects],
        "troubled": order.troubled,
        "slack": order.slack,
        "begunAnew": dict(order.begun_anew),
    }


# Any: JSON that was not checked yet. A wrong type is a TypeError or a KeyError of this line.
def _read(found: Mapping[str, Any], plan_of: Callable[[str], Plan | None]) -> StoredOrder:
    task = read_task(_with_bytes(found["task"]))
    settled = tuple(SettledRow(version, size, {}, at) for version, size, at in found["settled"])
    row, history, effects = found["row"], found["history"], found["effects"]
    return StoredOrder(
        task=replace(task, settled=settled),
        at=int(found["at"]),
        plan=plan_of(task.plan),
        row=None if row is None else StoredRow(*row),
        row_read=bool(found["rowRead"]),
        history=None if history is None else [read_history(_with_bytes(one)) for one in history],
        effects=None if effects is None else [StandingEffect(*one) for one in effects],
        troubled=bool(found["troubled"]),
        slack=int(found["slack"]),
        begun_anew=dict(found["begunAnew"]),
    )


def _with_bytes(value: object) -> Any:  # noqa: ANN401  # an item of DynamoDB, which its reader checks
    if isinstance(value, list):
        return [_with_bytes(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"B"} and isinstance(value["B"], str):
        return {"B": b64decode(value["B"])}
    return {name: _with_bytes(one) for name, one in cast("dict[str, object]", value).items()}
