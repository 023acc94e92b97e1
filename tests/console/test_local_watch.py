"""Watching a project: which files count, when they are at rest, and what each change needs."""

from pathlib import Path

import pytest

from roundsman_console.aws.local_record import LocalFiles, LocalRecord
from roundsman_console.base.errors import ConsoleError
from roundsman_console.base.process import ProcessIdentity
from roundsman_dev.local import watch
from roundsman_dev.local.code import (
    Artifact,
    artifacts,
    check_syntax,
    code_change,
    copy_files,
    packed,
)
from roundsman_dev.local.watch import (
    changes,
    difference,
    name_files,
    name_functions,
    snapshot,
    watch_project,
)

ROOT = """
Resources:
  CoreLayer:
    Type: AWS::Serverless::LayerVersion
    Properties: {ContentUri: layers/core, LayerName: !Sub '${AWS::StackName}-core'}
  Alone:
    Type: AWS::Serverless::Function
    Properties: {CodeUri: functions/alone}
  Engine:
    Type: AWS::Serverless::Application
    Properties: {Location: stacks/engine.yaml}
  Payment:
    Type: AWS::Serverless::Application
    Properties: {Location: stacks/agent.yaml, Parameters: {Code: ../functions/agents/payment}}
  Elsewhere:
    Type: AWS::Serverless::Application
    Properties: {Location: 'https://example.com/stack.yaml'}
"""
ENGINE = """
Resources:
  SchedulerFunction:
    Type: AWS::Serverless::Function
    Properties: {CodeUri: ../functions/scheduler}
  Topic: {Type: AWS::SNS::Topic}
"""
AGENT = """
Parameters: {Code: {Type: String}}
Resources:
  Function:
    Type: AWS::Serverless::Function
    Properties: {CodeUri: !Ref Code}
"""
PAYMENT = Path("functions/agents/payment")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "template.yaml").write_text(ROOT)
    (tmp_path / "stacks" / "engine.yaml").write_text(ENGINE)
    (tmp_path / "stacks" / "agent.yaml").write_text(AGENT)
    (tmp_path / PAYMENT).mkdir(parents=True)
    (tmp_path / PAYMENT / "app.py").write_text("one = 1\n")
    (tmp_path / "layers/core/roundsman").mkdir(parents=True)
    (tmp_path / "layers/core/roundsman/a.py").write_text("a = 1\n")
    built = tmp_path / "build"
    (built / "Payment/Function").mkdir(parents=True)
    (built / "CoreLayer/python/roundsman/__pycache__").mkdir(parents=True)
    return tmp_path


def known(project: Path) -> list[Artifact]:
    return artifacts(project, project / "build", "shop")


def test_the_artifacts_are_those_of_the_template_and_of_its_nested_stacks(project: Path) -> None:
    built = project / "build"
    assert known(project) == [
        Artifact("shop-core", True, Path("layers/core"), built / "CoreLayer"),
        Artifact("Alone", False, Path("functions/alone"), built / "Alone"),
        Artifact(
            "SchedulerFunction",
            False,
            Path("functions/scheduler"),
            built / "Engine/SchedulerFunction",
        ),
        Artifact("PaymentFunction", False, PAYMENT, built / "Payment/Function"),
    ]


def test_a_file_of_a_function_and_one_of_a_layer_are_copied(project: Path) -> None:
    app, module = PAYMENT / "app.py", Path("layers/core/roundsman/a.py")
    change = code_change([app, module], known(project))
    assert change is not None
    assert [[each.name for each in change[file]] for file in (app, module)] == [
        ["PaymentFunction"],
        ["shop-core"],
    ]
    compiled = project / "build/CoreLayer/python/roundsman/__pycache__/a.cpython-311.pyc"
    compiled.touch()
    copy_files(project, change)
    built = project / "build"
    assert (built / "Payment/Function/app.py").read_text() == "one = 1\n"
    assert (built / "CoreLayer/python/roundsman/a.py").read_text() == "a = 1\n"
    assert not compiled.exists()  # Python would prefer it to the new source


def test_a_removed_file_is_removed_from_the_copy(project: Path) -> None:
    copy = project / "build/Payment/Function/app.py"
    copy.write_text("one = 1\n")
    (project / PAYMENT / "app.py").unlink()
    change = code_change([PAYMENT / "app.py"], known(project))
    assert change is not None
    copy_files(project, change)
    assert not copy.exists()


@pytest.mark.parametrize(
    "file",
    [
        "template.yaml",
        "stacks/agent.yaml",
        "functions/agents/payment/requirements.txt",
        "functions/agents/new/app.py",
        "layers/core/Makefile",
        "layers/core/other/a.py",  # a package that the Makefile may leave out
        "layers/core/a.py",
    ],
)
def test_any_other_file_needs_a_deployment(project: Path, file: str) -> None:
    assert code_change([PAYMENT / "app.py", Path(file)], known(project)) is None


def test_only_python_is_checked_and_a_removed_file_is_not(project: Path) -> None:
    (project / PAYMENT / "data.json").write_text("(")
    check_syntax(project, [PAYMENT / "data.json", PAYMENT / "gone.py", PAYMENT / "app.py"])
    (project / PAYMENT / "app.py").write_text("(")
    with pytest.raises(ConsoleError, match=r"The code that runs stays\.$"):
        check_syntax(project, [PAYMENT / "app.py"])


