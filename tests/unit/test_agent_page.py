"""The page for authors of agents says what is so."""

import re
from pathlib import Path

import pytest

from roundsman.agent import StepRequest
from roundsman.events import Outcome
from roundsman.messages import Reply
from roundsman_console.services import RemoteServices

PAGE = (Path(__file__).parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")


def test_the_code_on_the_page_runs_as_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, object] = {}
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
