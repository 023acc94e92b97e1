"""`roundsman ui`: its link, its options, and the socket that it listens on."""

import json
import socket
import stat
import sys
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import boto3
import pytest
import uvicorn

from roundsman_console.aws.stack import find_stack
from roundsman_console.base.errors import InspectorError
from roundsman_console.faces.web import deadlines, server
from roundsman_console.faces.web.access.hosts import kept_host, new_host, usual_port
from roundsman_console.faces.web.access.one_browser import BrowserSession
from roundsman_console.faces.web.whereabouts import Colour
from roundsman_console.inspector import Inspector
from tests.console.operators import Operator
from tests.console.schemas import assert_schema
from tests.support.load_balancer import ISSUER, SIGNER

USUAL = usual_port("roundsman")


@dataclass
class Served:
    """What was served. Nothing listens."""

    options: list[dict[str, object]] = field(default_factory=list)
    stacks: list[str] = field(default_factory=list)
    taken: bool = False
    """Whether another program has the usual port."""


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of what the console keeps for its user."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "roundsman" / "console"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, state: Path) -> Served:
    found = Served()

    def serve(
        inspector: Inspector, *, opened: Callable[[BrowserSession], None], **options: object
    ) -> None:
        found.stacks.append(inspector.stack.name)
        found.options.append(options)
        port = options["port"]
        usual = USUAL + found.taken
        assert port is None or isinstance(port, int)
        host = "127.0.0.1" if options["loopback"] else new_host()
        opened(BrowserSession(usual if port is None else port, host=host))

    monkeypatch.setattr(server, "serve", serve)
    return found


@dataclass
class Opened:
    """What a browser was asked to open: the address on its command line, and the file there."""

    address: str = ""
    page: str = ""
    mode: int = 0


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    found = Opened()

    def open_browser(url: str) -> bool:
        file = Path(unquote(urlsplit(url).path))
        found.address, found.page = url, file.read_text()
        found.mode = stat.S_IMODE(file.stat().st_mode)
        return True

    monkeypatch.setattr(webbrowser, "open", open_browser)
    return found


def test_the_link_is_printed_and_opened_through_a_file_that_only_its_user_may_read(
    operator: Operator, served: Served, opened: Opened, state: Path
) -> None:
    output = operator.types("ui").stdout
    assert served.stacks == ["roundsman"]
    assert served.options == [{"port": None, "read_only": False, "loopback": False, "colour": None}]
    link = output.split("The console of roundsman: ")[1].split()[0]
    assert f".localhost:{USUAL}/session?token=" in link
    assert opened.page.count(link) == 2, "the page goes on by itself, and has a link"
    assert opened.mode == 0o600
    token = link.partition("token=")[2]
    assert token not in opened.address, "other users read the command line of the browser"
    assert opened.address.startswith("file:///")
    assert not list(state.glob("open-*")), "the file is removed at the end"


def test_a_place_is_opened(operator: Operator, served: Served, opened: Opened) -> None:
    assert "&place=f-0a1b2c3d" in operator.types("ui", "f-0a1b2c3d").stdout
    assert "&amp;place=f-0a1b2c3d" in opened.page


def test_json_has_the_link_and_opens_nothing(
    operator: Operator, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: pytest.fail("opened"))
    result = operator.types("ui", "--json", "--read-only", "--port", "8950")
    assert_schema("ui", json.loads(result.stdout))
    [options] = served.options
    assert (options["port"], options["read_only"]) == (8950, True)


