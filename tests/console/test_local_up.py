"""Bringing a local AWS up and down: the order of things, and that every failure cleans up."""

import json
import os
import socket
import sys
from pathlib import Path

import pytest

from roundsman_console.aws.local_record import Instances
from roundsman_console.base.errors import ConsoleError
from roundsman_console.base.locks_folder import IN_THE_REPOSITORY
from roundsman_dev.local import LocalAws
from roundsman_dev.local.emulator import check_port, free_port, is_healthy
from tests.console.local_tools import RUNTIME, Tools, make_project

SERVICES = "http://127.0.0.1:9/base/"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path)


def up(project: Path, tools: Tools, **options: object) -> LocalAws:
    chosen: dict[str, object] = {"port": 0, "services": SERVICES, **options}
    return LocalAws.up(project=project, runner=tools, **chosen)  # type: ignore[arg-type]


def assert_nothing_is_left(project: Path) -> None:
    assert list(Instances(project)) == []


def test_up_builds_deploys_and_prints_the_outputs(project: Path) -> None:
    tools = Tools()
    with up(project, tools, stack="mine") as local:
        assert local.outputs == {"QueueUrl": "the queue"}
        assert local.stack == "mine"
        assert local.services == dict.fromkeys(
            ("inventory", "payment", "shipping", "mail"), "http://127.0.0.1:9/base"
        )
        assert is_healthy(local.record)
        pid = local.pid
    assert_nothing_is_left(project)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    [build], [deploy] = tools.named("build"), tools.named("deploy")
    assert build.after("--template-file") == str(project / "template.yaml")
    assert deploy.after("--stack-name") == "mine"
    assert f'PythonRuntime="{RUNTIME}"' in deploy.command
    assert 'MailUrl="http://127.0.0.1:9/base"' in deploy.command


def test_sam_sees_nothing_of_the_persons_aws_account_nor_of_the_projects_settings(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "samconfig.toml").write_text("not for this")
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "SAM_CLI_DEBUG"):
        monkeypatch.setenv(name, "a person's own")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a person's own")
    tools = Tools()
    with up(project, tools) as local:
        endpoint = local.endpoint
        emulator = json.loads(
            (project / ".cache/local" / str(local.record.port) / "tmp/environment.json").read_text()
        )
    for call in [*tools.named("build"), *tools.named("deploy")]:
        assert "a person's own" not in call.environment.values()
        assert call.environment["AWS_ENDPOINT_URL"] == endpoint
        assert call.environment["AWS_CONFIG_FILE"] == os.devnull
        assert call.environment["SAM_CLI_TELEMETRY"] == "0"
        assert "127.0.0.1" in call.environment["NO_PROXY"]
        assert project / ".cache" in Path(call.after("--config-file")).parents
    assert "a person's own" not in emulator.values()
    assert emulator["BIND_HOST"] == "127.0.0.1"


def test_the_emulator_gets_the_variables_asked_for(project: Path) -> None:
    with up(project, Tools(), emulator_environment={"AUTH": "true"}) as local:
        folder = project / ".cache/local" / str(local.record.port)
        assert json.loads((folder / "tmp/environment.json").read_text())["AUTH"] == "true"


@pytest.mark.exhaustive
def test_two_run_side_by_side_with_builds_of_their_own(project: Path) -> None:
    tools = Tools()
    with up(project, tools) as one, up(project, tools) as other:
        assert one.endpoint != other.endpoint
        built = {call.after("--build-dir") for call in tools.named("build")}
        assert len(built) == 2
        one.down()
        assert is_healthy(other.record)
    assert len(tools.named("venv")) == 2, "the emulator is installed once for both"


@pytest.mark.exhaustive
def test_a_second_on_the_same_port_is_refused_and_the_first_lives_on(project: Path) -> None:
    with up(project, Tools()) as local:
        with pytest.raises(ConsoleError, match=f"already runs on port {local.record.port}"):
            up(project, Tools(), port=local.record.port)
        assert is_healthy(local.record)


