"""The holds on agents: the row `holds` of ControlTable, with one attribute per agent and kind.

The attribute's name is `payment/operator` or `payment/breaker`, so the two kinds of hold on one
agent never overwrite each other. One read, of one unit, returns all holds, and the scheduler need
not know which agents exist. A hold that has ended is not removed: readers ignore it, and the next
hold of its kind replaces it.

A hold that cannot be read holds its own agent, and no other, until it is replaced or released.
Such an attribute holds no agent if its name does not consist of an agent and one of the two kinds.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.codec import NUMBER, TEXT, RecordTable, number, text
from roundsman.aws.dynamodb.item_reader import ItemReader, OnUnreadable, ignore_unreadable
from roundsman.aws.errors import ConditionFailed, aws_errors
from roundsman.errors import UnreadableRecord
from roundsman.model.field_table import Field, FieldTable
from roundsman.model.holds import BREAKER, OPERATOR, Hold, in_force, unreadable_hold
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
        """The holds in force now, sorted by agent and kind."""
        return in_force(self.stored(), self._clock())

    def stored(self, *, latest: bool = True) -> list[Hold]:
        """All stored holds, including those that have ended.

        The read is strongly consistent if `latest`, else eventually consistent, at half the price:
        for callers that keep the holds for seconds.
        """
        with aws_errors("reading the holds on agents"):
            found = self._client.get_item(
                TableName=self._table, Key={ID: text(HOLDS)}, ConsistentRead=latest
            )
        item = found.get("Item", {})
        read = (self._read(name, value) for name, value in item.items() if name != ID)
        return [hold for hold in read if hold is not None]

    def hold(self, hold: Hold) -> bool:
        """Store the hold in place of the agent's earlier one of that kind.

        Returns True if no hold of that kind was in force before. Several instances see a circuit
        open, and may write late: so a breaker's hold never replaces a longer one. It is then not
        stored, and this returns False. An operator's hold always replaces the earlier one, because
        it may shorten it. If the answer was lost and the client repeats the write, the repeat finds
        this hold stored, which does not count as an earlier hold.
        """
        name = _name(hold.agent, hold.kind)
        key, update = {ID: text(HOLDS)}, "SET #hold = :hold"
        names, values = {"#hold": name}, {":hold": _value(hold)}
        try:
            with aws_errors(f"holding the agent {hold.agent}"):
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
        is left in either case.
        """
        name = _name(agent, kind)
        try:
            with aws_errors(f"releasing the agent {agent}"):
                found = self._client.update_item(
                    TableName=self._table,
                    Key={ID: text(HOLDS)},
                    UpdateExpression="REMOVE #hold",
                    ConditionExpression=IS_THERE,
                    ExpressionAttributeNames={"#hold": name},
                    ReturnValues="UPDATED_OLD",
                )
        except ConditionFailed:
            return False
        return self._was_in_force(found.get("Attributes", {}), name)

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
        agent, _, kind = name.partition("/")
        try:
            return _hold(agent, kind, value)
        except UnreadableRecord as problem:
            self._on_unreadable(problem)
            if not agent or kind not in (OPERATOR, BREAKER):
                return None  # a hold under this name could be neither replaced nor released
            return unreadable_hold(agent, kind, f"{problem.field} {problem.problem}", self._clock())


def _name(agent: str, kind: str) -> str:
    return f"{agent}/{kind}"


HOLD: "RecordTable[Hold]" = FieldTable(
    Hold,
    Field("Since", "since", NUMBER),
    Field("Until", "until", NUMBER),
    Field("Reason", "reason", TEXT),
    Field("By", "by", TEXT),
)
"""The agent and the kind are in the attribute's name."""


def _value(hold: Hold) -> "Value":
    return {"M": HOLD.written(hold)}


def _hold(agent: str, kind: str, value: "Value") -> Hold:
    reader = ItemReader(value.get("M", {}), HOLDS, f"{agent}/{kind}.")
    return HOLD.make(agent=agent, kind=kind, **HOLD.values(reader))
