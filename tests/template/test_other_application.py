"""The rules know no application: another one keeps them, and each rule finds its faults there."""

import inspect
import re
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from roundsman import From
from roundsman_dev import check as rules
from roundsman_dev.check import (
    RULES,
    Application,
    Rule,
    blocks,
    code,
    events,
    interface,
    limits,
    schedules,
    service_events,
)
from roundsman_dev.check.reading import agents
from roundsman_dev.template import Document, Json, mapping_of, part
from tests.support.other_application import other_application
from tests.template.faults import Fault, put, ref, sub
from tests.template.rule_faults import (
    ADDITIONS,
    ALL_FAULTS,
    BUCKET,
    FAULTS,
    TOPIC,
    Change,
    changed,
    with_events,
)
from workflows.registry import WORKFLOWS

RULES_FOLDER = Path(rules.__file__).parent
MODULES = sorted(RULES_FOLDER.glob("*.py"))
MODULES_OF_RULES = (blocks, code, events, interface, limits, schedules, service_events)


@pytest.fixture(scope="module")
def other(session_without_real_aws: None, tmp_path_factory: pytest.TempPathFactory) -> Application:
    return other_application(tmp_path_factory.mktemp("other"))


def names_of_the_example() -> set[str]:
    """The workflows, steps and agents of this repository's registry."""
    steps = [step for workflow in WORKFLOWS.values() for step in workflow.steps]
    found = {*WORKFLOWS, *(step.name for step in steps)}
    return found | {name for step in steps for name in step.agent_names()}


def test_the_other_application_has_none_of_the_examples_agents(other: Application) -> None:
    names = {agent.name for agent in agents(other.template)}
    assert names == {"warehouse", "billing", "gift_wrap", "letters"}
    assert not names & names_of_the_example()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_an_application_with_other_agents_keeps_the_rule(other: Application, rule: Rule) -> None:
    assert rule(other) == []


@pytest.mark.parametrize(
    ("rule", "fault", "named"), ALL_FAULTS, ids=[f"{r.__name__}: {n}" for r, _, n in ALL_FAULTS]
)
def test_the_rule_finds_the_fault_and_names_it(
    other: Application, rule: Rule, fault: Fault | Change, named: str
) -> None:
    problems = rule(changed(other, fault))
    assert any(named in problem for problem in problems), problems


@pytest.mark.parametrize("addition", ADDITIONS)
def test_an_application_may_have_more_than_the_engine_and_its_agents(
    other: Application, addition: str
) -> None:
    larger = changed(other, ADDITIONS[addition])
    assert larger.template != other.template
    assert [problem for rule in RULES for problem in rule(larger)] == []


@pytest.mark.parametrize(
    "listed",
    [
        TOPIC,
        f"{BUCKET},{TOPIC}",
        sub("arn:${AWS::Partition}:sns:${AWS::Region}:${AWS::AccountId}:presents"),
        {"Fn::Join": [",", [BUCKET, ref("Presents")]]},
        ref("LettersUrl"),  # a parameter of the application, which may be anything
    ],
)
def test_declared_events_are_known_to_come_or_may_come(other: Application, listed: Json) -> None:
    topic: Document = {"Type": "AWS::SNS::Topic", "Properties": {}}
    made = changed(other, put("Resources/Presents", topic))
    made = changed(made, put("Parameters/LettersUrl", {"Type": "String"}))
    found = with_events(From(topic="presents"), listed=listed)(made)
    assert service_events.service_events(found) == []


@pytest.mark.parametrize("declared", [From(bucket="presents"), From(source="shop")])
def test_a_listed_topic_may_pass_on_events_of_a_bucket_or_a_bus(
    other: Application, declared: From
) -> None:
    found = with_events(declared, listed=TOPIC)(other)
    assert service_events.service_events(found) == []


def test_every_rule_has_a_fault_that_it_finds() -> None:
    assert set(FAULTS) == set(RULES)


@pytest.mark.parametrize(
    "every",
    [
        pytest.param(11, marks=pytest.mark.exhaustive),
        pytest.param(1, marks=pytest.mark.verify),
    ],
)
@pytest.mark.parametrize("value", [None, "text"], ids=["missing", "text"])
def test_no_rule_raises_whatever_a_resource_has_in_place_of_a_property(
    other: Application, value: Json, every: int
) -> None:
    """Every property of one resource of each type and form, one at a time, and what is in it.

    `every` 11 leaves out all but each eleventh; those with a text are others than those missing.
    """
    resources = part(other.template, "Resources")
    forms = {
        (str(mapping_of(resource)["Type"]), *part(mapping_of(resource), "Properties")): name
        for name, resource in resources.items()
    }
    places = [
        (name, path)
        for name in forms.values()
        for path in paths(mapping_of(resources[name])["Properties"])
    ]
    assert len(places) > 300
    for name, (*above, last) in places[every // 2 if value else 0 :: every]:
        changed = mapping_of(deepcopy(resources[name]))
        template = {**other.template, "Resources": {**resources, name: changed}}
        mapping = part(changed, "Properties")
        for key in above:
            mapping = part(mapping, key)
        mapping[last] = value
        if value is None:
            del mapping[last]
        for rule in RULES:
            rule(replace(other, template=template))


def paths(value: Json) -> list[tuple[str, ...]]:
    """The keys that lead to each value within nested mappings."""
    if not isinstance(value, dict):
        return []
    return [(key, *rest) for key in value for rest in [(), *paths(value[key])]]


def test_an_empty_template_has_problems_and_makes_no_rule_raise() -> None:
    empty: Document = {"Resources": {}}
    nothing = Application(empty, ())
    assert [problem for rule in RULES for problem in rule(nothing)]


@pytest.mark.parametrize("module", MODULES_OF_RULES, ids=lambda module: module.__name__)
def test_every_rule_of_a_module_is_listed_and_says_what_it_holds(module: ModuleType) -> None:
    found = {
        function
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
        and not name.startswith("_")
        and list(inspect.signature(function).parameters) == ["application"]
    }
    assert found == set(module.RULES)
    assert found <= set(RULES)
    assert all(inspect.getdoc(function) for function in found)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_rule_names_an_agent_a_step_or_a_workflow_of_the_example(path: Path) -> None:
    text = path.read_text(encoding="utf-8").lower()
    assert not {name for name in names_of_the_example() if re.search(rf"\b{name}", text)}
