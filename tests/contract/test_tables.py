"""The tables of these tests are those of template.yaml."""

from collections.abc import Mapping
from typing import cast

import pytest

from roundsman_dev.template import mapping_of
from roundsman_testing.dynamodb.schemas import ORDERS, TABLES, TTL_ATTRIBUTE
from tests.project import translate
from tests.support.template_reading import NO_VALUE

SAME_IN_BOTH = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes")


def with_indexes(value: object, fields: int) -> object:
    """A part of the template with the indexes that `SearchFields` gives the stack."""
    match value:
        case {"Fn::If": [str(name), yes, no]} if name.startswith("Searches"):
            chosen = yes if fields >= int(name.removeprefix("Searches")) else no
            return None if chosen == NO_VALUE else with_indexes(chosen, fields)
        case dict():
            return {name: with_indexes(one, fields) for name, one in value.items()}
        case list():
            found = [with_indexes(one, fields) for one in value]
            return [one for one in found if one is not None]
        case _:
            return value


def properties_of(table: str, fields: int) -> Mapping[str, object]:
    resources = mapping_of(translate()["Resources"])
    properties = mapping_of(resources[table])["Properties"]
    return cast("Mapping[str, object]", with_indexes(properties, fields))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table["TableName"])
def test_a_table_of_the_tests_has_the_keys_and_indexes_of_the_template(
    table: Mapping[str, object],
) -> None:
    properties = properties_of(str(table["TableName"]), fields=3)
    for name in SAME_IN_BOTH:
        assert properties.get(name) == table.get(name)
    assert properties["TimeToLiveSpecification"] == {
        "AttributeName": TTL_ATTRIBUTE,
        "Enabled": True,
    }


@pytest.mark.parametrize("fields", [0, 1, 2])
def test_the_orders_have_as_many_indexes_as_the_stack_is_told(fields: int) -> None:
    """And define no attribute that is the key of none, which DynamoDB refuses."""
    properties = properties_of("OrdersTable", fields)
    indexes = cast("list[dict[str, list[dict[str, str]]]]", ORDERS["GlobalSecondaryIndexes"])
    wanted = indexes[:fields]
    assert properties.get("GlobalSecondaryIndexes") == (wanted or None)
    keys = {key["AttributeName"] for index in wanted for key in index["KeySchema"]}
    defined = cast("list[dict[str, str]]", properties["AttributeDefinitions"])
    assert {one["AttributeName"] for one in defined} == {"OrderID", *keys}
