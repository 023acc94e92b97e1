"""Orders are found by their search keys, which are stored, changed and removed with the order."""

from dataclasses import replace
from threading import Barrier, Thread
from typing import TYPE_CHECKING

import pytest

from roundsman.aws.dynamodb.codec import order_item
from roundsman.aws.dynamodb.search import (
    INDEXES,
    KEPT_FOR,
    SEARCH,
    DynamoSearchSecret,
    FoundOrder,
    look_for_orders,
)
from roundsman.aws.dynamodb.traced import TracedStore
from roundsman.aws.tracing import OFF
from roundsman.errors import CallRefused, UnreadableRecord
from roundsman.model.instants import DAY
from roundsman.ports import Created, OrderRow, Saved, Superseded
from tests.contract.samples import NOW, born, completed, order_row
from tests.contract.worlds import World

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

BY_CUSTOMER, BY_CITY, BY_CARD = "customerId=c-42", "city=Ghent", "card~0a1b"


def row(order_id: str = "ord-1001", *keys: str, at: int = NOW) -> OrderRow:
    return replace(order_row(order_id), search=keys, created_at=at)


def stored(world: World, order: OrderRow) -> None:
    task = replace(born(order.order_id), created_at=order.created_at)
    assert world.store.create(order, task) == Created()


def found(world: World, key: str, **limits: int | bool) -> list[str]:
    """The orders with this key, whichever index has it."""
    ids = []
    for index in INDEXES:
        for page in look_for_orders(
            world.client,
            world.tables.orders,
            index,
            key,
            page=2,
            since=int(limits.get("since", 0)),
            until=int(limits.get("until", NOW + DAY)),
            newest_first=bool(limits.get("newest_first", False)),
        ):
            ids += [one.order_id for one in page]
    return ids


def test_an_order_is_found_by_each_of_its_keys_and_reads_back_with_them(world: World) -> None:
    order = row("ord-1001", BY_CUSTOMER, BY_CITY, BY_CARD)
    stored(world, order)
    for key in order.search:
        assert found(world, key) == ["ord-1001"]
    assert found(world, "customerId=c-4") == []
    assert world.store.order("ord-1001") == order


def test_the_orders_of_a_value_are_found_page_by_page_sorted_by_time(world: World) -> None:
    for place in (3, 1, 5, 2, 4):
        stored(world, row(f"ord-{place}", BY_CUSTOMER, at=NOW + place))
    stored(world, row("ord-9", "customerId=c-43", BY_CUSTOMER, at=NOW + 9))
    in_order = [f"ord-{place}" for place in range(1, 6)]
    assert found(world, BY_CUSTOMER) == [*in_order, "ord-9"]
    assert found(world, BY_CUSTOMER, newest_first=True) == [*in_order[::-1], "ord-9"]
    assert found(world, BY_CUSTOMER, since=NOW + 2, until=NOW + 4) == in_order[1:4]
    [[first, _], *_] = look_for_orders(
        world.client, world.tables.orders, "search1", BY_CUSTOMER, page=2
    )
    assert first == FoundOrder("ord-1", NOW + 1)


def test_an_order_without_keys_is_stored_byte_for_byte_as_before(world: World) -> None:
    stored(world, row())
    key: dict[str, Value] = {"OrderID": {"S": "ord-1001"}}
    item = world.client.get_item(TableName=world.tables.orders, Key=key)["Item"]
    assert item == order_item(order_row())
    assert item.keys() == {"OrderID", "Content", "ContentHash", "CreatedAt"}
    assert world.store.order("ord-1001") == order_row()


def test_an_erased_order_is_not_found(world: World) -> None:
    order = row("ord-1001", BY_CUSTOMER, BY_CITY, BY_CARD)
    stored(world, order)
    world.store.erase_order("ord-1001", created_at=NOW, erased_at=NOW + 1)
    assert [found(world, key) for key in order.search] == [[], [], []]
    assert world.store.order("ord-1001") == replace(
        order, content=None, erased_at=NOW + 1, search=()
    )


@pytest.mark.parametrize("retention", [None, DAY])
def test_a_decision_changes_the_keys_of_the_order_with_it(
    world: World, retention: int | None
) -> None:
    """Also where the same write gives the order its expiry."""
    world.keep_orders(retention)
    stored(world, row("ord-1001", BY_CUSTOMER, BY_CITY))
    task = completed(born(), retain_for=DAY)
    new = ("customerId=c-43", BY_CARD, "city=Bruges")
    assert world.store.save(task, seen=1, search=new) == Saved()
    assert found(world, BY_CUSTOMER) == found(world, BY_CITY) == []
    assert [found(world, key) for key in new] == [["ord-1001"]] * 3
    after = world.store.order("ord-1001")
    assert after is not None
    assert after.search == new
    assert (after.expires_at is None) == (retention is None)

    again = replace(completed(replace(born(), version=2), retain_for=DAY), order_expires=True)
    assert world.store.save(again, seen=2, search=()) == Saved()
    kept = world.store.order("ord-1001")
    assert kept is not None
    assert kept.search == ()
    assert kept.expires_at == after.expires_at


