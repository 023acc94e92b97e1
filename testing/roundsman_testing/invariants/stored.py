"""Checks of what the tables have beside the records of tasks.

That is the rows of settled steps and of inputs, the rows of orders, and what texts have in them.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.codec import SEARCH_ATTRIBUTES
from roundsman.definition.plan import Plan
from roundsman.engine.masks import named_values
from roundsman.model.corrections import path_text
from roundsman.model.instants import SECOND
from roundsman.model.json import Json, canonical_json, parse_json
from roundsman.model.masked_values import WHOLE_WORD_BELOW, leaves
from roundsman.model.search import search_keys
from roundsman.model.task import Task, step_of
from roundsman.wire.alert import Alert
from roundsman_testing.dynamodb.expressions import Item
from roundsman_testing.invariants.rules import Blame, Broken, Invariant
from roundsman_testing.memory import SEARCH_SECRET

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

REFUSED = "refused"
NULL = "null"
A_WORD_AT_MOST = 7
"""Texts of an order with so few characters, or only letters, may be in an alert by chance."""

AN_INSTANT = re.compile(r"(19|20)[0-9]{6}(t|$)")
"""A date or an instant without blanks and dashes: texts of the engine have such."""

NO_CONTENTS = re.compile(r"[A-Za-z]*|[0-9TZ:.+-]*")
"""Words, numbers and instants: an alert has such texts of its own."""


OF_A_TYPE = (
    "the type of an error, the name of an added step, and an id must not come from an order: give "
    "the error one type for all orders, and put the value into its message, where it is masked"
)
BY_THE_ENGINE = "it should have been masked when it entered: this is a mistake of Roundsman"
"""What to change, as the end of a sentence."""


class RowsOfTasks:
    """Follows the rows of settled steps, of inputs and of results, and checks ROWS.

    The caller reports each write of an item of the tasks table (`written`), and asks after each
    event for what does not agree (`disagree`).
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Value | None]] = {}
        self._listed: dict[str, tuple[Collection[str], Value | None]] = {}
        self._changed: set[str] = set()

    def of_row(self, old: Item | None, new: Item | None) -> None:
        """Note that a row is stored, changed or removed."""
        key = str((new or old or {})["TaskId"].get("S"))
        task_id, _, version = key.partition("#")
        self._changed.add(task_id)
        rows = self._rows.setdefault(task_id, {})
        if new is None:
            rows.pop(version, None)
        else:
            rows[version] = new.get("ExpiresAt")

    def of_record(self, old: Item | None, new: Item | None) -> None:
        """Note which rows the record of a task lists."""
        item = new or old or {}
        if not any({"Settled", "Inputs", "Results"} & one.keys() for one in (old, new) if one):
            return
        task_id = str(item["TaskId"].get("S"))
        self._changed.add(task_id)
        listed = () if new is None else new.get("Settled", {"L": []}).get("L", ())
        rows = [f"settled#{one.get('S')}" for one in listed]
        for name, kind in (("Inputs", "added"), ("Results", "result")):
            count = "0" if new is None else new.get(name, {}).get("N", "0")
            rows += [f"{kind}#{row}" for row in range(int(str(count)))]
        self._listed[task_id] = rows, None if new is None else new.get("ExpiresAt")

    def disagree(self) -> Iterator[Broken]:
        """Check the rows of each task that changed since the last call."""
        for task_id in self._changed:
            rows = self._rows.get(task_id, {})
            listed, expires_at = self._listed.get(task_id, ((), None))
            if sorted(rows) != sorted(listed):
                what = f"the record lists the rows {sorted(listed)}, and there are {sorted(rows)}"
                yield Broken(Invariant.ROWS, task_id, what)
            elif any(at != expires_at for at in rows.values()):
                what = "a row beside the record expires at another time"
                yield Broken(Invariant.ROWS, task_id, what)
        self._changed.clear()


