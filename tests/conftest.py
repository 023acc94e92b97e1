"""What holds for every test: fake AWS credentials, no endpoint but a test's own, no chance."""

import gc
import os
from collections.abc import Iterator

import pytest
from botocore.config import Config
from hypothesis import HealthCheck, settings

from roundsman.aws import clients
from roundsman_console.base.hints import remember_stack
from roundsman_testing.stack.computed_once import computed_once
from tests.support.short_way import short_way

pytest_plugins = ["tests.support.dynamodb_local", "pytester"]

# Deterministic, so that a failure seen once is seen always; no deadline, since a test must not
# fail because the machine is busy.
settings.register_profile(
    "roundsman",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("roundsman")

OBJECTS_BETWEEN_COLLECTIONS = 20_000
"""How many new objects Python's garbage collector waits for; 700 without this."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the garbage collector away from what thousands of tests and their imports have made.

    It would walk through all of that again and again, which takes a fifth of the processor time of
    the tests that make many objects, such as an order's way through the functions on moto.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS, 10, 10)
        gc.enable()


FAKE_AWS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_SESSION_TOKEN": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_REGION": "us-east-1",
    # Empty files, so that no profile of this machine is ever read.
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "SAM_CLI_TELEMETRY": "0",
}


@pytest.fixture(autouse=True, scope="session")
def session_without_real_aws() -> Iterator[None]:
    """The fake environment for fixtures that outlive a test, and for what they start."""
    with pytest.MonkeyPatch.context() as patch:
        use_fake_aws(patch)
        yield


@pytest.fixture(autouse=True, scope="session")
def aws_described_once() -> Iterator[None]:
    """botocore reads the descriptions of services once, and not again in each test."""
    with computed_once(), short_way():
        yield


@pytest.fixture(autouse=True, scope="session")
def parameters_are_validated() -> Iterator[None]:
    """A function leaves the validation of its requests to AWS; in tests botocore validates them."""
    validating = clients.FUNCTION_CONFIG.merge(Config(parameter_validation=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clients, "FUNCTION_CONFIG", validating)
        yield


@pytest.fixture(autouse=True)
def no_real_aws(session_without_real_aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never real credentials nor an endpoint left behind, whatever an earlier test has set."""
    use_fake_aws(monkeypatch)


def use_fake_aws(patch: pytest.MonkeyPatch) -> None:
    """Set the fake credentials and region, and remove all else that points at an AWS."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        patch.delenv(name)
    for name, value in FAKE_AWS.items():
        patch.setenv(name, value)


@pytest.fixture(autouse=True)
def no_stack_is_remembered() -> None:
    """No command has the option --stack of one that an earlier test ran in this process."""
    remember_stack(None)
