"""What docs/how-to/wrap-a-service.md says happens, by its commands, in a copy of the project.

`test_wrap_a_service.py` puts this into the copy as a test, beside `commands.txt` (the page's
`roundsman` commands, in their order) and `service-url.txt` (where the page's stand-in answers).
"""

import http.client
import shlex
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from typer.testing import CliRunner

from roundsman.model.instants import SECOND
from roundsman.testing.remote_services import RemoteServices
from roundsman.testing.stack import Clock, Stack
from roundsman_console.main import app
from tests.project import deployed_project

COPY = Path(__file__).parents[2]
DEPLOYS = "roundsman local "


def roundsman(command: str) -> str:
    """What one command of the page prints; it must succeed."""
    arguments = shlex.split(command)[1:]
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, arguments)
    assert result.exit_code == 0, f"{command}:\n{result.output}"
    return result.stdout


def has_points(service: str, order_id: str) -> bool:
    """Whether the stand-in gave points for the order."""
    connection = http.client.HTTPConnection(urlsplit(service).netloc, timeout=20)
    key = quote(f"{order_id}/award_points/perform", safe="")
    connection.request("GET", f"/points/{key}")
    status = connection.getresponse().status
    connection.close()
    return status == 200


def test_the_page_happens_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(COPY)
    service = (COPY / "service-url.txt").read_text(encoding="utf-8")
    commands = (COPY / "commands.txt").read_text(encoding="utf-8").splitlines()
    up, *typed, down = commands
    assert (up, down) == (
        "roundsman local up --param LoyaltyUrl=http://127.0.0.1:8790",
        "roundsman local down",
    )
    clock = Clock()
    with (
        RemoteServices(clock=clock.at_the_services) as services,
        deployed_project(services, clock, {"LoyaltyUrl": service}) as world,
    ):
        follow(typed, world, service)


def follow(typed: list[str], world: Stack, service: str) -> None:
    """Type the commands, let the functions work after each, and look where the page says what."""
    expected: dict[str, Callable[[str], bool]] = {
        "roundsman show loyal-1": lambda said: "loyal_order  Completed" in said,
        "roundsman show loyal-2": lambda said: (
            "award_points: held" in said and "new version" in said
        ),
        "roundsman agents": lambda said: "loyalty" in said,
    }
    for command in typed:
        said = roundsman(command)
        world.run()
        if command in expected:
            assert expected[command](said), said
        if command.startswith("roundsman hold "):
            world.clock.now += 6 * SECOND  # "within 5 s nothing new begins there"
        if command.startswith("roundsman release "):
            assert not has_points(service, "loyal-2")
            world.pass_time(30)
            expected["roundsman show loyal-2"] = lambda said: "loyal_order  Completed" in said
    assert has_points(service, "loyal-1")
    assert has_points(service, "loyal-2")
