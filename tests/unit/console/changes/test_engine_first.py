"""The engine is deployed before an agent that returns what the deployed scheduler may not know."""

import re
from pathlib import Path

import pytest

import roundsman
from roundsman_dev.changes.engine_first import FORMS, REPLIES, engine_first

ENGINE = Path(__file__).parents[4] / "stacks" / "engine.yaml"
POLLS = "from roundsman import NotYet\n\ndef perform(request):\n    return NotYet(again_in=1)\n"
WHERE = "functions/agents/stock/app.py"


@pytest.mark.parametrize("settings", [{}, {REPLIES: "0"}, {REPLIES: "?"}])
def test_a_poll_needs_an_engine_that_reads_it(settings: dict[str, str]) -> None:
    [sentence] = engine_first({WHERE: POLLS}, settings)
    assert sentence.startswith(f"{WHERE} returns NotYet, which the deployed scheduler may not know")
    assert "deploy the engine first" in sentence


@pytest.mark.parametrize(
    ("source", "settings"),
    [
        (POLLS, {REPLIES: "1"}),
        (POLLS, {REPLIES: "2"}),
        ("def perform(request):\n    return {}\n", {}),
        ("from roundsman import NotYet  # not used yet\n", {}),
    ],
)
def test_what_the_deployed_engine_reads_or_no_agent_returns_needs_nothing(
    source: str, settings: dict[str, str]
) -> None:
    assert engine_first({WHERE: source}, settings) == []


def test_the_stack_says_which_replies_its_scheduler_reads_and_each_name_is_one_of_authors() -> None:
    [said] = re.findall(rf"- {REPLIES}=(\d+)", ENGINE.read_text())
    assert int(said) == max(FORMS.values())
    assert all(hasattr(roundsman, name) for name in FORMS)
