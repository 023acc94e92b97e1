"""`--where` finds orders by a field that their workflow names, on a stack that has its indexes."""

from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from roundsman_console.aws.stack import DeployedStack, find_stack
from roundsman_console.faces.web.form_registry import GOES_TO
from roundsman_console.faces.web.pages.find import read as find_page
from roundsman_console.faces.web.pages.orders import Listed, ListedOrder, read
from roundsman_console.facts.orders import search_fields
from roundsman_console.facts.orders.listing import MOST_REMOVED, removed_words
from roundsman_console.inspector import Inspector
from tests.console.operators import DECLINED, Operator, document
from tests.console.searched import SEARCHED
from tests.moto.orders import order
from workflows.order_fulfilment import order_fulfilment
from workflows.registry import WORKFLOWS


@pytest.fixture(autouse=True)
def workflow_with_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORKFLOWS, SEARCHED.name, SEARCHED)


@pytest.fixture
def stack_parameters() -> Mapping[str, str]:
    return {"Engine.SearchFields": "2"}


@pytest.fixture
def shop(operator: Operator) -> Operator:
    """Three orders of two customers: one waits, one is undone, one is completed and removed."""
    operator.world.submit(
        {**order("waits", processIn=3_600), "customerId": "c-1"},
        {**order("declined"), **DECLINED, "customerId": "c-1"},
        {**order("done", retention=0), "customerId": "c-2"},
    )
    operator.world.run()
    return operator


def found(operator: Operator, *arguments: str) -> list[str]:
    tasks = document(operator.types("ls", *arguments, "--json"))["tasks"]
    assert isinstance(tasks, list)
    return [task["orderId"] for task in tasks]


def test_orders_are_found_by_a_field_and_by_what_else_is_asked(shop: Operator) -> None:
    assert set(found(shop, "--where", "customerId=c-1")) == {"waits", "declined"}
    assert found(shop, "--where", "input.customerId=c-1", "--state", "Undone") == ["declined"]
    assert found(shop, "--where", "customerId=c-1", "--older", "1h") == []
    assert found(shop, "--where", "customerId=c-9") == []
    assert found(shop, "--where", "customerId=c-1", "--state", "Completed") == []


def test_a_masked_field_is_found_by_its_value_which_no_table_has(shop: Operator) -> None:
    assert found(shop, "--where", f"paymentToken={DECLINED['paymentToken']}") == ["declined"]
    client = shop.world.store._client
    rows = client.scan(TableName=shop.world.stack.outputs["OrdersTableName"])["Items"]
    keys = [value["S"] for row in rows for name, value in row.items() if name.startswith("Search")]
    assert len(keys) == 9
    assert not [key for key in keys if "tok_" in key]


def test_a_completed_order_is_named_though_its_task_was_removed(shop: Operator) -> None:
    shown = shop.types("ls", "--where", "customerId=c-2")
    assert shown.exit_code == 0
    assert "Found without a task, which was removed at its end: done" in shown.stdout
    assert "No tasks" not in shown.stdout
    read = document(shop.types("ls", "--where", "customerId=c-2", "--json"))
    assert (read["tasks"], read["removed"]) == ([], ["done"])
    filtered = document(
        shop.types("ls", "--where", "customerId=c-2", "--state", "Archived", "--json")
    )
    assert filtered["removed"] == [], "it is not known whether it matched"


def test_pages_go_on_and_their_cursor_is_of_one_value(shop: Operator) -> None:
    first = document(shop.types("ls", "--where", "customerId=c-1", "--limit", "1", "--json"))
    assert first["more"] is True
    cursor = str(first["cursor"])
    [one] = found(shop, "--where", "customerId=c-1", "--limit", "1")
    [other] = found(shop, "--where", "customerId=c-1", "--limit", "1", "--after", cursor)
    assert {one, other} == {"waits", "declined"}
    [newest] = found(shop, "--where", "customerId=c-1", "--limit", "1", "--newest-first")
    assert newest in (one, other)
    refused = shop.types("ls", "--where", "customerId=c-2", "--after", cursor)
    assert refused.exit_code == 2


