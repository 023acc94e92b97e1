"""`roundsman local` as a person types it: what it prints, and with which exit code."""

import json
import re
import signal
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from roundsman.aws.outputs import with_agents
from roundsman_console.aws.local_record import Instances
from roundsman_console.base.errors import ConsoleError
from roundsman_console.base.process import ProcessIdentity
from roundsman_dev.local import LocalAws
from roundsman_dev.local import command as cli_local
from roundsman_dev.local import command as local_commands
from roundsman_dev.local.command import local_app, up_lines
from roundsman_dev.local.emulator import is_healthy
from tests.console.local_tools import Tools, make_project
from tests.console.schemas import assert_schema


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(make_project(tmp_path))
    return tmp_path


@pytest.fixture
def running(project: Path) -> Iterator[LocalAws]:
    there = "http://127.0.0.1:9"
    with LocalAws.up(port=0, services=there, project=project, runner=Tools()) as local:
        yield local


def local(*arguments: str) -> Result:
    return CliRunner().invoke(local_app, arguments)


def test_status_says_that_nothing_runs(project: Path) -> None:
    result = local("status")
    assert result.exit_code == 3
    assert result.stdout == "No local AWS runs here.\n"


def test_status_as_json_is_one_object_even_when_nothing_runs(project: Path) -> None:
    result = local("status", "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout) == {"instances": []}
    assert_schema("local-status", {"instances": []})


def test_up_says_what_to_type_next_and_which_service_does_not_answer(running: LocalAws) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        there = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with socket.create_server(("127.0.0.1", 0)) as ended:
            nobody = f"http://127.0.0.1:{ended.getsockname()[1]}"
        services = {
            "stock": there,
            "mail": "https://mail.example.com",
            "gift": nobody,
            "pay": nobody,
            "none": "http://localhost:99999",
        }
        running.record = replace(running.record, services=services)
        lines = up_lines(running, running.stack)
    assert lines[0] == f"{running.stack} is deployed on {running.endpoint}. For the next commands:"
    assert lines[1].startswith(f"  export AWS_ENDPOINT_URL={running.endpoint} AWS_ACCESS_KEY_ID=")
    assert "ROUNDSMAN_STACK" not in lines[1]
    assert [line for line in lines if "answers" in line] == [
        f"No service answers at {url}: start yours, or leave out --services for stand-ins"
        for url in (nobody, "http://localhost:99999")
    ]
    assert lines[-1] == f"To stop it: roundsman local down --port {running.record.port}"
    running.record = replace(running.record, services_url="")
    assert any(
        line == f"No service answers at {nobody}: start yours, or give its address with --param"
        for line in up_lines(running, running.stack)
    )
    assert up_lines(running, "another")[1].endswith(f" ROUNDSMAN_STACK={running.stack}")


def test_status_of_what_is_well(running: LocalAws) -> None:
    result = local("status", "--port", str(running.record.port), "--json")
    assert result.exit_code == 0
    assert_schema("local-status", json.loads(result.stdout))
    [instance] = json.loads(result.stdout)["instances"]
    assert instance["state"] == "healthy"
    assert instance["endpoint"] == running.endpoint
    assert instance["outputs"] == {"QueueUrl": "the queue"}
    assert "healthy" in local("status").stdout


def test_status_of_another_port_is_none(running: LocalAws) -> None:
    assert local("status", "--port", "1").exit_code == 3


def test_status_of_what_has_died(running: LocalAws, project: Path) -> None:
    instance = Instances(project).at(running.record.port)
    instance.write(replace(running.record, emulator=of_another_time(running)))
    result = local("status", "--json")
    instance.write(running.record)
    assert result.exit_code == 1
    assert json.loads(result.stdout)["instances"][0]["state"] == "dead"


def of_another_time(running: LocalAws) -> ProcessIdentity:
    assert running.record.emulator is not None
    return replace(running.record.emulator, started="before")


def test_status_of_what_is_being_brought_up(project: Path) -> None:
    Instances(project).claim(4510)
    result = local("status", "--json")
    assert result.exit_code == 4
    assert_schema("local-status", json.loads(result.stdout))
    assert json.loads(result.stdout)["instances"][0]["state"] == "starting"


@pytest.fixture
def updated(running: LocalAws, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands in for an update of the running stack, without SAM."""
    monkeypatch.setattr(cli_local, "update_stack", lambda *_, **__: running.record)


@pytest.mark.usefixtures("updated")
def test_deploy_prints_a_line_or_what_up_prints() -> None:
    assert re.fullmatch(r"Deployed roundsman \(\d+\.\d s\)\.\n", local("deploy").stdout)
    document = json.loads(local("deploy", "--json").stdout)
    assert_schema("local-deploy", document)
    assert document["outputs"] == {"QueueUrl": "the queue"}


def test_deploy_where_nothing_runs_says_how_to_start_one(project: Path) -> None:
    result = local("deploy", "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "No local AWS runs here. `roundsman local up` starts one.\n"


@pytest.mark.usefixtures("updated")
def test_ctrl_c_ends_the_watching_and_leaves_the_stack(
    running: LocalAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    def watching(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(cli_local, "watch_project", watching)
    result = local("deploy", "--watch")
    assert result.exit_code == 130
    assert result.stderr == "Stopped; the local AWS keeps running.\n"
    assert is_healthy(running.record)
    assert local("deploy", "--watch", "--json").exit_code == 2


def test_up_leaves_the_outputs_to_scripts(
    running: LocalAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = "gift_wrap,shop-Function,http://requests,http://urgent,http://replies,256"
    outputs = with_agents({"GiftWrapAgent": agent, "EngineSettings": "A=1", "OrdersTableName": "o"})
    running.record = replace(running.record, outputs=outputs)
    monkeypatch.setattr(LocalAws, "up", lambda **_: running)
    printed = local("up").stdout
    assert "OrdersTableName" not in printed
    assert "GiftWrap" not in printed
    assert "EngineSettings" not in printed
    assert set(json.loads(local("up", "--json").stdout)["outputs"]) == set(outputs)


def test_down_ends_the_only_one(running: LocalAws, project: Path) -> None:
    port = running.record.port
    result = local("down")
    assert result.exit_code == 0
    logs = Path(".cache") / "logs" / f"local-{port}"
    assert result.stdout == f"Stopped the local AWS on port {port}. Its logs are in {logs}.\n"
    assert (project / logs / "emulator.log").exists()
    assert list(Instances(project)) == []


def test_down_asks_which_where_several_run(project: Path) -> None:
    for port in (4510, 4511):
        Instances(project).claim(port)
    result = local("down")
    assert result.exit_code == 1
    assert "on ports 4510, 4511. Choose one with --port." in result.stderr
    assert local("down", "--port", "4510").exit_code == 0
    assert local("down", "--all", "--port", "4511").exit_code == 0
    assert list(Instances(project)) == []


def test_down_where_nothing_runs_is_no_failure_unless_a_port_is_named(project: Path) -> None:
    assert local("down").exit_code == 0
    result = local("down", "--port", "4510")
    assert result.exit_code == 1
    assert result.stderr == "No local AWS runs here on port 4510.\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--param", "A"), "--param requires Key=Value"),
        (("--port", "65536"), "A port must be a number from 0 to 65535"),
    ],
)
def test_a_wrong_argument_is_one_sentence_on_stderr(
    project: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    result = local("up", "--json", *arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["up", "status", "down"])
def test_outside_a_project_each_command_says_so(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = local(command)
    assert result.exit_code == 1
    assert "There is no template.yaml in" in result.stderr


@pytest.mark.parametrize(
    ("options", "settings", "stack"),
    [
        ((), '[default.global.parameters]\nstack_name = "shop"\n', "shop"),
        (("--stack", "other"), '[default.global.parameters]\nstack_name = "shop"\n', "other"),
        ((), "", "roundsman"),
    ],
    ids=["of the project", "as given", "without a name"],
)
def test_up_deploys_the_stack_that_the_other_commands_look_for(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    settings: str,
    stack: str,
) -> None:
    (project / "samconfig.toml").write_text(settings)
    asked: list[object] = []

    def up(**given: object) -> LocalAws:
        asked.append(given["stack"])
        raise ConsoleError("not deployed")

    monkeypatch.setattr(LocalAws, "up", up)
    assert local("up", *options).exit_code == 1
    assert asked == [stack]


def test_a_service_that_is_too_busy_to_accept_a_connection_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = list[tuple[str, int]]()

    def accepts_nobody(address: tuple[str, int], **_: object) -> socket.socket:
        asked.append(address)
        raise TimeoutError

    monkeypatch.setattr(local_commands, "create_connection", accepts_nobody)
    services = ("http://localhost:8000", "http://127.0.0.1", "https://127.0.0.1", "http://[::1]:1")
    assert all(local_commands._listens(url) for url in services)
    assert asked == [("localhost", 8000), ("127.0.0.1", 80), ("127.0.0.1", 443), ("::1", 1)]