def test_an_archive_has_the_files_by_their_paths_in_the_folder(project: Path) -> None:
    (project / "build/CoreLayer/python/roundsman/a.py").write_text("a = 1\n")
    assert b"python/roundsman/a.py" in packed(project / "build/CoreLayer")


def test_files_of_editors_and_tools_do_not_count(project: Path) -> None:
    before = snapshot(project)
    assert PAYMENT / "app.py" in before
    assert Path("template.yaml") in before
    for name in (".app.py.swp", "app.py~", "#app.py#", "4913", "__pycache__/app.cpython-311.pyc"):
        path = project / PAYMENT / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    (project / "README.md").touch()
    assert snapshot(project) == before


def test_changed_new_and_removed_files_differ(project: Path) -> None:
    before = snapshot(project)
    (project / PAYMENT / "app.py").write_text("one = 2 \n")
    (project / PAYMENT / "new.py").touch()
    (project / "stacks/engine.yaml").unlink()
    expected = {PAYMENT / "app.py", PAYMENT / "new.py", Path("stacks/engine.yaml")}
    assert difference(before, snapshot(project)) == expected


def test_changed_files_are_reported_once_they_no_longer_change() -> None:
    a, b = Path("a"), Path("b")
    looks = iter([{}, {a: (1, 1)}, {a: (2, 1)}, {a: (2, 1)}, {a: (2, 1), b: (3, 1)}] * 2)
    naps: list[float] = []
    found = changes(lambda: next(looks), {}, naps.append)
    assert next(found) == {a}
    assert len(naps) == 3  # one while nothing changed, two until nothing changed any more


def test_a_change_during_an_update_is_in_the_next_set() -> None:
    a, b = Path("a"), Path("b")
    looks = iter([{a: (1, 1)}, {a: (1, 1)}, {a: (1, 1), b: (1, 1)}, {a: (1, 1), b: (1, 1)}])
    found = changes(lambda: next(looks), {}, lambda _: None)
    assert [next(found), next(found)] == [{a}, {b}]


GONE = ProcessIdentity(2**22 + 1, "never")
RECORD = LocalRecord(4510, GONE)


class Stack:
    """Stands in for the running stack: notes each call, and fails as often as the test sets."""

    def __init__(self, failing: int = 0, *, code_only: bool = True) -> None:
        self.asked: list[str] = []
        self.failing = failing
        self.code_only = code_only

    def __call__(self, *_: object) -> "Stack":
        return self

    def put(self, files: set[Path]) -> tuple[str, ...] | None:
        self.asked.append(f"put {name_files(files)}")
        self._fail()
        return ("Mine",) if self.code_only else None

    def deploy(self, *_: object) -> LocalRecord:
        self.asked.append("deploy")
        self._fail()
        return RECORD

    def _fail(self) -> None:
        self.failing -= 1
        if self.failing >= 0:
            raise ConsoleError("It is broken.")


def watched(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, project: Path, *sets: set[Path]
) -> list[str]:
    monkeypatch.setattr(watch, "CodePutter", stack)
    monkeypatch.setattr(watch, "deploy", stack.deploy)
    monkeypatch.setattr(watch, "running_record", lambda _: None)
    lines: list[str] = []

    watch_project(project, LocalFiles(project / "4510"), {}, lines.append, sets)
    return lines[1:]


def test_code_is_put_and_anything_else_deployed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = Stack()
    [line] = watched(stack, monkeypatch, project, {PAYMENT / "app.py"})
    assert stack.asked == ["put functions/agents/payment/app.py"]
    assert line.startswith("functions/agents/payment/app.py: updated Mine (")
    stack = Stack(code_only=False)
    lines = watched(stack, monkeypatch, project, {Path("template.yaml")})
    assert stack.asked == ["put template.yaml", "deploy"]
    assert lines[0] == "template.yaml: deploying the stack"


def test_after_an_error_the_next_change_includes_the_files_of_the_last(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = Stack(failing=1)
    lines = watched(stack, monkeypatch, project, {Path("a")}, {Path("b")}, {Path("c")})
    assert lines[0] == "a: It is broken."
    assert stack.asked == ["put a", "put a and 1 more", "put c"]


def test_after_a_failed_deployment_each_change_is_deployed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = Stack(code_only=False)
    stack.failing = 0
    original = stack.deploy
    outcomes = iter([1, 0, 0])

    def deploy(*_: object) -> LocalRecord:
        stack.failing = next(outcomes)
        return original()

    monkeypatch.setattr(stack, "deploy", deploy)
    watched(stack, monkeypatch, project, {Path("a")}, {Path("b")})
    assert stack.asked == ["put a", "deploy", "deploy"]


def test_the_watching_ends_where_the_local_aws_has_ended(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(_: object) -> None:
        raise ConsoleError("The local AWS on port 4510 has ended.")

    stack = Stack(failing=1)
    monkeypatch.setattr(watch, "CodePutter", stack)
    monkeypatch.setattr(watch, "running_record", ended)
    with pytest.raises(ConsoleError, match="has ended"):
        watch_project(project, LocalFiles(project / "4510"), {}, lambda _: None, [{Path("a")}])


def test_a_line_names_a_few_functions_and_counts_many() -> None:
    assert name_functions(["A", "B", "C"]) == "A, B, C"
    assert name_functions(["A", "B", "C", "D"]) == "4 functions"
    assert name_functions([]) == "0 functions"
