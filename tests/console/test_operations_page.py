"""Pages with console blocks show what the commands print, and in which states each is accepted."""

import os
import random
import re
from collections.abc import Mapping

import pytest

from roundsman.engine.transitions import MayBecome, TaskEvent, task_transition
from roundsman.model.states import TaskState
from roundsman_console.commands import all_commands
from tests.console.operations_page import (
    DOCS,
    RUNBOOK,
    STORIES,
    blocks,
    page_of,
    pages,
    replaced,
    rerun,
)
from tests.console.operators import Operator

EVENTS = {
    "resubmit": TaskEvent.RESUBMIT,
    "undo": TaskEvent.UNDO_ASKED,
    "cancel": TaskEvent.CANCEL,
    "resolve": TaskEvent.RESOLVE,
    "extend": TaskEvent.EXTEND,
    "run": TaskEvent.RUN_NOW,
    "move": TaskEvent.MOVE,
    "erase": TaskEvent.ERASE,
}


@pytest.fixture
def stack_parameters(stack_parameters: Mapping[str, str]) -> Mapping[str, str]:
    """With as many shards as an application has whose template says nothing of them."""
    return {**stack_parameters, "Engine.DueShards": "16"}


LONG = (
    "circuit-open",
    "extended",
    "held",
    "undo-by-hand",
    "audited",
    "dead-letters",
    "dead-of-a-crash",
    "did",
    "doctor",
    "look",
    "many-completed",
    "many-orders",
    "refused-for-good",
    "released",
    "undo-failed",
)
"""They take most of the time; what each shows has tests of its own, with smaller stories."""


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(story, marks=[pytest.mark.exhaustive] if story in LONG else [])
        for story in STORIES
    ],
)
def test_what_the_page_shows_is_what_is_printed(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, story: str
) -> None:
    monkeypatch.setenv("LOGNAME", "amy")
    monkeypatch.setattr(random, "random", lambda: 0.5)  # the waits before repetitions
    file = page_of(story)
    page = file.read_text(encoding="utf-8")
    printed = rerun(blocks(page)[story], story, operator)
    if os.environ.get("REWRITE_PAGES"):
        file.write_text(replaced(page, story, printed), encoding="utf-8")
        return
    assert printed == blocks(page)[story]


def test_the_pages_have_every_story_once() -> None:
    found = [story for page in pages() for story in blocks(page.read_text(encoding="utf-8"))]
    assert sorted(found) == sorted(STORIES)


def test_one_page_explains_every_state() -> None:
    texts = [page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md")]
    assert any(all(f"\n| {state} | " in text for state in TaskState) for text in texts)


def test_the_page_lists_the_states_in_which_each_verb_is_accepted() -> None:
    page = (RUNBOOK / "repair.md").read_text(encoding="utf-8")
    heard: dict[str, set[str]] = {}
    for verb, states in re.findall(r"^\| `([a-z]+) ORDER[^|]*\|[^|]*\| ([^|]*) \|$", page, re.M):
        heard.setdefault(verb, set()).update(states.split(", "))
    assert heard == {
        verb: {s.value for s in TaskState if isinstance(task_transition(s, event), MayBecome)}
        for verb, event in EVENTS.items()
    }
    assert set(EVENTS) <= {command.name for command in all_commands()}
