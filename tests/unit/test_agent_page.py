"""The page for authors of agents says what is so."""

import ast
import re
from pathlib import Path

import pytest

from roundsman.agent import StepRequest
from roundsman.callbacks import callback_token
from roundsman.events import Outcome
from roundsman.messages import Reply
from roundsman_console.services import RemoteServices
from tests.unit.agent_samples import request

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "agents.md").read_text(encoding="utf-8")


def test_the_code_on_the_page_runs_as_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, object] = {"token": callback_token(request(), "payment")}
    with RemoteServices() as services:
        monkeypatch.setenv("SERVICE_URL", services.url)
        for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
            exec(block, names)  # noqa: S102  # our own page
    answer = names["answer"]
    assert isinstance(answer, Reply)
    assert answer.outcome is Outcome.SUCCEEDED


def test_every_field_of_a_request_is_on_the_page() -> None:
    public = set(StepRequest.__dataclass_fields__) - {"ends_at", "clock", "show_progress"}
    assert not [name for name in public if f"`{name}`" not in PAGE]


def test_every_fault_in_the_table_has_its_test_and_every_test_is_in_the_table() -> None:
    table = PAGE.partition("## Bad partners")[2].partition("\n## ")[0]
    rows = [row.rsplit("|", 2)[1].strip() for row in table.splitlines() if row.startswith("| ")]
    named = [name.strip("`") for name in rows if name.startswith("`")]
    assert named
    assert sorted(named) == sorted(
        function.name
        for file in HERE.glob("test_bad_partners*.py")
        for function in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(function, ast.FunctionDef) and function.name.startswith("test_")
    )
