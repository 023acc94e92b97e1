"""`roundsman audit` on the deployed stack: it finds a planted fault, and none in sound orders."""

import json
from typing import cast

import pytest

from roundsman.model.instants import iso
from roundsman_console.base.clock import now
from tests.console.schemas import assert_schema
from tests.emulator.conftest import DeployedStack
from tests.emulator.helpers import PATIENCE, is_in, types
from tests.moto.orders import order

pytestmark = pytest.mark.stack


def audited(stack: DeployedStack, since: str) -> tuple[int, dict[str, object]]:
    """The exit code of an audit of the orders since then, and what it says."""
    result = types(stack, "audit", "--since", since, "--yes")
    document = json.loads(result.stdout)
    assert_schema("audit", document)
    return result.exit_code, document


def test_an_audit_finds_the_order_row_that_somebody_removed(stack: DeployedStack) -> None:
    since = iso(now())
    stack.submit(order("audited"))
    stack.submit({**order("audited-undone"), "paymentToken": "tok_declined"})
    stack.wait_for("its end", is_in(stack, "Completed", "audited"), PATIENCE)
    stack.wait_for("its undo", is_in(stack, "Undone", "audited-undone"), PATIENCE)
    code, sound = audited(stack, since)
    assert (code, sound["broken"], sound["unread"]) == (0, 0, 0)
    assert cast("int", sound["orders"]) >= 2

    table = stack.output("OrdersTableName")
    row = stack.dynamodb.delete_item(
        TableName=table, Key={"OrderID": {"S": "audited"}}, ReturnValues="ALL_OLD"
    )["Attributes"]
    try:
        code, planted = audited(stack, since)
    finally:
        stack.dynamodb.put_item(TableName=table, Item=row)
    assert (code, planted["broken"]) == (1, 1)
    [violation] = cast("list[dict[str, object]]", planted["violations"])
    assert (violation["promise"], violation["order"]) == ("ORDER_KEPT", "audited")
