"""The holds: the row `holds` of ControlTable, with one attribute per target and kind.

The name of the attribute of a hold on an agent is `payment/operator` or `payment/breaker`, so the
two kinds of hold on one agent never overwrite each other. That of a hold on orders is
`workflow:order_fulfilment/operator`, and `workflow:*/operator` for those of all workflows. Code of
before holds on orders takes `workflow:*` for the name of an agent. There is no agent of such a
name, so that code holds no order.

One read, of one unit, returns all holds, and the scheduler need not know which agents exist. A hold
that has ended is not removed: it tells the supervisors that they have to wake what it has parked
(`roundsman.supervisor.wakes`). Others ignore it, and the next hold of its kind replaces it.

A hold that cannot be read holds its own target, and no other, until it is replaced or released.
Such an attribute holds nothing if its name does not consist of a target and one of the two kinds.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.codec import FLAG, NUMBER, TEXT, TEXTS, RecordTable, number, text
from roundsman.aws.dynamodb.item_reader import ItemReader, OnUnreadable, ignore_unreadable
from roundsman.aws.errors import ConditionFailed, aws_errors
from roundsman.errors import UnreadableRecord
from roundsman.model.field_table import Field, FieldTable
from roundsman.model.holds import BREAKER, ENDED, OPERATOR, Hold, in_force, unreadable_hold
from roundsman.ports import Clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

ID = "ControlId"
HOLDS = "holds"
CAN_BE_READ = (
    "attribute_type(#hold.#since, :n) AND attribute_type(#hold.#until, :n)"
    " AND attribute_type(#hold.#reason, :s) AND attribute_type(#hold.#by, :s)"
)
NONE_LASTS_LONGER = f"NOT ({CAN_BE_READ}) OR #hold.#until <= :until"
FIELDS = {"#since": "Since", "#until": "Until", "#reason": "Reason", "#by": "By"}
IS_THERE = "attribute_exists(#hold)"
IS_AS_READ_OR_CHANGED = "#hold = :before OR #hold = :after"
RELEASED = "it was released"
OF_WORKFLOW = "workflow:"
"""What the name of a hold on orders begins with. The name of an agent has no colon."""


class DynamoHolds:
    """HoldStore in one row of ControlTable."""

    def __init__(
        self,
        client: "DynamoDBClient",
        *,
        control_table: str,
        clock: Clock,
        on_unreadable: OnUnreadable = ignore_unreadable,
    ) -> None:
        self._client = client
        self._table = control_table
        self._clock = clock
        self._on_unreadable = on_unreadable

    def holds(self) -> list[Hold]:
        """The holds in force now: those on orders first, then by agent and kind."""
        return in_force(self.stored(), self._clock())

    def stored(self, *, latest: bool = True) -> list[Hold]:
        """All stored holds, including those that have ended.

        The read is strongly consistent if `latest`, else eventually consistent, at half the price:
        for callers that keep the holds for seconds.
        """
        with aws_errors("reading the holds"):
            found = self._client.get_item(
                TableName=self._table, Key={ID: text(HOLDS)}, ConsistentRead=latest
            )
        item = found.get("Item", {})
        read = (self._read(name, value) for name, value in item.items() if name != ID)
        return [hold for hold in read if hold is not None]

    def hold(self, hold: Hold) -> bool:
        """Store the hold in place of the earlier one of that kind on the same target.

        Returns True if no hold of that kind was in force before. Several instances see a circuit
        open, and may write late: so a breaker's hold never replaces a longer one. It is then not
        stored, and this returns False. An operator's hold always replaces the earlier one, because
        it may shorten it. If the answer was lost and the client repeats the write, the repeat finds
        this hold stored, which does not count as an earlier hold.
        """
        name = _name(hold)
        key, update = {ID: text(HOLDS)}, "SET #hold = :hold"
        names, values = {"#hold": name}, {":hold": _value(hold)}
        try:
            with aws_errors(f"holding {_words(hold.agent, hold.workflow)}"):
                if hold.kind != BREAKER:
                    found = self._client.update_item(
                        TableName=self._table,
                        Key=key,
                        UpdateExpression=update,
                        ExpressionAttributeNames=names,
                        ExpressionAttributeValues=values,
                        ReturnValues="UPDATED_OLD",
                    )
                else:
                    found = self._client.update_item(
                        TableName=self._table,
                        Key=key,
                        UpdateExpression=update,
                        ConditionExpression=NONE_LASTS_LONGER,
                        ExpressionAttributeNames={**names, **FIELDS},
                        ExpressionAttributeValues={
                            **values,
                            ":until": number(hold.until),
                            ":n": text("N"),
                            ":s": text("S"),
                        },
                        ReturnValues="UPDATED_OLD",
                    )
        except ConditionFailed:
            return False
        return not self._was_in_force(found.get("Attributes", {}), name, unless=hold)

    def release(self, agent: str, kind: str) -> bool:
        """End the agent's hold of that kind now. Returns True if one was in force.

        False may also mean that this call ended it and the answer was lost. No hold of that kind
        is in force in either case.
        """
        name = f"{agent}/{kind}"
        ended = Hold(agent, kind, self._clock(), ENDED, RELEASED, "")
        try:
            with aws_errors(f"releasing the agent {agent}"):
                found = self._client.update_item(
                    TableName=self._table,
                    Key={ID: text(HOLDS)},
                    UpdateExpression="SET #hold = :ended",
                    ConditionExpression=IS_THERE,
                    ExpressionAttributeNames={"#hold": name},
                    ExpressionAttributeValues={":ended": _value(ended)},
                    ReturnValues="UPDATED_OLD",
                )
        except ConditionFailed:
            return False
        return self._was_in_force(found.get("Attributes", {}), name)

    def change(self, before: Hold, after: Hold) -> bool:
        """Store `after` in place of `before`; the two have one target and one kind.

        Returns False, and stores nothing, if what is stored is neither: another operator has
        changed it.
        """
        try:
            with aws_errors(f"changing the hold on {_words(after.agent, after.workflow)}"):
                self._client.update_item(
                    TableName=self._table,
                    Key={ID: text(HOLDS)},
                    UpdateExpression="SET #hold = :after",
                    ConditionExpression=IS_AS_READ_OR_CHANGED,
                    ExpressionAttributeNames={"#hold": _name(before)},
                    ExpressionAttributeValues={":before": _value(before), ":after": _value(after)},
                )
        except ConditionFailed:
            return False
        return True

    def _was_in_force(
        self, replaced: "Mapping[str, Value]", name: str, *, unless: Hold | None = None
    ) -> bool:
        """Whether a write replaced a hold in force other than `unless`.

        A hold that cannot be read is in force.
        """
        read = [self._read(name, value) for value in replaced.values()]
        earlier = [hold for hold in read if hold is not None]
        return any(hold != unless for hold in in_force(earlier, self._clock()))

    def _read(self, name: str, value: "Value") -> Hold | None:
        target, _, kind = name.partition("/")
        of_orders = target.startswith(OF_WORKFLOW)
        agent = "" if of_orders else target
        workflow = target.removeprefix(OF_WORKFLOW) if of_orders else ""
        if not (agent or workflow) or (kind != OPERATOR and (of_orders or kind != BREAKER)):
            # A hold under this name could be neither replaced nor released.
            self._on_unreadable(UnreadableRecord(HOLDS, name, "is not a target and a kind"))
            return None
        try:
            reader = ItemReader(value.get("M", {}), HOLDS, f"{name}.")
            return HOLD.make(agent=agent, kind=kind, workflow=workflow, **HOLD.values(reader))
        except UnreadableRecord as problem:
            self._on_unreadable(problem)
            why = f"{problem.field} {problem.problem}"
            return unreadable_hold(agent, kind, why, self._clock(), workflow=workflow)


def _words(agent: str, workflow: str) -> str:
    """The target of a hold, in the words of an error."""
    return f"the agent {agent}" if agent else f"the orders of {workflow}"


def _name(hold: Hold) -> str:
    return f"{hold.agent or OF_WORKFLOW + hold.workflow}/{hold.kind}"


HOLD: "RecordTable[Hold]" = FieldTable(
    Hold,
    Field("Since", "since", NUMBER),
    Field("Until", "until", NUMBER),
    Field("Reason", "reason", TEXT),
    Field("By", "by", TEXT),
    Field("Undos", "undos", FLAG, default=False),
    Field("Released", "released", NUMBER, 0),
    Field("Passes", "passes", TEXTS, ()),
)
"""The target and the kind are in the attribute's name. Only holds on orders have `Undos` and
`Released`."""


def _value(hold: Hold) -> "Value":
    return {"M": HOLD.written(hold)}
