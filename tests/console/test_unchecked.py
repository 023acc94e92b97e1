"""No order event is sent unchecked: the message if the workflows cannot be imported."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from roundsman_console.base.errors import ConsoleError
from roundsman_console.facts.application import check_event

ORDER = '{"orderId": "a"}'
GOOD = """from datetime import timedelta

from roundsman import Archive, Step, Workflow

send = Step(name="send", agent="mail", complete_within=timedelta(seconds=5))
paper = Workflow(
    name="paper",
    steps=(send,),
    complete_within=timedelta(minutes=5),
    on_failure=Archive(),
    retain_for=timedelta(days=1),
)
"""


def of_workflows() -> list[str]:
    return [name for name in sys.modules if name.split(".")[0] == "workflows"]


@pytest.fixture
def layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The workflows of an application in the current folder, in place of the example's."""
    folder = tmp_path / "layers/workflows/workflows"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "registry.py").write_text(
        "from workflows.paper import paper\n\nWORKFLOWS = {paper.name: paper}\n"
    )
    (folder / "paper.py").write_text(GOOD)
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    monkeypatch.setattr(sys, "path", [str(folder.parent), *sys.path])
    example = {name: sys.modules.pop(name) for name in of_workflows()}
    yield folder
    for name in of_workflows():
        del sys.modules[name]
    sys.modules.update(example)


def refused() -> str:
    with pytest.raises(ConsoleError) as raised:
        check_event("first.json", ORDER, " Correct it.")
    return str(raised.value)


def test_an_event_of_workflows_that_are_python_is_checked(layer: Path) -> None:
    check_event("first.json", ORDER)


PAPER = "layers/workflows/workflows/paper.py"
REGISTRY = "layers/workflows/workflows/registry.py"


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("steps=(send,),", "steps=(send,) oops,", f"{PAPER}, line 8: it is not Python: "),
        ("paper = Workflow(", "  paper = Workflow(", f"{PAPER}, line 6: it is not Python: "),
        ("on_failure=Archive(),", "on_failure=Nothing(),", f"{PAPER}, line 10: NameError: "),
        ("import timedelta", "import timedeltas", f"{PAPER}, line 1: ImportError: "),
        ("from datetime", "from no_such_library", f"{PAPER}, line 1: ModuleNotFoundError: "),
        ('name="send"', 'name="Send it"', f"{PAPER}, line 5: DefinitionError: "),
        ("paper = Workflow(", "papers = Workflow(", f"{REGISTRY}, line 1: ImportError: "),
    ],
)
def test_nothing_is_sent_where_the_workflows_cannot_be_imported(
    layer: Path, old: str, new: str, place: str
) -> None:
    assert old in GOOD
    (layer / "paper.py").write_text(GOOD.replace(old, new))
    message = refused()
    assert message.startswith(
        f"first.json was not checked. The workflows cannot be imported: {place}"
    ), message
    assert message.endswith(". Nothing was sent. Correct it.")
    assert "Traceback" not in message


def test_nothing_is_sent_where_the_registry_is_not_one(layer: Path) -> None:
    (layer / "registry.py").write_text("WORKFLOWS = []\n")
    assert refused() == (
        f"first.json was not checked. WORKFLOWS in {REGISTRY} must be a dict of workflows, by "
        "name. Nothing was sent. Correct it."
    )


def test_a_registry_without_its_dict_is_named(layer: Path) -> None:
    (layer / "registry.py").write_text("OTHERS = {}\n")
    assert f"{REGISTRY}: AttributeError: " in refused()
