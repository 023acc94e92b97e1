"""Work that takes longer than a page: its page shows the progress, and how it ended."""

import threading
from contextvars import copy_context

import pytest

from roundsman.errors import TryAgain
from roundsman_console.acts.actor import act_for, signed_in
from roundsman_console.base.errors import InspectorError, NotFound
from roundsman_console.faces.web import work as works
from roundsman_console.faces.web.work import BROKEN, Work, WorkResult, Works, works_of
from tests.web.browsers import Browser

DONE = WorkResult("It is done.", good=True, page="/orders/ord-1")


def ended(work: Work) -> Work:
    """The work after its end."""
    assert work.thread is not None
    work.thread.join()
    return work


def nothing(_: Work) -> WorkResult:
    return DONE


def test_a_page_shows_the_progress_and_is_live_until_the_end(browser: Browser) -> None:
    began, goes_on = threading.Event(), threading.Event()

    def do(work: Work) -> WorkResult:
        work.add_line("0.1 s  sent <b>ord-1</b>\x1b")
        work.counts("1 of 2 orders sent")
        began.set()
        goes_on.wait()
        return DONE

    work = works_of(browser.inspector).start("Smoke test", "/doctor", do)
    began.wait()
    html = browser.html(f"/progress/{work.id}")
    page = browser.page(f"/progress/{work.id}")
    goes_on.set()
    assert "It runs: 1 of 2 orders sent." in page
    assert "0.1 s sent <b>ord-1</b>?" in page
    assert "<b>" not in html
    assert "data-live" in html
    ended(work)
    html = browser.html(f"/progress/{work.id}")
    assert "It is done." in html
    assert 'href="/orders/ord-1"' in html
    assert "data-live" not in html


def test_a_work_that_is_not_known_is_not_found(browser: Browser) -> None:
    assert "This work is not known" in browser.page("/progress/none", 404)


def test_a_work_acts_for_the_person_who_began_it_until_its_end() -> None:
    seen: list[str | None] = []

    def do(_: Work) -> WorkResult:
        seen.append(signed_in())
        act_for("ben")  # it changes nothing outside
        return DONE

    def begin() -> list[str | None]:
        act_for("amy")
        for _ in range(2):
            ended(Works().start("Reconcile", "/", do))
        return [*seen, signed_in()]

    assert copy_context().run(begin) == ["amy", "amy", "amy"]
    assert signed_in() is None


def test_a_few_run_at_once_and_one_more_is_refused() -> None:
    goes_on, all_of_them = threading.Event(), Works()

    def do(_: Work) -> WorkResult:
        goes_on.wait()
        return DONE

    running = [all_of_them.start(str(n), "/", do) for n in range(works.MOST_AT_ONCE)]
    with pytest.raises(InspectorError, match="run already"):
        all_of_them.start("more", "/", do)
    goes_on.set()
    assert all(not ended(work).runs for work in running)
    assert ended(all_of_them.start("more", "/", nothing)).result == DONE


def test_the_works_that_ended_first_are_forgotten_first() -> None:
    all_of_them = Works()
    known = [ended(all_of_them.start(str(n), "/", nothing)).id for n in range(works.MOST_KEPT + 2)]
    for forgotten in known[:2]:
        with pytest.raises(NotFound):
            all_of_them.find(forgotten)
    assert [all_of_them.find(one).id for one in known[2:]] == known[2:]


def test_an_error_of_aws_is_the_result_in_words() -> None:
    def do(_: Work) -> WorkResult:
        raise TryAgain("reading the queues: throttled")

    found = ended(Works().start("x", "/", do)).result
    assert found == WorkResult("reading the queues: throttled.", good=False)


def test_an_error_of_the_console_ends_the_work_and_is_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    printed: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: printed.append(args.exc_value))

    def do(_: Work) -> WorkResult:
        raise RuntimeError("a fault")

    assert ended(Works().start("x", "/", do)).result == BROKEN
    assert [str(one) for one in printed] == ["a fault"]


def test_lines_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(works, "MOST_LINES", 2)
    work = Work("x", "/")
    for line in "abc":
        work.add_line(line)
    assert work.lines == ["a", "b"]
