"""The `dynamodb_endpoint` fixture: DynamoDB Local, started once for the session that uses it.

Each pytest process (so each xdist worker too) owns the engine it starts: nothing is shared, and no
port is agreed on. Tests keep apart by table names of their own.
"""

from collections.abc import Iterator

import pytest

from tools import dynamodb_local
from tools.runtimes import ToolError


@pytest.fixture(scope="session")
def dynamodb_endpoint() -> Iterator[str]:
    """The URL of an empty DynamoDB Local; where it cannot start, the test fails, never skips."""
    try:
        running = dynamodb_local.start()
    except ToolError as error:
        pytest.fail(f"DynamoDB Local is needed and cannot run here: {error}", pytrace=False)
    yield running.endpoint
    dynamodb_local.stop(running)