def test_a_port_taken_by_another_program_is_one_sentence(project: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConsoleError, match=rf"^Port {port} cannot be used: Address"):
            up(project, Tools(), port=port)
    assert_nothing_is_left(project)


def test_a_free_port_is_none_that_the_system_gives_to_another_program() -> None:
    given: set[int] = set()
    for _ in range(200):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            given.add(other.getsockname()[1])
    assert free_port() < min(given)


@pytest.mark.parametrize("program", ["venv", "pip", "build", "deploy"])
def test_an_interrupt_at_any_stage_leaves_nothing_running(project: Path, program: str) -> None:
    port = free_port()
    with pytest.raises(KeyboardInterrupt):
        up(project, Tools(interrupted=program), port=port)
    assert_nothing_is_left(project)
    check_port(port)


def test_a_failed_build_says_sams_error_and_where_the_log_is(project: Path) -> None:
    port = free_port()
    output = "Building\nError: PythonPipBuilder - no such package\n"
    with pytest.raises(ConsoleError) as caught:
        up(project, Tools(failing={"build": output}), port=port)
    log = project / ".cache" / "logs" / f"local-{port}" / "sam-build.log"
    assert str(caught.value) == (
        f"sam build failed: Error: PythonPipBuilder - no such package (full log: {log})"
    )
    assert log.read_text() == output
    assert_nothing_is_left(project)
    check_port(port)


def test_a_failed_deployment_without_a_stack_says_sams_error(project: Path) -> None:
    with pytest.raises(
        ConsoleError, match=r"^sam deploy failed: Error: no changeset \(full log: [^ ]+\)$"
    ):
        up(project, Tools(failing={"deploy": "waiting\nError: no changeset\n"}))
    assert_nothing_is_left(project)


def test_a_failed_installation_says_pips_last_line_and_is_tried_again(project: Path) -> None:
    output = "Collecting x\nERROR: No matching distribution found for x\n"
    with pytest.raises(
        ConsoleError, match="a package index: ERROR: No matching distribution found for x"
    ):
        up(project, Tools(failing={"pip": output}))
    assert_nothing_is_left(project)
    tools = Tools()
    up(project, tools).down()
    assert tools.named("pip")


def test_an_emulator_that_dies_as_it_starts_is_reported_with_its_last_line(project: Path) -> None:
    tools = Tools(emulator_start="sys.exit('no room left')")
    with pytest.raises(ConsoleError, match="The emulator did not start: no room left"):
        up(project, tools)
    assert_nothing_is_left(project)


@pytest.mark.exhaustive
def test_a_changed_lock_makes_a_new_environment(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = project / "requirements" / "emulator.txt"
    monkeypatch.setitem(IN_THE_REPOSITORY, "emulator.txt", lock)
    tools = Tools()
    up(project, tools).down()
    lock.write_text("emulator==2\n")
    up(project, tools).down()
    assert len({call.command[-1] for call in tools.named("venv")}) == 4  # two of each


def test_without_sam_nothing_is_started(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "samcli.yamlhelper", None)
    with pytest.raises(ConsoleError, match="needs the SAM CLI: install roundsman\\[local\\]"):
        up(project, Tools())
    assert_nothing_is_left(project)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"port": 70000}, "A port must be a number from 0 to 65535, not 70000"),
        ({"services": "localhost:80"}, "InventoryUrl cannot be 'localhost:80': it must match"),
        ({"parameters": {"Nope": "1"}}, "template.yaml has no parameter Nope; it has: Arch"),
        ({"parameters": {"Interval": "4"}}, "Interval cannot be '4': it must be at least 5"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_run(
    project: Path, options: dict[str, object], sentence: str
) -> None:
    tools = Tools()
    with pytest.raises(ConsoleError, match=sentence):
        up(project, tools, **options)
    assert tools.calls == []
    assert_nothing_is_left(project)