NOT_FOUND_BY = "Orders are not found by the field {}: they are found by customerId, paymentToken."


@pytest.mark.parametrize("field", ["shippingAddress.city", "colour"])
@pytest.mark.parametrize("more", [(), ("--json",), ("--state", "Undone")])
def test_a_field_without_an_index_is_refused_with_the_fields_that_have_one(
    shop: Operator, field: str, more: tuple[str, ...]
) -> None:
    """The stack has two indexes, and the workflow names three fields."""
    refused = shop.types("ls", "--where", f"{field}=Ghent", *more)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert NOT_FOUND_BY.format(field) in " ".join(refused.output.split())


def test_the_page_says_beside_the_field_that_no_order_is_found_by_it(shop: Operator) -> None:
    page = page_of("colour=red")
    assert page["wrong"] == {"where": NOT_FOUND_BY.format("colour")}
    assert cast("Mapping[str, str]", page["asked"])["where"] == "colour=red"
    assert "rows" not in page


def test_without_an_order_the_fields_are_those_of_the_application(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = operator.types("ls", "--where", "colour=red")
    assert refused.exit_code == 2
    assert NOT_FOUND_BY.format("colour") in " ".join(refused.output.split())
    monkeypatch.setattr(search_fields, "application_workflows", lambda: None)
    assert "No tasks." in operator.types("ls", "--where", "colour=red").stdout, "nothing is known"


def test_a_stack_without_an_index_or_a_workflow_without_a_field_is_said(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WORKFLOWS, SEARCHED.name, order_fulfilment)
    refused = operator.types("ls", "--where", "colour=red")
    assert refused.exit_code == 2
    assert "by the field colour: no workflow names a field." in " ".join(refused.output.split())
    monkeypatch.setattr(DeployedStack, "search_indexes", 0)
    refused = operator.types("ls", "--where", "customerId=c-1")
    assert refused.exit_code == 2
    assert "The stack roundsman has no index of fields." in " ".join(refused.output.split())


@pytest.mark.parametrize(
    "text", ["customerId", "=c-1", "customerId=", "input.=x", "x" * 201 + "=1"]
)
def test_a_filter_without_field_or_value_is_refused(shop: Operator, text: str) -> None:
    refused = shop.types("ls", "--where", text)
    assert refused.exit_code == 2
    words = " ".join(refused.output.split())
    assert "A search by a field requires the field and its whole value: customerId=c-42." in words


def test_a_command_for_many_orders_takes_no_value_of_a_field(shop: Operator) -> None:
    """So that no run keeps one that may be masked."""
    refused = shop.types("resubmit", "--state", "Archived", "--where", "customerId=c-1")
    assert refused.exit_code == 2
    assert "No such option: --where" in refused.output


def page_of(text: str) -> Mapping[str, object]:
    """What the page of orders has to show for the text in its field."""
    return read(Inspector(find_stack(None)), {"where": text})


def test_the_page_of_orders_has_the_field_and_shows_what_is_found(shop: Operator) -> None:
    page = page_of("customerId=c-1")
    rows = cast("Sequence[ListedOrder]", page["rows"])
    assert {row.task.task_id for row in rows} == {"waits", "declined"}
    assert page["words"] == "found by customerId"
    assert page["missing"] == "To command orders that are found by a field, tick their boxes."
    assert page["on_all"] == []
    listed = cast("Listed", page_of("customerId=c-2")["listed"])
    assert (listed.tasks, listed.removed) == ((), ("done",))


def test_the_search_of_each_page_takes_a_field_and_its_value() -> None:
    """It asks nothing of AWS: no name has an equals sign."""
    nobody = cast("Inspector", None)
    found = find_page(nobody, {"text": " card.holder=A. Reader "})
    assert found == {GOES_TO: "/orders?where=card.holder%3DA.+Reader"}


def test_of_many_removed_orders_the_first_are_named() -> None:
    orders = [f"o{number}" for number in range(MOST_REMOVED + 2)]
    assert removed_words(orders).endswith(f"o{MOST_REMOVED - 1} and 2 more")
    assert removed_words(orders[:1]).endswith(": o0")