class OrderRows:
    """Follows the expiry of order rows and checks ORDER_KEPT.

    `retention` is the time in ms for which orders are kept after their tasks; None: for ever. The
    caller reports each write of an order row (`written`) and of a record (`of_record`), and asks
    after each event for what does not agree (`disagree`).
    """

    def __init__(self, retention: int | None) -> None:
        self._retention = retention
        self._expires_at: dict[str, int | None] = {}
        self._changed: set[str] = set()

    def written(self, old: Item | None, new: Item | None) -> None:
        """Note the expiry of an order row."""
        order_id = str((new or old or {})["OrderID"].get("S"))
        self._changed.add(order_id)
        if new is None:
            self._expires_at.pop(order_id, None)
        else:
            seconds = new["ExpiresAt"].get("N") if "ExpiresAt" in new else None
            self._expires_at[order_id] = None if seconds is None else int(seconds) * SECOND

    def of_record(self, task_id: str) -> None:
        """Note that the record of a task is stored."""
        self._changed.add(task_id)

    def disagree(self, tasks: Mapping[str, Task]) -> Iterator[Broken]:
        """Check the order rows that are stored and changed, they or their tasks, since last time.

        `tasks` has the last record of each task.
        """
        for order_id in sorted(self._changed & self._expires_at.keys() & tasks.keys()):
            found, wanted = self._expires_at[order_id], self._wanted(tasks[order_id])
            # Both are stored in whole seconds.
            near = found is not None and wanted is not None and abs(found - wanted) < SECOND
            if found != wanted and not near:
                what = f"its order row expires at {found}, and not at {wanted}"
                yield Broken(Invariant.ORDER_KEPT, order_id, what)
        self._changed.clear()

    def _wanted(self, task: Task) -> int | None:
        """When the order row may be removed (epoch ms); None if it must stay."""
        if task.expires_at is None or self._retention is None:
            return None
        return task.expires_at + max(0, self._retention - task.retain_for)


class SearchKeys:
    """Follows the search keys of order rows and checks FOUND.

    The caller reports each write of an order row (`written`) and of a record (`of_record`), and
    asks after each event for what does not agree (`disagree`).
    """

    def __init__(self) -> None:
        self._stored: dict[str, Collection[str]] = {}
        self._plans: dict[str, str] = {}
        self._changed: set[str] = set()

    def written(self, old: Item | None, new: Item | None) -> None:
        """Note the search keys of an order row."""
        order_id = str((new or old or {})["OrderID"].get("S"))
        if new is None:
            self._stored.pop(order_id, None)
        else:
            self._stored[order_id] = [str(new[n].get("S")) for n in SEARCH_ATTRIBUTES if n in new]
            self._changed.add(order_id)

    def of_record(self, before: Task | None, task: Task) -> None:
        """Note the plan whose fields count: that of the submission, or of the last correction."""
        if before is None or len(task.corrections) > len(before.corrections):
            self._plans[task.task_id] = task.plan
            self._changed.add(task.task_id)

    def forget(self) -> None:
        """Forget which plans count, as after a restore to a time before a correction."""
        self._plans.clear()

    def disagree(
        self,
        tasks: Mapping[str, Task],
        content_of: Callable[[str], Json],
        plan_of: Callable[[str], Plan | None],
    ) -> Iterator[Broken]:
        """Check the orders of which the row or the input has changed since the last call."""
        for order_id in sorted(self._changed & self._stored.keys() & self._plans.keys()):
            plan, content = plan_of(self._plans[order_id]), content_of(order_id)
            wanted: Collection[str] = ()
            if plan is not None and content is not None:
                given = tasks[order_id].input(content)
                wanted = search_keys(plan.search, plan.masked, given, lambda: SEARCH_SECRET)
            found = self._stored[order_id]
            if sorted(found) != sorted(wanted):
                what = f"it is found by {sorted(found)}, and not by {sorted(wanted)}"
                yield Broken(Invariant.FOUND, order_id, what)
        self._changed.clear()