def test_a_function_that_traces_changes_the_keys_as_well(world: World) -> None:
    store = TracedStore(
        world.client,
        orders_table=world.tables.orders,
        tasks_table=world.tables.tasks,
        history_table=world.tables.history,
        tracer=OFF,
    )
    stored(world, row("ord-1001", BY_CUSTOMER))
    assert store.save(completed(born(), retain_for=DAY), seen=1, search=(BY_CITY,)) == Saved()
    assert (found(world, BY_CUSTOMER), found(world, BY_CITY)) == ([], ["ord-1001"])


def test_a_decision_leaves_the_keys_as_they_are(world: World) -> None:
    world.keep_orders(DAY)
    stored(world, row("ord-1001", BY_CUSTOMER))
    assert world.store.save(completed(born()), seen=1) == Saved()
    assert found(world, BY_CUSTOMER) == ["ord-1001"]


def test_a_decision_that_comes_too_late_changes_no_keys(world: World) -> None:
    stored(world, row("ord-1001", BY_CUSTOMER))
    assert world.store.save(completed(born()), seen=7, search=(BY_CITY,)) == Superseded()
    assert found(world, BY_CUSTOMER) == ["ord-1001"]
    assert found(world, BY_CITY) == []


def test_a_decision_is_stored_though_its_order_row_is_missing(world: World) -> None:
    stored(world, row("ord-1001", BY_CUSTOMER))
    world.remove_order("ord-1001")
    assert world.store.save(completed(born()), seen=1, search=(BY_CITY,)) == Saved()
    assert world.store.order("ord-1001") is None


def test_a_stack_without_the_index_says_so(dynamo_world: World) -> None:
    with pytest.raises(CallRefused, match="searching orders"):
        next(look_for_orders(dynamo_world.client, dynamo_world.tables.tasks, "search1", "a=b"))


# The secret


class Clock:
    now = NOW

    def __call__(self) -> int:
        return self.now


def secret(world: World, made: bytes, clock: Clock | None = None) -> DynamoSearchSecret:
    return DynamoSearchSecret(
        world.client,
        control_table=world.tables.control,
        clock=clock or Clock(),
        made=lambda: made,
    )


def remove_secret(world: World) -> None:
    key: dict[str, Value] = {"ControlId": {"S": SEARCH}}
    world.client.delete_item(TableName=world.tables.control, Key=key)


def test_the_first_instance_makes_the_secret_and_all_have_it(world: World) -> None:
    assert secret(world, b"a").stored() is None
    assert secret(world, b"a")() == b"a"
    assert secret(world, b"b")() == secret(world, b"b").stored() == b"a"


def test_a_new_secret_is_long_and_random(world: World) -> None:
    table = world.tables.control
    made = DynamoSearchSecret(world.client, control_table=table, clock=Clock())()
    assert len(made) == 32
    remove_secret(world)
    other = DynamoSearchSecret(world.client, control_table=table, clock=Clock())()
    assert other != made


def test_a_secret_that_a_restore_removed_is_stored_again(world: World) -> None:
    clock = Clock()
    own = secret(world, b"a", clock)
    assert own() == b"a"
    remove_secret(world)
    clock.now += KEPT_FOR - 1
    assert own() == b"a"
    assert secret(world, b"b").stored() is None, "it relies on the secret that it has read"
    clock.now += 1
    assert own() == b"a"
    assert secret(world, b"b").stored() == b"a"


def test_an_instance_takes_the_secret_of_another_after_a_restore(world: World) -> None:
    clock = Clock()
    own = secret(world, b"a", clock)
    own()
    remove_secret(world)
    assert secret(world, b"b")() == b"b"
    clock.now += KEPT_FOR
    assert own() == b"b"


def test_of_two_that_make_it_at_once_both_have_the_first(atomic_world: World) -> None:
    found: list[bytes] = []
    together = Barrier(2)

    def make(name: bytes) -> None:
        together.wait(timeout=60)
        found.append(secret(atomic_world, name)())

    threads = [Thread(target=make, args=(name,)) for name in (b"a", b"b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert found == [secret(atomic_world, b"c").stored()] * 2


def test_a_secret_that_was_altered_is_not_taken(world: World) -> None:
    item: dict[str, Value] = {"ControlId": {"S": SEARCH}, "Secret": {"S": "text"}}
    world.client.put_item(TableName=world.tables.control, Item=item)
    with pytest.raises(UnreadableRecord, match="search"):
        secret(world, b"a")()
