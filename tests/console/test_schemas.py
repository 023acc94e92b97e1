"""Every verb that prints JSON has a schema, and a test that holds what it prints against it.

Whatever tests type at a verb through an Operator is held against its schema without being asked.
"""

import re
from pathlib import Path

import pytest

from tests.console.operators import Operator, document, in_retry
from tests.console.schemas import COMMANDS, assert_schema
from tests.console.verbs import VERBS, options_of, schema_of
from tools import schemas

TESTS = Path(__file__).parents[1]
JSON_VERBS = sorted(verb for verb in VERBS if "--json" in options_of(verb))
CHECKED = {
    name
    for file in TESTS.rglob("test_*.py")
    for name in re.findall(r'assert_schema\(\s*"([a-z-]+)"', file.read_text(encoding="utf-8"))
}
"""The schemas that some test names as it checks a document."""


@pytest.mark.parametrize("verb", JSON_VERBS)
def test_each_verb_that_prints_json_has_a_schema_and_a_test_that_checks_it(verb: str) -> None:
    assert schema_of(verb) in COMMANDS, f"{verb}: add the type of its document to tools/schemas.py"
    assert schema_of(verb) in CHECKED, f'{verb}: no test says assert_schema("{schema_of(verb)}"'


OF_NO_VERB = (
    "alert-message",
    "make-demo",
)  # the AlertTopic gets the one, `make demo` prints the other


def test_each_schema_is_of_a_verb() -> None:
    assert sorted(COMMANDS) == sorted([*map(schema_of, JSON_VERBS), *OF_NO_VERB])


@pytest.mark.parametrize("verb", JSON_VERBS)
def test_a_schema_allows_no_field_that_it_does_not_name(verb: str) -> None:
    schema = schemas.schema_of(verb)
    assert schema["type"] == "object"
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == f"roundsman {verb} --json"
    assert _open_objects(schema, "$") == []


def _open_objects(schema: object, where: str) -> list[str]:
    """Objects of the schema that take any field, and do not say so on purpose."""
    if isinstance(schema, list):
        return [one for place, inner in enumerate(schema) for one in _open_objects(inner, where)]
    if not isinstance(schema, dict):
        return []
    kind = schema.get("type", ())
    is_object = "object" in ([kind] if isinstance(kind, str) else kind)
    # A map from names that nobody knows beforehand says what its values are.
    found = [where] if is_object and "additionalProperties" not in schema else []
    return found + [
        one for name in schema for one in _open_objects(schema[name], f"{where}.{name}")
    ]


def test_a_document_with_a_field_too_many_or_too_few_is_not_as_its_schema_says() -> None:
    good: dict[str, object] = {
        "messageId": "m-1",
        "orderId": None,
        "outcome": None,
        "state": None,
        "problems": [],
    }
    assert_schema("submit", good)
    for wrong in ({**good, "more": 1}, {"messageId": "m-1"}, {**good, "orderId": 1}, [good]):
        with pytest.raises(AssertionError, match=r"not as schemas/submit\.json says"):
            assert_schema("submit", wrong)
    with pytest.raises(AssertionError, match="has no schema"):
        assert_schema("nothing", good)


@pytest.mark.exhaustive
def test_what_each_verb_prints_is_as_its_schema_says(operator: Operator, tmp_path: Path) -> None:
    file = tmp_path / "order.json"
    file.write_text('{"orderId": "ord-2"}')
    assert_schema("submit", operator.reads("submit", str(file), "--anyway", "--no-wait"))
    in_retry(operator)
    assert_schema("show", operator.reads("show", "ord-1"))
    assert_schema("ls", operator.reads("ls"))
    assert_schema("extend", document(operator.asks("extend", "ord-1", "--by", "10m", "--json")))
    assert_schema("run", document(operator.asks("run", "ord-1", "--json")))
    # The order is Completed now, which refuses whatever is asked; a refusal has the same form.
    resolved = operator.asks("resolve", "ord-1", "charge_card", "--did", "--json")
    assert_schema("resolve", document(resolved))
    assert_schema("resubmit", document(operator.asks("resubmit", "ord-1", "--json")))
    assert_schema("undo", document(operator.asks("undo", "ord-1", "--json")))
    assert_schema("cancel", document(operator.asks("cancel", "ord-1", "--json")))
    held = operator.asks("hold", "payment", "--for", "10m", "--json")
    assert_schema("hold", document(held))
    assert_schema("agents", operator.reads("agents"))
    assert_schema("release", operator.reads("release", "payment"))