class Contents:
    """Follows the contents of orders and checks DISCREET.

    The caller reports each write of an order row (`written`), each error that an agent replied
    (`replied`), each alert (`of_alert`), each record (`of_record`) and each row of the history
    (`of_history`), and asks after each event for what is told (`told`).
    """

    def __init__(self) -> None:
        self._stored: dict[str, str] = {}
        self._messages: set[str] = set()
        self._said: list[_Said] = []

    def written(self, old: Item | None, new: Item | None) -> None:
        """Note the content of an order row."""
        order_id = str((new or old or {})["OrderID"].get("S"))
        if new is None:
            self._stored.pop(order_id, None)
        else:
            self._stored[order_id] = str(new.get("Content", {}).get("S", NULL))

    def of(self, order_id: str) -> Json:
        """The content of a stored order row; None if there is none or it was erased."""
        return parse_json(self._stored.get(order_id, NULL))

    def replied(self, message: str) -> None:
        """Note the message of an error: its author is responsible for what is in it."""
        self._messages.add(message)

    def of_record(self, before: Task | None, task: Task) -> None:
        """Note the texts that this record has and the one before it had not."""
        for name, record in task.steps.items():
            error = record.error
            if error is not None and (before is None or before.step(name).error != error):
                self._say(task.task_id, f"the type of an error of {name}", error.type, OF_A_TYPE)
                self._say(task.task_id, f"the message of an error of {name}", error.message)
        if task.ending is not None and (before is None or before.ending != task.ending):
            self._say(task.task_id, "the reason of its end", task.ending.why)
        if task.ended_early is not None and (before is None or before.ended_early is None):
            self._say(task.task_id, "the reason of its early end", task.ended_early)
        for owed in task.owed:
            self._say(task.task_id, f"the detail of {owed.name}", owed.detail)

    def of_history(self, old: Item | None, new: Item | None) -> None:
        """Note the reason of a new row."""
        if old is None and new is not None:
            step = new.get("Step", {}).get("S")
            kind = str(new["Kind"].get("S"))
            where = f"the history row {kind!r}" + (f" of {step}" if step else "")
            self._say(str(new["TaskId"].get("S")), where, str(new.get("Reason", {}).get("S", "")))

    def _say(self, task_id: str, where: str, text: str, change: str = BY_THE_ENGINE) -> None:
        if text:
            self._said.append(_Said(task_id, where, text, change))

    def told(
        self, tasks: Mapping[str, Task], plan_of: Callable[[str], Plan | None]
    ) -> Iterator[Broken]:
        """Check that the texts that were noted since the last call have no masked value."""
        said, self._said = self._said, []
        for one in said:
            task = tasks.get(one.task_id)
            plan = None if task is None else plan_of(task.plan)
            if task is not None and plan is not None:
                yield from self._of_masked(one, task, plan)

    def of_alert(
        self, alert: Alert, tasks: Iterable[Task], plan_of: Callable[[str], Plan | None]
    ) -> Iterator[Broken]:
        """Check that an alert about these tasks has no text of their orders and results.

        Only the texts that cannot be in it for another reason: not the names in the plans and of
        the tasks' steps, nor what an error or a person says. A masked value may not be in it for
        any reason.
        """
        shown = f"{alert.subject}\n{alert.body}\n{alert.text}\n{alert.sms}"
        where = f"the alert {alert.subject!r}"
        for task in tasks:
            plan = plan_of(task.plan)
            if plan is None:
                continue
            yield from self._of_masked(_Said(task.task_id, where, shown, OF_A_TYPE), task, plan)
            found = [
                (place, text)
                for place, text in self._texts(task)
                if text in shown and _is_of_its_own(text)
            ]
            allowed = (task.task_id, _names(plan, task), *self._messages) if found else ()
            for place, text in found:
                if all(step_of(text) not in one for one in allowed):
                    what = f"{where} has the text of {place}; {OF_A_TYPE}"
                    yield Broken(Invariant.DISCREET, task.task_id, what, Blame.APPLICATION)
                    break

    def _texts(self, task: Task) -> Iterator[tuple[str, str]]:
        """Yield each text of the order and of its results, with what it is."""
        found = list(leaves(self.of(task.task_id)))
        for place, text in ((path_text(path), value) for path, value in found):
            if isinstance(text, str):
                yield f"the order's field {place}", text
        for name, record in task.steps.items():
            for _, value in leaves(record.result):
                if isinstance(value, str):
                    yield f"the result of {name}", value

    def _of_masked(self, said: "_Said", task: Task, plan: Plan) -> Iterator[Broken]:
        """Check that the text has no masked value that is in it for no other reason."""
        values = named_values(plan, task, self.of(task.task_id)) if plan.masks else None
        text, names = _squeezed(said.text), ""
        for place, value in values or ():
            looked_for = _squeezed(value if isinstance(value, str) else canonical_json(value))
            if not _is_secret(looked_for) or looked_for not in text:
                continue
            names = names or _squeezed(f"{task.task_id} {_names(plan)}")
            if looked_for not in names:
                what = f"{said.where} has the masked value of {place}; {said.change}"
                by_engine = said.change == BY_THE_ENGINE
                blame = Blame.ENGINE if by_engine else Blame.APPLICATION
                yield Broken(Invariant.DISCREET, task.task_id, what, blame)
                return


@dataclass(frozen=True, slots=True)
class _Said:
    """A text that people see."""

    task_id: str
    where: str
    """Which text it is."""
    text: str
    change: str
    """What to change if it has a masked value."""


def _is_of_its_own(text: str) -> bool:
    """Whether the text is in an alert only because it is in the order."""
    return len(text) > A_WORD_AT_MOST and not NO_CONTENTS.fullmatch(text)


def _is_secret(squeezed: str) -> bool:
    """Whether a masked value is in a text only because somebody put it there: no short one, no
    word and no instant."""
    long = len(squeezed) >= WHOLE_WORD_BELOW
    return long and not squeezed.isalpha() and not AN_INSTANT.match(squeezed)


def _squeezed(text: str) -> str:
    return re.sub(r"[\s-]", "", text).lower()


def _names(plan: Plan, task: Task | None = None) -> str:
    agents = (name for step in plan.steps.values() for name in step.agents)
    of_task = () if task is None else (*task.steps, *task.added)
    return " ".join((plan.workflow, *plan.steps, *plan.kinds, *agents, *of_task))