def test_a_message_appears_if_no_browser_opens(
    operator: Operator, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    assert "No browser could be opened." in operator.types("ui").stderr
    assert "No browser" not in operator.types("ui", "--no-browser").stderr


def test_a_file_that_cannot_be_written_is_no_end(
    operator: Operator, served: Served, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.parent.mkdir()
    state.write_text("no folder")
    monkeypatch.setattr(webbrowser, "open", lambda url: pytest.fail("opened"))
    result = operator.types("ui")
    assert result.exit_code == 0
    assert "No browser could be opened." in result.stderr
    assert "/session?token=" in result.stdout


def test_the_colour_of_the_strip_is_an_option_or_from_the_environment(
    operator: Operator, served: Served, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator.types("ui", "--colour", "amber")
    monkeypatch.setenv("ROUNDSMAN_COLOUR", "red")
    operator.types("ui")
    assert [options["colour"] for options in served.options] == [Colour.AMBER, Colour.RED]
    assert operator.types("ui", "--colour", "pink").exit_code == 2


def test_another_port_than_the_usual_one_is_said(
    operator: Operator, served: Served, opened: Opened
) -> None:
    said = f"Port {USUAL}, the usual one of roundsman, is in use"
    assert said not in operator.types("ui").stderr
    served.taken = True
    assert said in operator.types("ui").stderr


def test_the_address_127_0_0_1_is_used_with_a_warning(
    operator: Operator, served: Served, opened: Opened
) -> None:
    warning = "Other programs that listen on this machine can get the cookie"
    result = operator.types("ui", "--loopback")
    assert f"http://127.0.0.1:{USUAL}/session?token=" in result.stdout
    assert warning in result.stderr
    assert warning not in operator.types("ui").stderr


def test_a_stack_that_does_not_exist_is_reported_before_anything_listens(
    operator: Operator, served: Served
) -> None:
    result = operator.types("ui", "--stack", "nowhere")
    assert (result.exit_code, served.options) == (1, [])
    assert "There is no stack nowhere" in result.stderr


def test_the_console_listens_on_loopback_only_and_says_that_a_port_is_in_use() -> None:
    with server.listening(0) as listener:
        address, port = listener.getsockname()
        assert address == "127.0.0.1"
        with pytest.raises(InspectorError, match=f"Port {port} of 127.0.0.1 cannot be used"):
            server.listening(port)
    assert isinstance(listener, socket.socket)


def test_a_stack_has_the_same_port_each_time_and_the_next_one_if_it_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert usual_port("shop") == usual_port("shop") != usual_port("shop-prod")
    assert 17_000 <= usual_port("shop") < 18_000
    with server.listening(0) as first:
        port = first.getsockname()[1]
        monkeypatch.setattr(server, "usual_port", lambda _: port)
        monkeypatch.setattr(server, "NEXT_PORTS", 1)
        with pytest.raises(InspectorError, match=f"The ports {port} to {port} .*--port"):
            server.usual_listener("shop")
        monkeypatch.setattr(server, "NEXT_PORTS", 50)
        with server.usual_listener("shop") as second:
            assert port < second.getsockname()[1] < port + 50


def test_a_stack_keeps_its_host_in_a_file_that_only_its_user_may_read(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    host = kept_host(folder, "arn:shop")
    assert kept_host(folder, "arn:shop") == host
    assert kept_host(folder, "arn:other") != host
    assert host.endswith(".localhost")
    files = [*folder.iterdir()]
    assert len(files) == 2
    assert {stat.S_IMODE(one.stat().st_mode) for one in files} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_host_that_others_can_read_or_choose_is_replaced(tmp_path: Path) -> None:
    host = kept_host(tmp_path, "arn:shop")
    (file,) = tmp_path.iterdir()
    file.chmod(0o644)
    other = kept_host(tmp_path, "arn:shop")
    assert other != host
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("evil.example")
    assert kept_host(tmp_path, "arn:shop") not in (host, other, "evil.example")


def test_without_a_folder_the_host_is_a_new_one_each_time(tmp_path: Path) -> None:
    nothing = tmp_path / "file"
    nothing.write_text("")
    assert kept_host(nothing, "arn:shop") != kept_host(nothing, "arn:shop")


def test_a_console_is_served_on_its_usual_port_under_its_own_host(
    operator: Operator, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", boto3.DEFAULT_SESSION)  # it is put back
    ran: list[tuple[str, int]] = []

    def run(_: uvicorn.Server, sockets: list[socket.socket]) -> None:
        ran.extend(one.getsockname() for one in sockets)

    monkeypatch.setattr(uvicorn.Server, "run", run)
    seen: list[BrowserSession] = []
    for _ in range(2):
        found = find_stack(None)
        server.serve(Inspector(found), port=None, read_only=True, opened=seen.append)
    first, second = seen
    assert {address for address, _ in ran} == {"127.0.0.1"}
    assert first.port == ran[0][1]
    assert USUAL <= first.port < USUAL + server.NEXT_PORTS
    assert first.read_only
    assert first.host == second.host != "127.0.0.1"
    assert [*state.glob("*.host")]
    server.serve(Inspector(found), port=0, read_only=False, opened=seen.append, loopback=True)
    assert seen[-1].shared
    client = boto3.client("sqs")
    settings = vars(client.meta.config)
    assert settings["read_timeout"] == deadlines.CALL_SECONDS, "all clients have deadlines"


TEAM = (
    *("--serve", "127.0.0.1:0", "--signer", SIGNER, "--issuer", ISSUER, "--group", "on-call"),
    *("--public-url", "https://console.example.com"),
)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[uvicorn.Config]:
    """The configuration of what was served. Nothing is accepted."""
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", boto3.DEFAULT_SESSION)  # it is put back
    found: list[uvicorn.Config] = []

    def run(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
        assert [one.getsockname()[0] for one in sockets] == ["127.0.0.1"]
        found.append(server.config)

    monkeypatch.setattr(uvicorn.Server, "run", run)
    return found


def test_a_team_is_served_without_a_link(
    operator: Operator,
    served: Served,
    ran: list[uvicorn.Config],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: pytest.fail("opened"))
    result = operator.types("ui", *TEAM, "--read-only", "--colour", "red")
    assert result.stdout.endswith(
        "The console of roundsman for the team: https://console.example.com\n"
    )
    assert "token" not in result.output
    assert served.options == [], "no console of one person"
    [config] = ran
    assert config.timeout_keep_alive > 60, "longer than the connections of a load balancer"
    settings = vars(boto3.client("sqs").meta.config)
    assert settings["read_timeout"] == deadlines.CALL_SECONDS, "all clients have deadlines"
    as_json = operator.types("ui", *TEAM, "--json").stdout
    assert_schema("ui", json.loads(as_json))
    assert json.loads(as_json) == {"url": "https://console.example.com"}


def test_a_team_is_not_served_without_each_option(
    operator: Operator, ran: list[uvicorn.Config]
) -> None:
    for place in range(2, len(TEAM), 2):
        result = operator.types("ui", *TEAM[:place], *TEAM[place + 2 :])
        assert result.exit_code == 2
        assert f"--serve needs {TEAM[place]} too" in " ".join(result.stderr.split())
    assert ran == []


@pytest.mark.parametrize("more", [("ord-1",), ("--port", "8950"), ("--loopback",)])
def test_options_for_one_person_are_not_for_a_team(
    operator: Operator, ran: list[uvicorn.Config], more: tuple[str, ...]
) -> None:
    result = operator.types("ui", *more, *TEAM)
    assert (result.exit_code, ran) == (2, [])
    assert "leave them out with --serve" in result.stderr


@pytest.mark.parametrize("place", [2, 4, 6, 8])
def test_options_for_a_team_are_not_for_one_person(
    operator: Operator, served: Served, place: int
) -> None:
    result = operator.types("ui", *TEAM[place : place + 2])
    assert (result.exit_code, served.options) == (2, [])
    assert "add --serve" in result.stderr


def test_an_address_that_is_in_use_is_said(operator: Operator, ran: list[uvicorn.Config]) -> None:
    with server.listening(0) as listener:
        port = listener.getsockname()[1]
        result = operator.types("ui", "--serve", f"127.0.0.1:{port}", *TEAM[2:])
    assert (result.exit_code, ran) == (1, [])
    assert f"127.0.0.1, port {port} cannot be used" in result.stderr


def test_what_a_team_needs_to_be_installed_is_said(
    operator: Operator, ran: list[uvicorn.Config], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("team_server", "access.team"):
        monkeypatch.delitem(sys.modules, f"roundsman_console.faces.web.{name}", raising=False)
    for name in [
        one for one in sys.modules if one.startswith("roundsman_console.faces.web.access.identity")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    result = operator.types("ui", *TEAM)
    assert (result.exit_code, ran) == (1, [])
    assert 'pip install "roundsman[serve]"' in result.stderr
