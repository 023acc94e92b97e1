"""The translated template, and the stack it makes on moto."""

from collections.abc import Iterator
from functools import cache

import pytest
from moto import mock_aws
from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-untyped]

from roundsman_dev.template import Document, mapping_of
from roundsman_testing.stack.resources import StackOnMoto
from tests.project import TEMPLATE, create_stack, translate
from tests.support.other_application import other_application
from tests.template.example.services import GIVEN, OWN_KEYS


@pytest.fixture(scope="session")
def document(session_without_real_aws: None) -> Document:
    """The plain CloudFormation that template.yaml becomes."""
    return translate()


@pytest.fixture(scope="session")
def whole(document: Document, tmp_path_factory: pytest.TempPathFactory) -> list[Document]:
    """Templates that our stacks are in: a new application's, the example's, and that with keys of
    its owner and with all that a block may ask for its service. Nobody may change them."""
    other = other_application(tmp_path_factory.mktemp("other"))
    return [other.template, document, translate({**GIVEN, **OWN_KEYS})]


@cache
def nested_template(name: str) -> Document:
    """One of our stacks as written. Nobody may change it."""
    text = (TEMPLATE.parent / "stacks" / name).read_text(encoding="utf-8")
    return mapping_of(yaml_parse(text))


@pytest.fixture
def nested() -> list[Document]:
    """The templates of an agent and of the engine, as written. Nobody may change them."""
    return [nested_template("agent.yaml"), nested_template("engine.yaml")]


@pytest.fixture(scope="module")
def deployed_stack(session_without_real_aws: None) -> Iterator[StackOnMoto]:
    """The stack on moto, for a whole module: making it takes longer than a test should."""
    with mock_aws():
        yield create_stack()
