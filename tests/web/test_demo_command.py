"""`roundsman demo` as a person types it: its link, its lines, and its end."""

import json
import os
import signal
import socket
import subprocess
import sys
import webbrowser
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner, Result

from roundsman_console.faces.web.access.one_browser import BrowserSession
from roundsman_console.main import app
from roundsman_testing.first_look import serving
from tests.console.schemas import assert_schema


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of what the console keeps for its user."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "roundsman" / "console"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """What was to be served. Nothing listens, and one alert is published."""
    found: list[dict[str, object]] = []

    def serve(
        *,
        opened: Callable[[BrowserSession], None],
        on_alert: Callable[[str], None],
        **options: object,
    ) -> None:
        found.append(options)
        opened(BrowserSession(8950))
        on_alert("Roundsman: \x1b[31mpurchase fails")

    monkeypatch.setattr(serving, "serve_first_look", serve)
    return found


def typed(*arguments: str) -> Result:
    result = CliRunner().invoke(app, ["demo", *arguments])
    assert result.exit_code == 0, result.output
    return result


def test_the_link_is_printed_and_opened_and_alerts_are_lines(
    asked: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch, state: Path
) -> None:
    opened: list[str] = []

    def open_browser(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", open_browser)
    output = typed().stdout
    assert asked == [{"port": None, "loopback": False}]
    assert ".localhost:8950/session?token=" in output
    assert "Alert: Roundsman: " in output
    assert "\x1b" not in output
    assert len(opened) == 1
    assert not list(state.glob("open-*")), "the file is removed at the end"


def test_json_has_the_link_only_and_opens_nothing(
    asked: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: pytest.fail("opened"))
    assert_schema("demo", json.loads(typed("--json", "--port", "0", "--loopback").stdout))
    assert asked == [{"port": 0, "loopback": True}]


def test_a_message_appears_if_no_browser_opens(
    asked: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    assert "No browser could be opened." in typed().stderr
    assert "No browser" not in typed("--no-browser").stderr


def test_without_the_packages_of_the_console_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "roundsman_testing.first_look.serving")
    monkeypatch.setitem(sys.modules, "roundsman_console.faces.web.server", None)
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == 1
    assert 'pip install "roundsman[ui]"' in result.stderr


@pytest.mark.exhaustive
def test_a_port_in_use_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(app, ["demo", "--json", "--port", port])
    assert result.exit_code == 1
    assert f"Port {port} of 127.0.0.1 cannot be used" in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.exhaustive
def test_one_process_serves_it_without_an_account_until_ctrl_c(tmp_path: Path) -> None:
    """With the settings of an account that must not be used, and in an empty folder."""
    account = {"AWS_PROFILE": "a person's own", "AWS_ENDPOINT_URL": "http://192.0.2.1"}
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", "from roundsman_console.main import app; app()"),
            *("demo", "--json", "--port", "0", "--loopback"),
        ],
        cwd=tmp_path,
        env={**os.environ, **account},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        link = urlsplit(json.loads(process.stdout.readline())["url"])
        assert link.hostname == "127.0.0.1"
        connection = HTTPConnection(link.hostname, link.port)
        connection.request("GET", f"{link.path}?{link.query}")
        answer = connection.getresponse()
        answer.read()
        cookie = str(answer.headers["Set-Cookie"]).partition(";")[0]
        connection.request("GET", "/", headers={"Cookie": cookie})
        page = connection.getresponse().read().decode()
        assert "orders archived (purchase, charge_card)" in page
        connection.close()
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert "Traceback" not in errors, errors
    assert list(tmp_path.glob("*.html")) == []
