"""`roundsman ui`: its link, its options, and the socket that it listens on."""

import json
import socket
import webbrowser
from collections.abc import Callable

import pytest

from roundsman_console.errors import InspectorError
from roundsman_console.inspector import Inspector
from roundsman_console.web import server
from roundsman_console.web.session import Session
from tests.console.operators import Operator
from tests.console.schemas import assert_schema


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, bool]]:
    """What was served: the stack, the port and whether it is read-only. Nothing listens."""
    found = []

    def serve(
        inspector: Inspector, *, port: int, read_only: bool, opened: Callable[[Session], None]
    ) -> None:
        found.append((inspector.stack.name, port, read_only))
        opened(Session(port or 8901, read_only))

    monkeypatch.setattr(server, "serve", serve)
    return found


def test_the_link_is_printed_and_opened(
    operator: Operator, served: list[tuple[str, int, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def open_browser(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", open_browser)
    output = operator.types("ui").stdout
    assert served == [("roundsman", 0, False)]
    (link,) = opened
    assert link in output
    assert link.startswith("http://127.0.0.1:8901/session?token=")


def test_json_has_the_link_and_opens_nothing(
    operator: Operator, served: list[tuple[str, int, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: pytest.fail("opened"))
    result = operator.types("ui", "--json", "--read-only", "--port", "8950")
    assert_schema("ui", json.loads(result.stdout))
    assert served == [("roundsman", 8950, True)]


def test_a_message_appears_if_no_browser_opens(
    operator: Operator, served: list[tuple[str, int, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    assert "No browser could be opened." in operator.types("ui").stderr
    assert "No browser" not in operator.types("ui", "--no-browser").stderr


def test_a_stack_that_does_not_exist_is_reported_before_anything_listens(
    operator: Operator, served: list[tuple[str, int, bool]]
) -> None:
    result = operator.types("ui", "--stack", "nowhere")
    assert (result.exit_code, served) == (1, [])
    assert "There is no stack nowhere" in result.stderr


def test_the_console_listens_on_loopback_only_and_says_that_a_port_is_in_use() -> None:
    with server.listening(0) as listener:
        address, port = listener.getsockname()
        assert address == "127.0.0.1"
        with pytest.raises(InspectorError, match=f"Port {port} of 127.0.0.1 cannot be used"):
            server.listening(port)
    assert isinstance(listener, socket.socket)
