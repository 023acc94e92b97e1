"""The page for authors of agents says what is so."""

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
    public = set(StepRequest.__dataclass_fields__) - {
        "ends_at",
        "clock",
        "show_progress",
        "payloads",
    }
    assert not [name for name in public if f"`{name}`" not in PAGE]


FAULTS = "".join(
    file.read_text(encoding="utf-8")
    for file in sorted((ROOT / "tests" / "unit" / "agents").glob("test_bad_partners*.py"))
)
"""The tests of what becomes of a step whose service is bad."""


SENTENCE = re.compile(r'fails\w*\(\s*(?:"\w+",\s*)?f?"([^"]+)"')


def alike(text: str) -> str:
    """The text with each number, each value of an f-string and each method replaced."""
    return re.sub(r"\{[^{}]*\}|\d+|\bGET\b|\bPOST\b", "#", text)


def test_every_reason_in_the_table_has_its_test_and_every_tested_reason_is_in_the_table() -> None:
    table = PAGE.partition("| the service | counts as |")[2].partition("\n\n")[0]
    cells = [row.rsplit("|", 2)[1] for row in table.splitlines() if row.startswith("| ")]
    reasons = [alike(one) for cell in cells for one in re.findall(r"`([^`]+ [^`]+)`", cell)]
    assert len(reasons) > 20
    assert not [one for one in reasons if one not in alike(FAULTS)]
    tested = [alike(one) for one in re.findall(SENTENCE, FAULTS)]
    assert len(tested) > 25
    assert not [one for one in tested if not any(reason in one for reason in reasons)]


def test_the_environment_on_the_page_is_the_templates() -> None:
    listed = re.search(r"environment, which its stack sets: (.*?)\.\n", PAGE, re.DOTALL)
    assert listed is not None
    template = load_template()
    function = mapping_of(mapping_of(template["Resources"])["PaymentFunction"])
    named = mapping_of(mapping_of(mapping_of(function["Properties"])["Environment"])["Variables"])
    asked = {name for name in named if not name.startswith("POWERTOOLS_")}
    assert set(re.findall(r"`(\w+)`", listed[1])) == asked
