"""The nested templates: their parameters, and the faults that each rule for them finds."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-untyped]

from roundsman.testing.stack.template import Document, Json, mapping_of
from tests.template import parameter_rules
from tests.template.parameter_rules import RULES, ParameterRule

STACKS = Path(__file__).parents[2] / "stacks"


def read(name: str) -> Document:
    return mapping_of(yaml_parse((STACKS / name).read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", ["engine.yaml", "agent.yaml"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_nested_template_keeps_the_rule(rule: ParameterRule, name: str) -> None:
    assert rule(read(name)) == []


def put(*path: str, value: Json) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        found = document
        for key in path[:-1]:
            found = mapping_of(found[key])
        if value is None:
            del found[path[-1]]
        else:
            found[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("rule", "change", "named"),
    [
        (
            parameter_rules.parameter_bounds,
            put("Parameters", "TimeoutSeconds", "MaxValue", value=None),
            "TimeoutSeconds needs AllowedValues",
        ),
        (
            parameter_rules.parameter_bounds,
            put("Parameters", "TimeoutSeconds", "Description", value=None),
            "TimeoutSeconds needs a Description",
        ),
        (
            parameter_rules.parameter_bounds,
            put("Parameters", "Memory", "ConstraintDescription", value="wrong"),
            "Memory: ConstraintDescription",
        ),
        (
            parameter_rules.defaults,
            put("Parameters", "TimeoutSeconds", "Default", value=1),
            "TimeoutSeconds: its default",
        ),
        (
            parameter_rules.defaults,
            put("Parameters", "Concurrency", "Default", value=11),
            "Concurrency: its default",
        ),
        (
            parameter_rules.defaults,
            put("Parameters", "Memory", "Default", value=None),
            "Memory: its default",
        ),
        (
            parameter_rules.address_patterns,
            put("Parameters", "ServiceUrl", "AllowedPattern", value=r"^$|https?://[^\s?#]+"),
            "AllowedPattern must not accept 'https://example.com/'",
        ),
        (
            parameter_rules.address_patterns,
            put("Parameters", "ServiceUrl", "AllowedPattern", value=r"^$|https://[^\s?#]+[^/\s]"),
            "AllowedPattern must accept 'http://127.0.0.1:8080'",
        ),
        (
            parameter_rules.lookups,
            put("Mappings", "Instances", "7", value=None),
            "the rows of Instances must be the AllowedValues of Concurrency",
        ),
    ],
)
def test_a_rule_finds_the_fault(
    rule: ParameterRule, change: Callable[[Document], None], named: str
) -> None:
    document = deepcopy(read("agent.yaml"))
    change(document)
    assert any(named in problem for problem in rule(document))
