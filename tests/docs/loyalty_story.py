"""What docs/how-to/wrap-a-service.md says happens, by its commands, in an application.

`test_wrap_a_service.py` puts this into the application as a test, beside `commands.txt` (the page's
commands for the stack, in their order).
"""

import shlex
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from urllib.request import Request, urlopen

import pytest
from typer.testing import CliRunner

from roundsman.model.instants import SECOND
from roundsman_console.base import clock
from roundsman_console.main import app
from roundsman_testing.remote_services import RemoteServices
from roundsman_testing.stack import Stack

APPLICATION = Path(__file__).parents[1]


def roundsman(command: str) -> str:
    """What one command of the page prints; it must succeed."""
    arguments = shlex.split(command)[1:]
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, arguments)
    assert result.exit_code == 0, f"{command}:\n{result.output}"
    return result.stdout


def curl(command: str, services: RemoteServices) -> str:
    """What one request of the page to the stand-ins is answered."""
    _, _, method, address, *data = shlex.split(command)
    url = address.replace("http://127.0.0.1:8780", services.url)
    body = data[1].encode() if data else None
    with urlopen(Request(url, body, method=method)) as answer:
        return str(answer.read(), "utf-8")


def test_the_page_happens_as_it_says(
    roundsman_stack: Stack, roundsman_services: RemoteServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(APPLICATION)
    monkeypatch.setenv("ROUNDSMAN_STACK", "roundsman")  # the name that the fixture gives it
    # A command that waits for the stack lets it work meanwhile, as it does beside one.
    monkeypatch.setattr(
        clock, "time", SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: run())
    )

    def run() -> None:
        with redirect_stdout(StringIO()):  # functions write their metrics there
            roundsman_stack.run()

    expected: dict[str, Callable[[str], bool]] = {
        "roundsman show loyal-1": lambda printed: "loyal_order  Completed" in printed,
        "roundsman show loyal-2": lambda printed: (
            "award_points: held" in printed and "new version" in printed
        ),
        "roundsman agents": lambda printed: "circuit" in printed,
        "roundsman show loyal-3": lambda printed: "loyal_order  Completed" in printed,
    }
    shown = []
    for command in (APPLICATION / "commands.txt").read_text(encoding="utf-8").splitlines():
        if command.startswith("curl "):
            printed = curl(command, roundsman_services)
        else:
            printed = roundsman(command)
        run()
        if command in expected:
            assert expected[command](printed), printed
            shown.append(command)
        if command.startswith("roundsman hold "):
            roundsman_stack.clock.now += 6 * SECOND  # "within 5 s nothing new begins there"
        if command.startswith("roundsman release "):
            assert not roundsman_services.application.effects("loyal-2")
            roundsman_stack.pass_time(30)
            expected["roundsman show loyal-2"] = lambda printed: "loyal_order  Completed" in printed
        if command in (
            "roundsman submit loyal-3.json",
            "curl -X DELETE http://127.0.0.1:8780/_faults",
        ):
            roundsman_stack.pass_time(60)
    orders = [f"roundsman show loyal-{number}" for number in (1, 2, 2, 3)]
    assert shown == [*orders[:3], "roundsman agents", orders[3]]
    for order in ("loyal-1", "loyal-2", "loyal-3"):
        assert len(roundsman_services.application.effects(order)) == 1
