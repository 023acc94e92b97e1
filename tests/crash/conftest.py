"""A stage for a scenario: the template's stack, with the workflows that the scenarios ask for."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias
from unittest.mock import patch

import boto3
import pytest
from botocore.signers import RequestSigner
from botocore.useragent import UserAgentString
from moto import backend_index

import workflows.registry
from roundsman_testing.stack import Clock, Services
from tests.crash.runs import Stage
from tests.crash.scenarios import WORKFLOWS, Scenario
from tests.project import deployed_project

# One shard, since sixteen would be the same call sixteen times; and no logs to read.
SMALL = {"Engine.DueShards": "1", "LogLevel": "ERROR"}

ASKED = ("dynamodb", "sqs", "sns")
COUNTED = "crash everywhere"  # the property of a test under which it says what it did

Open: TypeAlias = Callable[[Scenario], AbstractContextManager[Stage]]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was run; seconds are of processor time."""
    reports = [each for kind in ("passed", "failed") for each in terminalreporter.getreports(kind)]
    for report in reports:
        for name, count in report.user_properties:
            if name == COUNTED:
                terminalreporter.write_line(f"{COUNTED}: {count}")


@pytest.fixture
def open_stage(roundsman_services: Services, roundsman_clock: Clock) -> Open:
    """Opens a stage with the stack of a scenario."""

    @contextmanager
    def opened(scenario: Scenario) -> Iterator[Stage]:
        known = {**workflows.registry.WORKFLOWS, **WORKFLOWS}
        parameters = {**SMALL, **scenario.parameters}
        with (
            patch.object(workflows.registry, "WORKFLOWS", known),
            deployed_project(roundsman_services, roundsman_clock, parameters) as stack,
            cheap_clients(),
        ):
            yield Stage(stack)

    return opened


@contextmanager
def cheap_clients() -> Iterator[None]:
    """Half of what all of it would take, by leaving out what no test here can see.

    New instances of functions get the clients of those before, which know nothing of what was
    asked with them. Nothing is signed and no client says what it is, since moto looks at neither;
    and moto, which tries the addresses of two hundred services in turn, tries these first.
    """
    make, made = boto3.client, dict[tuple[object, ...], object]()

    def client(*names: str, **options: object) -> object:
        kind = (*names, *((name, id(option)) for name, option in options.items()))
        if kind not in made:
            made[kind] = make(*names, **options)  # type: ignore[call-overload]  # as it was called
        return made[kind]

    addresses = sorted(backend_index.backend_url_patterns, key=lambda each: each[0] not in ASKED)
    with (
        patch.object(boto3, "client", client),
        patch.object(RequestSigner, "sign", lambda *_, **__: None),
        patch.object(UserAgentString, "to_string", lambda _: "test"),
        patch.object(backend_index, "backend_url_patterns", addresses),
    ):
        yield
