"""The translated template, and the stack it makes on moto."""

from collections.abc import Iterator

import pytest
from moto import mock_aws

from roundsman.testing.stack.resources import StackOnMoto
from roundsman.testing.stack.template import Document
from tests.project import create_stack, translate


@pytest.fixture(scope="session")
def document(session_without_real_aws: None) -> Document:
    """The plain CloudFormation that template.yaml becomes."""
    return translate()


@pytest.fixture(scope="module")
def deployed_stack(session_without_real_aws: None) -> Iterator[StackOnMoto]:
    """The stack on moto, for a whole module: making it takes longer than a test should."""
    with mock_aws():
        yield create_stack()
