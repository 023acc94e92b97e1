"""The translated template, and the stack it makes on moto."""

from collections.abc import Iterator

import pytest
from moto import mock_aws

from tests.template_stack import Document, StackOnMoto, create_stack_on_moto, translate


@pytest.fixture(scope="session")
def document(session_without_real_aws: None) -> Document:
    """The plain CloudFormation that template.yaml becomes."""
    return translate()


@pytest.fixture(scope="module")
def deployed_stack(session_without_real_aws: None) -> Iterator[StackOnMoto]:
    """The stack on moto, for a whole module: making it takes longer than a test should."""
    with mock_aws():
        yield create_stack_on_moto()
