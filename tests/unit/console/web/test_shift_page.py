"""The page of a shift: its cells, where they lead, and what stands on it of strange texts."""

from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from roundsman.model.instants import second
from roundsman_console.faces.web.access.session import Session, begin_request
from roundsman_console.faces.web.pages import shift as page
from roundsman_console.faces.web.pages.shift import Cell, rows_of
from roundsman_console.faces.web.templates import Templates
from roundsman_console.faces.web.whereabouts import Whereabouts
from roundsman_console.facts.course.marks import EventMark, MarkKind
from roundsman_console.facts.finding.table import DOCTOR
from roundsman_console.facts.shift.report import (
    UNKNOWN,
    AlertChange,
    FailedGroup,
    GivenCommand,
    OpenProblem,
    Section,
    Shift,
    ShiftRun,
    shift_run,
)
from roundsman_console.inspector import Inspector
from tests.console.step_samples import AT
from tests.unit.console.shift.test_reading import SINCE, bulk

STRANGE = "<b>\x1b[31m\u202e"
SHOWN = "&lt;b&gt;?[31m?"
GROUP = FailedGroup(
    first_at=None,
    last_at=AT,
    group="f-1a2b3c4d",
    standing="open",
    orders=None,
    workflow="story",
    step="charge",
    cause="no money",
)
COMMAND = GivenCommand(
    at=AT, order="a/b c", command="resubmit", by="amy", sender=None, reason="it is repaired"
)
SHIFT = Shift(
    stack="shop",
    since=SINCE,
    until=AT,
    open_now=[],
    groups=[GROUP],
    alerts=[],
    holds=[],
    commands=[],
    bulk_runs=[],
    notes=[],
    deployments=[],
    left_out=["Something is not kept."],
    unread=[],
)


def cells(*rows: object) -> dict[str, Cell]:
    """The cells of the first row, by their headings."""
    [first, *_] = rows_of(Section("Part", cast("Sequence[GivenCommand]", rows), "Nothing."))
    return {cell.heading: cell for cell in first}


def problem(command: str) -> OpenProblem:
    return OpenProblem(since=AT, severity="error", sentence="it is wrong", next=command)


# ---- cells ---------------------------------------------------------------------------------------


def test_a_number_is_on_the_right_a_long_text_is_wide_and_an_instant_is_one() -> None:
    found = cells(replace(GROUP, orders=3))
    assert (found["Orders, at least"].kind, found["Cause"].kind) == ("right", "words")
    assert found["Workflow"].kind == ""
    assert (found["Last"].at, found["Workflow"].at) == (AT, None)
    unknown = cells(GROUP)["First"]
    assert (unknown.at, unknown.text) == (None, UNKNOWN)


def test_a_column_in_which_nothing_is_is_left_out() -> None:
    run = shift_run(bulk(1))
    assert run.requests == ()
    assert "Asked for" not in cells(run)
    asked = replace(run, requests=["Stopped by amy."])
    [first, second_row] = rows_of(Section("Bulk runs", [run, asked], "Nothing."))
    assert [cell.heading for cell in first] == [cell.heading for cell in second_row]
    assert "Asked for" in {cell.heading for cell in first}


def test_an_order_a_group_and_a_run_lead_to_their_pages_and_other_texts_nowhere() -> None:
    assert cells(COMMAND)["Order"].address == "/orders/a%2Fb%20c"
    assert cells(GROUP)["Group"].address == "/groups/f-1a2b3c4d"
    run = cells(shift_run(bulk(1)))
    assert (run["Run"].address, run["Group"].address) == ("/bulk/b-00000001", "/groups/f-1a2b3c4d")
    alone: ShiftRun = replace(shift_run(bulk(1)), group=None)
    [row] = rows_of(Section("Bulk runs", [alone], "Nothing."))
    assert {cell.address for cell in row} == {"", "/bulk/b-00000001"}
    alert = AlertChange(at=AT, change="raised", about="f-1a2b3c4d", sentence="f-1a2b3c4d")
    assert cells(alert)["About"].address == "/groups/f-1a2b3c4d"
    assert cells(alert)["What"].address == "", "a sentence is no name"
    alarm = replace(alert, about="BacklogAlarm")
    assert cells(alarm)["About"].address == ""


@pytest.mark.parametrize(
    ("command", "words", "address"),
    [
        ("roundsman ls --group f-1a2b3c4d", "Open the group", "/groups/f-1a2b3c4d"),
        ("roundsman show ord-1", "Open the order", "/orders/ord-1"),
        ("roundsman ls --state Archived", "Open the orders", "/orders?state=Archived"),
        ("roundsman groups", "Open the groups", "/groups"),
        ("roundsman rejected ls", "Open the rejected messages", "/rejected"),
        ("roundsman dlq ls", "Open the dead letters", "/dead-letters"),
        ("roundsman stats", "Open the overview", "/#queues"),
        ("roundsman release mail", "Open the agents", "/agents"),
        (DOCTOR, "Open the doctor", "/doctor"),
        ("aws sns publish", "aws sns publish", ""),
        ("roundsman audit", "roundsman audit", ""),
    ],
)
def test_the_next_command_is_a_link_to_the_page_that_shows_the_same(
    command: str, words: str, address: str
) -> None:
    found = cells(problem(command))["Next"]
    assert (found.text, found.address) == (words, address)


