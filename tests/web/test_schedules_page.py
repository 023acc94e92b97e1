"""The page of recurring orders: next runs, what was skipped and why, and the forms of its verbs."""

from collections.abc import Iterator
from itertools import islice

import pytest

from roundsman.definition.recurrence import Recurrence
from roundsman.model.instants import second
from roundsman.model.schedules import ScheduleRecord, SkippedRun
from roundsman_console.aws.stack import find_stack
from tests.console.test_schedules import EXPRESSION, ZONE, event, made_schedules
from tests.web.browsers import Browser

HOSTILE = "</td><script>alert(1)</script>"


@pytest.fixture
def shown(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    with made_schedules(browser.operator, event(overlap="queue"), monkeypatch):
        yield browser


def test_the_page_has_next_runs_what_waits_and_what_was_skipped(shown: Browser) -> None:
    at = shown.operator.world.clock()
    stack = find_stack(None)
    record = ScheduleRecord(
        "weekly",
        current="weekly-1",
        began_at=at,
        queued=("weekly-2",),
        skipped=(SkippedRun("weekly-3", at, HOSTILE),),
        version=1,
    )
    assert stack.schedules.write(record, now=at)
    page = shown.html("/schedules")
    [run] = islice(Recurrence(EXPRESSION, ZONE).runs(at), 1)
    assert second(run)[:10] in page
    for words in ("weekly-1", "weekly-2", "weekly-3", "1 order waiting", "a run waits for the one"):
        assert words in page
    assert "<script>alert(1)" not in page
    for verb in ("pause", "run", "backfill"):
        assert f'href="/commands/schedules-{verb}?schedule=weekly"' in page


def test_a_schedule_is_paused_and_resumed_by_its_forms(shown: Browser) -> None:
    stack = find_stack(None)
    shown.carries_out("schedules-pause", schedule="weekly", reason="audit")
    [pause] = stack.schedules.pauses()
    assert (pause.target, pause.reason) == ("weekly", "audit")
    page = shown.html("/schedules")
    assert "paused by" in page
    assert 'href="/commands/schedules-resume?schedule=weekly"' in page
    shown.carries_out("schedules-resume", schedule="weekly")
    assert stack.schedules.pauses() == []
