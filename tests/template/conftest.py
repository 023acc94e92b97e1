"""The translated template, and the stack it makes on moto."""

from collections.abc import Iterator

import pytest
from moto import mock_aws

from roundsman.testing.stack.resources import StackOnMoto
from roundsman.testing.stack.template import Document
from tests.project import create_stack, translate
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


@pytest.fixture(scope="module")
def deployed_stack(session_without_real_aws: None) -> Iterator[StackOnMoto]:
    """The stack on moto, for a whole module: making it takes longer than a test should."""
    with mock_aws():
        yield create_stack()
