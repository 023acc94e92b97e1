"""An application with many agents: no rule, no role and no setting grows with their number."""

from pathlib import Path

import pytest

from roundsman_dev.check import RULES, Application, limits
from roundsman_dev.check.reading import variables
from roundsman_dev.project.create import create
from roundsman_dev.template import Document, part
from tests.support.template_reading import roles

DEPLOY_PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "deploy.md"
MANY = 40


def of_agents(folder: Path, number: int) -> Application:
    """A new application with so many agents."""
    create(folder / f"with{number}", agents=[f"agent_{n}" for n in range(number)], version="0.1.0")
    return Application.read(folder / f"with{number}" / "template.yaml", ())


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Application:
    return of_agents(tmp_path_factory.mktemp("many"), MANY)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Application:
    return of_agents(tmp_path_factory.mktemp("one"), 1)


def test_one_agent_keeps_every_rule(one: Application) -> None:
    assert [problem for rule in RULES for problem in rule(one)] == []


@pytest.mark.exhaustive
def test_forty_agents_keep_every_rule(many: Application) -> None:
    assert [problem for rule in RULES for problem in rule(many)] == []


def engines(application: Application) -> Document:
    """The roles and the variables of the engine's functions."""
    names = ("Submission", "Scheduler", "Supervisor")
    template = application.template
    return {
        name: [roles(template)[f"{name}Role"], variables(template, f"{name}Function")]
        for name in names
    }


def test_the_engines_rights_and_variables_are_the_same_for_one_agent_and_for_forty(
    one: Application, many: Application
) -> None:
    assert engines(one) == engines(many)


def test_the_page_says_how_many_agents_an_application_may_have(
    one: Application, many: Application
) -> None:
    def resources(application: Application, agents: int) -> int:
        return len(part(application.template, "Resources")) + agents + 1

    first = resources(one, 1)
    each = (resources(many, MANY) - first) // (MANY - 1)
    most = 1 + (limits.ALL_RESOURCES - first) // each
    assert most < limits.OUTPUTS - len(part(one.root, "Outputs"))
    assert f"at most {most} agents" in DEPLOY_PAGE.read_text(encoding="utf-8")
