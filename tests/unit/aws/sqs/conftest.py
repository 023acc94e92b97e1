"""What holds for every test of a function behind a queue."""

from collections.abc import Iterator

import pytest

from roundsman.aws.observability import metrics


@pytest.fixture(autouse=True)
def no_metrics_left() -> Iterator[None]:
    """What is counted outside an invocation would be sent with that of another test."""
    yield
    metrics().clear_metrics()
