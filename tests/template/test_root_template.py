"""The root templates stay small: the example's and that of a new application."""

from collections.abc import Callable
from pathlib import Path

import pytest
from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-untyped]

from roundsman_dev.project.create import create
from roundsman_dev.template import Document, mapping_of, part
from tests.project import TEMPLATE

QUESTIONS = 10
"""`sam deploy --guided` asks for each parameter, beside the stack's name, the region and its own
settings."""
LINES = 180
"""Some 30 are what CloudFormation checks before it creates anything."""
LINES_OF_AGENT = 15


def of_the_example(_: Path) -> Path:
    return TEMPLATE


def of_a_new_application(folder: Path) -> Path:
    create(folder / "shop", agents=("stock", "payment", "shipping", "mail"), version="0.1.0")
    return folder / "shop" / "template.yaml"


TEMPLATES = pytest.mark.parametrize("template_of", [of_the_example, of_a_new_application])


def read(path: Path) -> Document:
    return mapping_of(yaml_parse(path.read_text(encoding="utf-8")))


@TEMPLATES
def test_a_guided_deployment_asks_at_most_ten_questions_of_the_application(
    template_of: Callable[[Path], Path], tmp_path: Path
) -> None:
    parameters = part(read(template_of(tmp_path)), "Parameters")
    assert 0 < len(parameters) <= QUESTIONS
    assert all(mapping_of(parameter)["Description"] for parameter in parameters.values())


CONSTRAINTS = ("Type", "AllowedPattern", "AllowedValues", "MaxLength", "MinValue", "MaxValue")


@pytest.mark.exhaustive
@TEMPLATES
def test_a_parameter_is_checked_as_the_nested_stack_that_takes_it_checks_it(
    template_of: Callable[[Path], Path], tmp_path: Path
) -> None:
    """CloudFormation checks the values of the root before it creates anything, and those of nested
    stacks when it comes to them: what they refuse would end a creation halfway."""
    path = template_of(tmp_path)
    template = read(path)
    given = part(template, "Parameters")
    checked = set()
    for block in part(template, "Resources").values():
        properties = part(mapping_of(block), "Properties")
        if "Location" not in properties:
            continue
        taken = part(read(path.parent / str(properties["Location"])), "Parameters")
        for name, value in part(properties, "Parameters").items():
            passed = value.get("Ref") if isinstance(value, dict) else None
            if isinstance(passed, str) and passed in given:
                checked.add(passed)
                root, nested = mapping_of(given[passed]), mapping_of(taken[name])
                for each in CONSTRAINTS:
                    assert root.get(each) == nested.get(each), f"{passed}: {each}"
    assert checked == set(given)


@TEMPLATES
def test_a_template_of_four_agents_has_at_most_180_lines(
    template_of: Callable[[Path], Path], tmp_path: Path
) -> None:
    assert len(template_of(tmp_path).read_text(encoding="utf-8").splitlines()) <= LINES


@pytest.mark.parametrize("many", [4, pytest.param(40, marks=pytest.mark.exhaustive)])
def test_an_agent_adds_about_ten_lines_and_no_parameter(tmp_path: Path, many: int) -> None:
    names = [f"agent_{n}" for n in range(many)]
    sizes, parameters = [], []
    for each in (names[:1], names):
        create(tmp_path / f"with{len(each)}", agents=each, version="0.1.0")
        path = tmp_path / f"with{len(each)}" / "template.yaml"
        sizes.append(len(path.read_text(encoding="utf-8").splitlines()))
        parameters.append(part(read(path), "Parameters"))
    assert sizes[1] - sizes[0] <= (many - 1) * LINES_OF_AGENT
    assert parameters[0] == parameters[1]
