"""The `dynamodb_endpoint` fixture: DynamoDB Local, started once for the session that uses it.

Each pytest process (so each xdist worker too) owns the engine it starts: nothing is shared, and no
port is agreed on. Tests keep apart by table names of their own.
"""

from collections.abc import Iterator

import pytest

from tools.engines import dynamodb_local
from tools.engines.runtimes import ToolError

HOW = "`make engines` installs it, and what it needs; once, with a network."


def started() -> dynamodb_local.Running:
    """A running engine. Where there can be none, the test fails, and says what to do."""
    try:
        return dynamodb_local.start()
    except ToolError as error:
        pytest.fail(f"DynamoDB Local is needed and cannot run here: {error} {HOW}", pytrace=False)


@pytest.fixture(scope="session")
def dynamodb_endpoint() -> Iterator[str]:
    """The URL of an empty DynamoDB Local; where it cannot start, the test fails, never skips."""
    running = started()
    yield running.endpoint
    dynamodb_local.stop(running)
