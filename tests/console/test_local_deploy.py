"""Updating a running local stack: what is built, what stays, and what an error leaves."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from roundsman_console.aws.local_record import Instances, LocalFiles
from roundsman_console.base.errors import ConsoleError
from roundsman_dev.local import LocalAws, update
from roundsman_dev.local.code import Artifact
from roundsman_dev.local.deploy import built_folder
from roundsman_dev.local.update import CodePutter, deploy, running_instance
from tests.console.local_tools import Tools, make_project

SERVICES = "http://127.0.0.1:9"
FUNCTION = """
  Mine:
    Type: AWS::Serverless::Function
    Properties: {CodeUri: functions/mine}
"""


class Functions:
    """Stands in for the functions of the running stack."""

    running: ClassVar[dict[str, str]] = {}
    layers_put_back: ClassVar[int] = 0

    def __init__(self, record: object) -> None:
        del record

    def put(self, changed: Iterable[Artifact]) -> tuple[str, ...]:
        for artifact in changed:
            self.running[artifact.name] = (artifact.built / "app.py").read_text()
        return tuple(self.running)

    def put_back_layers(self) -> None:
        type(self).layers_put_back += 1


@pytest.fixture(autouse=True)
def functions(monkeypatch: pytest.MonkeyPatch) -> type[Functions]:
    monkeypatch.setattr(Functions, "running", {"Mine": "old", "Gone": "x"})
    monkeypatch.setattr(Functions, "layers_put_back", 0)
    monkeypatch.setattr(update, "StackCode", Functions)
    return Functions


@pytest.fixture
def project(tmp_path: Path) -> Path:
    make_project(tmp_path)
    with (tmp_path / "template.yaml").open("a") as template:
        template.write(FUNCTION)
    (tmp_path / "functions" / "mine").mkdir(parents=True)
    (tmp_path / "functions" / "mine" / "app.py").write_text("new = 1\n")
    return tmp_path


def up(project: Path, **parameters: str) -> LocalAws:
    return LocalAws.up(
        port=0, services=SERVICES, parameters=parameters, project=project, runner=Tools()
    )


def instance_of(local: LocalAws, project: Path) -> LocalFiles:
    return Instances(project).at(local.record.port)


def overrides(tools: Tools) -> list[str]:
    [call] = tools.named("deploy")
    return call.command[call.command.index("--parameter-overrides") + 1 :]


@pytest.mark.exhaustive
def test_an_update_keeps_the_parameters_and_takes_new_ones(project: Path) -> None:
    with up(project, Interval="20", Name="one") as local:
        tools = Tools()
        done = deploy(
            project, instance_of(local, project), parameters={"Name": "two"}, runner=tools
        )
        assert {'Interval="20"', 'Name="two"'} <= set(overrides(tools))
        assert done.parameters == {"Interval": "20", "Name": "two"}
        assert instance_of(local, project).read() == done


@pytest.mark.exhaustive
def test_an_update_keeps_the_address_of_the_services_or_takes_a_new_one(project: Path) -> None:
    with LocalAws.up(port=0, services="https://a", project=project, runner=Tools()) as local:
        tools = Tools()
        deploy(project, instance_of(local, project), runner=tools)
        assert 'MailUrl="https://a"' in overrides(tools)
        done = deploy(project, instance_of(local, project), services="https://b", runner=Tools())
        assert done.services["mail"] == "https://b"
    with up(project) as local:
        done = deploy(project, instance_of(local, project), runner=Tools())
        assert done.services["mail"] == SERVICES


def test_a_parameter_that_the_template_no_longer_has_is_left_out(project: Path) -> None:
    with up(project, Interval="20") as local:
        template = project / "template.yaml"
        lines = template.read_text().splitlines(keepends=True)
        template.write_text("".join(line for line in lines if "Interval:" not in line))
        tools = Tools()
        deploy(project, instance_of(local, project), runner=tools)
        assert not [each for each in overrides(tools) if each.startswith("Interval")]


def test_a_build_that_fails_leaves_the_last_build(project: Path) -> None:
    with up(project) as local:
        instance = instance_of(local, project)
        (built_folder(instance) / "mark").touch()
        with pytest.raises(ConsoleError, match=r"^sam build failed: Error: no"):
            deploy(project, instance, runner=Tools(failing={"build": "Error: no"}))
        assert (built_folder(instance) / "mark").exists()
        assert instance.read() == local.record


def test_a_deployment_that_fails_says_that_the_stack_runs_as_before(project: Path) -> None:
    with up(project) as local:
        instance = instance_of(local, project)
        failing = Tools(failing={"deploy": "Error: TooLong"})
        sentence = r"^sam deploy failed: Error: TooLong .*\. The stack runs as before\.$"
        with pytest.raises(ConsoleError, match=sentence):
            deploy(project, instance, parameters={"Name": "two"}, runner=failing)
        assert instance.read() == local.record


def test_a_template_that_is_not_valid_is_refused_before_anything_is_built(project: Path) -> None:
    with up(project) as local:
        (project / "template.yaml").write_text("Resources: [")
        tools = Tools()
        with pytest.raises(ConsoleError, match="is not valid YAML"):
            deploy(project, instance_of(local, project), runner=tools)
        assert tools.calls == []


@pytest.mark.parametrize("folder", ["functions/agents/stock", "layers/workflows/workflows"])
def test_code_that_is_not_python_is_neither_deployed_nor_started(
    project: Path, folder: str
) -> None:
    local = up(project)
    (project / folder).mkdir(parents=True, exist_ok=True)
    (project / folder / "new.py").write_text("x = (\n")
    tools = Tools()
    with pytest.raises(
        ConsoleError, match=rf"{folder}/new\.py, line 1: .* code that runs stays\.$"
    ):
        deploy(project, instance_of(local, project), runner=tools)
    assert tools.calls == []
    local.down()
    with pytest.raises(ConsoleError, match=r"new\.py, line 1: .* Nothing was started\.$"):
        up(project)


def with_built_code(project: Path, instance: LocalFiles, text: str) -> None:
    """As SAM builds it; the stand-in for SAM builds the template only."""
    folder = built_folder(instance) / "Mine"
    folder.mkdir(exist_ok=True)
    (folder / "app.py").write_text(text)
    (project / "functions" / "mine" / "app.py").write_text(text)


def test_a_saved_file_replaces_its_copy_and_is_recorded(
    project: Path, functions: type[Functions]
) -> None:
    with up(project) as local:
        instance = instance_of(local, project)
        with_built_code(project, instance, "new = 1\n")
        putter = CodePutter(project, instance)
        (project / "functions/mine/app.py").write_text("new = 2\n")
        assert putter.put([Path("functions/mine/app.py")])
        assert functions.running["Mine"] == "new = 2\n"
        assert instance.read() == replace(local.record, changed=["Mine"])
        assert putter.put([Path("template.yaml")]) is None


@pytest.mark.exhaustive
def test_a_file_that_is_not_python_stays_out(project: Path, functions: type[Functions]) -> None:
    with up(project) as local:
        instance = instance_of(local, project)
        with_built_code(project, instance, "new = 1\n")
        putter = CodePutter(project, instance)
        (project / "functions/mine/app.py").write_text("new = (\n")
        with pytest.raises(ConsoleError, match=r"^functions/mine/app.py, line 1: '\(' was never"):
            putter.put([Path("functions/mine/app.py")])
        assert functions.running["Mine"] == "old"
        assert (built_folder(instance) / "Mine" / "app.py").read_text() == "new = 1\n"


@pytest.mark.parametrize("fails", [False, True])
def test_a_deployment_puts_back_code_that_cloudformation_does_not_know(
    project: Path, functions: type[Functions], fails: bool
) -> None:
    class Builds(Tools):
        def _build(self, call: object) -> None:
            super()._build(call)  # type: ignore[arg-type]  # a Call
            new = built_folder(instance).with_name("build.new") / "Mine"
            new.mkdir()
            (new / "app.py").write_text("built")

    with up(project) as local:
        instance = instance_of(local, project)
        instance.write(replace(local.record, changed=["Mine"]))
        tools = Builds(failing={"deploy": "Error: no"} if fails else {})
        if fails:
            with pytest.raises(ConsoleError, match="The stack runs as before"):
                deploy(project, instance, runner=tools)
        else:
            assert deploy(project, instance, runner=tools).changed == []
        assert functions.running["Mine"] == "built"
        assert functions.layers_put_back == (0 if fails else 1)


def test_two_updates_at_once_are_refused(project: Path) -> None:
    with up(project) as local:
        instance = instance_of(local, project)
        with instance.updating(), pytest.raises(ConsoleError, match="Another command updates"):
            deploy(project, instance, runner=Tools())


@pytest.mark.exhaustive
def test_where_none_or_several_run_the_sentence_says_what_to_do(project: Path) -> None:
    with pytest.raises(ConsoleError, match=r"^No local AWS runs here\. `roundsman"):
        running_instance(project, None)
    with up(project) as one, up(project) as other:
        with pytest.raises(ConsoleError, match=r"Choose one with --port\.$"):
            running_instance(project, None)
        assert running_instance(project, other.record.port).port == other.record.port
        with pytest.raises(ConsoleError, match="No local AWS runs here on port 1\\."):
            running_instance(project, 1)
        instance = instance_of(one, project)
        instance.write(replace(one.record, emulator=None))
        with pytest.raises(ConsoleError, match="has ended"):
            running_instance(project, one.record.port)
        instance.write(replace(one.record, deployed=False))
        with pytest.raises(ConsoleError, match="is still starting"):
            running_instance(project, one.record.port)
        instance.write(one.record)
