"""The page for authors of agents says what is so."""

import ast
import re
from pathlib import Path

import pytest

from roundsman.agents.agent import StepRequest
from roundsman.agents.callbacks import callback_token
from roundsman.model.events import Outcome
from roundsman.wire.messages import Reply
from roundsman_dev.template import mapping_of
from roundsman_testing.remote_services import RemoteServices
from tests.project import load_template
from tests.support.agent_samples import request

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "agent.md").read_text(encoding="utf-8")


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
        for file in (ROOT / "tests" / "unit" / "agents").glob("test_bad_partners*.py")
        for function in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(function, ast.FunctionDef) and function.name.startswith("test_")
    )


def test_the_environment_on_the_page_is_the_templates() -> None:
    listed = re.search(r"environment, which its stack sets: (.*?)\.\n", PAGE, re.DOTALL)
    assert listed is not None
    template = load_template()
    function = mapping_of(mapping_of(template["Resources"])["PaymentFunction"])
    named = mapping_of(mapping_of(mapping_of(function["Properties"])["Environment"])["Variables"])
    asked = {name for name in named if not name.startswith("POWERTOOLS_")}
    assert set(re.findall(r"`(\w+)`", listed[1])) == asked
