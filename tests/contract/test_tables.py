"""The tables of these tests are those of template.yaml."""

from collections.abc import Mapping

import pytest

from roundsman_dev.template import mapping_of
from roundsman_testing.dynamodb.schemas import TABLES, TTL_ATTRIBUTE
from tests.project import translate

SAME_IN_BOTH = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table["TableName"])
def test_a_table_of_the_tests_has_the_keys_and_indexes_of_the_template(
    table: Mapping[str, object],
) -> None:
    resources = mapping_of(translate()["Resources"])
    properties = mapping_of(mapping_of(resources[str(table["TableName"])])["Properties"])
    for name in SAME_IN_BOTH:
        assert properties.get(name) == table.get(name)
    assert properties["TimeToLiveSpecification"] == {
        "AttributeName": TTL_ATTRIBUTE,
        "Enabled": True,
    }
