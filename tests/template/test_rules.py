"""This application keeps the rules that every application of the engine keeps.

Another application runs these tests as they are: agents and workflows are read from its own
template and registry.
"""

import pytest

from roundsman_dev.check import RULES, Application, Rule
from tests.project import TEMPLATE
from workflows.registry import WORKFLOWS


@pytest.fixture(scope="session")
def application(session_without_real_aws: None) -> Application:
    return Application.read(TEMPLATE, WORKFLOWS.values())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_application_keeps_the_rule(application: Application, rule: Rule) -> None:
    assert rule(application) == []