# ---- the page ------------------------------------------------------------------------------------


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, object]]:
    """Reads the page of a shift for what was typed."""
    monkeypatch.setattr(page, "now", lambda: AT)

    def reads(since: str | None = None, found: Shift = SHIFT) -> dict[str, object]:
        stack = SimpleNamespace(shift=lambda begins: replace(found, since=begins))
        given = {} if since is None else {"since": since}
        with monkeypatch.context() as patch:
            patch.setattr(page, "with_releases_here", lambda _stack, marks, *_: [*marks, *HERE])
            return dict(page.read(cast("Inspector", stack), given))

    return reads


def mark(at: int) -> EventMark:
    return EventMark(at=at, kind=MarkKind.RELEASE, about="mail", words="released mail", by="amy")


HERE = [mark(SINCE - 1), mark(AT), mark(SINCE), mark(AT + 1)]
"""The releases in this console."""


@pytest.mark.parametrize(
    ("typed", "since"), [(None, "12h"), ("", "12h"), (" ", "12h"), (" 8h ", "8h")]
)
def test_a_shift_is_12_hours_long_if_nobody_says_another_time(
    read: Callable[..., dict[str, object]], typed: str | None, since: str
) -> None:
    assert read(typed)["since"] == since


def test_the_releases_of_this_console_are_those_of_the_shift(
    read: Callable[..., dict[str, object]],
) -> None:
    shift = read("8h")["shift"]
    assert isinstance(shift, Shift)
    assert [one.at for one in shift.holds] == [SINCE, AT]


def html(values: dict[str, object], *, in_memory: bool = False) -> str:
    """The page of these values."""

    def render() -> str:
        begin_request(Session())
        templates = Templates(Whereabouts("shop", in_memory=in_memory))
        return templates.render("shift.html", values, path="/shift")

    whole = copy_context().run(render)
    return whole[whole.index("<main") : whole.index("</main>")]


def test_a_time_that_is_wrong_is_marked_beside_its_field_and_nothing_else_is_shown(
    read: Callable[..., dict[str, object]],
) -> None:
    found = html(read("soon"))
    assert 'value="soon" maxlength="40" autocomplete="off" required aria-invalid="true"' in found
    assert 'aria-describedby="wrong-since" autofocus>' in found
    assert "<section" not in found
    right = html(read("8h"))
    assert 'value="8h" maxlength="40" autocomplete="off" required>' in right
    assert 'class="wrong"' not in right


def test_strange_texts_are_inert_wherever_they_stand(
    read: Callable[..., dict[str, object]],
) -> None:
    wrong = {**read("soon"), "since": STRANGE, "wrong": STRANGE}
    assert html(wrong).count(SHOWN) == 2
    strange = replace(
        SHIFT,
        stack=STRANGE,
        groups=[replace(GROUP, cause=STRANGE)],
        commands=[replace(COMMAND, order=STRANGE)],
        unread=[STRANGE],
    )
    values = {**read("8h", strange), "since": STRANGE}
    text = html(values)
    assert not {"\x1b", "\u202e"} & {*text}
    assert text.count(SHOWN) == 6


def test_what_was_read_is_counted_and_what_was_not_is_never_said_to_be_nothing(
    read: Callable[..., dict[str, object]],
) -> None:
    text = html(read("8h"))
    assert '<h2 id="part-2">Failures <span class="quiet">1</span></h2>' in text
    assert '<h2 id="part-3">Alerts</h2>' in text
    assert "No bulk run was started." in text
    assert "<li>Something is not kept.</li>" in text
    assert f"{second(AT)[:10]} {second(AT)[11:19]} UTC" in text
    partly = html(read("8h", replace(SHIFT, unread=["Alarms: no right"])))
    assert "Not read: Alarms: no right" in partly
    assert "No bulk run was started." not in partly
    assert partly.count("Nothing was found; not everything was read.") == 6


def test_the_command_is_named_where_a_terminal_reaches_the_stack(
    read: Callable[..., dict[str, object]],
) -> None:
    values = read("8h")
    assert "<code>roundsman shift --since 8h --json</code>" in html(values)
    assert "--json" not in html(values, in_memory=True)


def test_each_time_that_is_offered_is_one_that_can_be_meant(
    read: Callable[..., dict[str, object]],
) -> None:
    for often in page.OFTEN:
        found = read(often)
        assert found["wrong"] == ""
        assert f'href="/shift?since={often}"' in html(found)
