"""Notes on a failure group in the browser, and who else looks at it: two persons at one group."""

import re
from collections.abc import Iterator
from typing import cast

import pytest
from botocore.exceptions import ClientError
from httpx2 import Response

from roundsman_console.aws.group_notes import HERE_FOR, READ_EVERY
from roundsman_console.aws.stack import find_stack
from roundsman_console.facts.application import application_events
from roundsman_console.inspector import Inspector
from tests.console.bulk_stories import archived
from tests.console.operators import Operator
from tests.web.browsers import Browser, text_of
from tests.web.hand import Hand
from tests.web.test_team import Desk, desk_of

TEXT = "The bank is told, and calls back at 09:00 UTC."
HOSTILE = '"><script>alert(1)</script>\x1b[31m\u202e{{ 7 * 7 }}'


@pytest.fixture
def group(operator: Operator) -> str:
    """The group of three orders."""
    return archived(operator, 3)


@pytest.fixture
def desk(operator: Operator, group: str) -> Iterator[Desk]:
    """A team before the operator's stack, with a group of orders."""
    del operator, group
    yield from desk_of(Inspector(find_stack(None, application_events())))


def stored(operator: Operator, key: str) -> dict[str, object]:
    found = operator.world.dynamodb.get_item(
        TableName=operator.world.stack.outputs["ControlTableName"], Key={"ControlId": {"S": key}}
    )
    return dict(found.get("Item", {}))


def notes_of(operator: Operator, group: str) -> list[dict[str, str]]:
    """The notes as the command line reads them."""
    return cast("list[dict[str, str]]", operator.reads("groups", "show", group)["notes"])


def notes_in(html: str) -> list[str]:
    """The notes as the page lists them."""
    section = re.search(r'<section aria-labelledby="notes".*?</section>', html, re.DOTALL)
    assert section is not None
    return [text_of(one) for one in re.findall(r"<li>.*?</li>", section[0], re.DOTALL)]


def as_person(desk: Desk, name: str, group: str) -> str:
    answer = desk.get(f"/groups/{group}", sub=name)
    assert answer.status_code == 200, text_of(answer.text)
    return answer.text


# ---- one person -------------------------------------------------------------------------------


def test_a_note_is_written_by_one_click_and_stands_on_the_page(
    browser: Browser, group: str
) -> None:
    person = Hand(browser).opens(f"/groups/{group}")
    assert "Nobody has written a note on this group." in person.text
    person.sends("Write the note", Note=TEXT)
    assert (person.clicks, person.address.split("?")[0]) == (1, f"/groups/{group}")
    assert f"Done: the note on {group} is stored for 90 days." in person.text
    browser.operator.world.clock.now += 60_000
    person.sends("Write the note", Note="It called back.")
    first, last = notes_in(person.html)
    assert "It called back." in first
    assert f"by {notes_of(browser.operator, group)[0]['by']}: " in first
    assert TEXT in last
    assert re.search(r'<a href="#notes">2</a>, the newest', person.html)
    assert TEXT in browser.page("/shift?since=1h")


def test_a_note_keeps_its_lines_on_the_page_and_is_one_line_elsewhere(
    browser: Browser, group: str
) -> None:
    person = Hand(browser).opens(f"/groups/{group}")
    person.sends("Write the note", Note="The bank <b>is told</b>.\r\nIt calls back.")
    assert '<span class="lines">The bank &lt;b&gt;is told&lt;/b&gt;.\nIt calls back.</span>' in (
        person.html
    )
    line = "The bank <b>is told</b>. It calls back."
    assert line in browser.operator.types("groups", "show", group).stdout
    assert line in browser.operator.types("shift", "--since", "1h").stdout
    assert "?" not in re.findall("The bank.*", browser.page("/shift?since=1h"))[0].split("back")[0]


def test_what_is_wrong_with_a_note_stands_beside_it_and_nothing_typed_is_lost(
    browser: Browser, group: str
) -> None:
    person = Hand(browser).opens(f"/groups/{group}")
    long = "so it is. " * 300
    person.sends("Write the note", Note=long)
    assert "The note has 2,999 characters; at most 2,000." in person.text
    assert person.form("Write a note").field("Note").value.strip() == long.strip()
    person.sends("Write a note", Note=TEXT)
    assert person.address.split("?")[0] == f"/groups/{group}"
    assert len(notes_in(person.html)) == 1
    assert "The note is empty." in browser.sends("groups-note", group=group, text=" ")
    browser.page("/commands/groups-note?group=../etc", 404)


def test_a_hostile_note_is_text(browser: Browser, group: str) -> None:
    Hand(browser).opens(f"/groups/{group}").sends("Write the note", Note=HOSTILE)
    for address in (f"/groups/{group}", "/shift"):
        html = browser.html(address)
        assert "<script>alert" not in html
        assert not {"\x1b", "\u202e"} & {*html}
        assert "{{ 7 * 7 }}" in text_of(html)


def test_the_notes_of_a_group_that_is_over_can_still_be_read(browser: Browser, group: str) -> None:
    operator = browser.operator
    Hand(browser).opens(f"/groups/{group}").sends("Write the note", Note=TEXT)
    for name in ("ord-1", "ord-2", "ord-3"):
        operator.asks("resubmit", name)
    operator.world.pass_time(900)
    html = browser.html(f"/groups/{group}")
    assert "It is over: no order is in it now." in text_of(html)
    assert TEXT in notes_in(html)[0]
    assert set(re.findall("/commands/[a-z-]+", html)) == {"/commands/groups-note"}, "a closing note"


def test_in_the_console_of_one_person_nobody_is_here(browser: Browser, group: str) -> None:
    for _ in range(2):
        assert "is here" not in browser.page(f"/groups/{group}")
    assert stored(browser.operator, f"notes#{group}#readers") == {}


# ---- two persons of a team ----------------------------------------------------------------------


def test_two_persons_see_each_other_and_not_themselves(
    desk: Desk, operator: Operator, group: str
) -> None:
    world = operator.world
    assert "is here" not in text_of(as_person(desk, "ana", group))
    world.clock.now += 20_000
    assert "ana is here (read 20 s ago )" in text_of(as_person(desk, "ben", group))
    page = text_of(as_person(desk, "ana", group))
    assert "ben is here" in page
    assert "ana is here" not in page
    world.clock.now += HERE_FOR
    assert "is here" not in text_of(as_person(desk, "ben", group)), "ana has gone"


def test_it_is_written_once_a_minute_at_most_that_a_person_reads(
    desk: Desk, operator: Operator, group: str
) -> None:
    writes: list[object] = []
    desk.inspector.stack.dynamodb.meta.events.register(
        "provide-client-params.dynamodb.UpdateItem", lambda params, **_: writes.append(params)
    )
    for _ in range(4):
        as_person(desk, "ana", group)
        operator.world.clock.now += READ_EVERY // 4
    assert len(writes) == 1
    as_person(desk, "ana", group)
    assert len(writes) == 2


def test_who_may_only_look_sees_notes_and_persons_and_writes_nothing(
    desk: Desk, operator: Operator, group: str
) -> None:
    as_person(desk, "ana", group)
    desk.posts("groups-note", {"group": group, "incident": group, "text": TEXT})
    writes: list[object] = []
    desk.inspector.stack.dynamodb.meta.events.register(
        "provide-client-params.dynamodb.UpdateItem", lambda params, **_: writes.append(params)
    )
    html = desk.get(f"/groups/{group}", sub="vic", groups=None).text
    assert TEXT in notes_in(html)[0]
    assert "ana is here" in text_of(html)
    assert "/commands/groups-note" not in html
    answer = desk.posts("groups-note", {"group": group, "text": "x"}, groups=None)
    assert answer.status_code == 403
    assert writes == []
    assert "vic" not in text_of(as_person(desk, "ben", group))


def test_a_name_is_escaped_where_it_is_said_who_is_here(
    desk: Desk, operator: Operator, group: str
) -> None:
    as_person(desk, "<script>alert(1)</script>", group)
    html = as_person(desk, "ben", group)
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt; is here" in html


def test_notes_of_both_are_kept_under_the_names_of_who_is_signed_in(
    desk: Desk, operator: Operator, group: str
) -> None:
    writes_as(desk, "ana", group, "I call the bank.")
    writes_as(desk, "ben", group, "I look at the log.")
    found = notes_in(as_person(desk, "ana", group))
    assert {one.partition(" by ")[2] for one in found} == {
        "ana: I call the bank.",
        "ben: I look at the log.",
    }
    assert [("groups-note" in line, '"ana"' in line) for line in desk.journal] == [
        (True, True),
        (True, False),
    ]


def writes_as(desk: Desk, name: str, group: str, text: str) -> None:
    token = desk.form_token(sub=name)
    fields = {"group": group, "incident": group, "text": text, "form_token": token}
    assert desk.posts("groups-note", fields, sub=name).status_code == 200


def test_a_page_is_shown_when_it_cannot_be_stored_who_reads_it(
    desk: Desk, operator: Operator, group: str
) -> None:
    """As with an engine whose policies are older than the console."""

    def refuse(**_: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "UpdateItem")

    events = desk.inspector.stack.dynamodb.meta.events
    events.register("provide-client-params.dynamodb.UpdateItem", refuse)
    page = text_of(as_person(desk, "ana", group))
    assert "1. Stop" in page
    assert "storing who reads" in page


def shown_by(answer: Response) -> str:
    found = re.search(r'name="shown" value="([^"]+)"', answer.text)
    assert found is not None, text_of(answer.text)
    return found[1]


def test_a_second_run_over_the_group_of_another_person_is_refused_and_named(
    desk: Desk, operator: Operator, group: str
) -> None:
    fields = {"group": group, "incident": group, "reason": "the mail is back"}
    shown = {name: {**fields, "form_token": desk.form_token(sub=name)} for name in ("ana", "ben")}
    for name, given in shown.items():  # both are shown what it would do, before either begins
        given["shown"] = shown_by(desk.posts("resubmit-all", given, sub=name))
    done = desk.posts("resubmit-all", {**shown["ana"], "go": "yes"}, sub="ana")
    assert "is stored: the supervisor begins" in text_of(done.text)
    refused = text_of(desk.posts("resubmit-all", {**shown["ben"], "go": "yes"}, sub="ben").text)
    assert re.search(r"b-[0-9a-f]{8} of ana is running for the orders of f-", refused)
    assert "Nothing was started. Wait for its end, or stop it." in refused
    listed = operator.reads("bulk", "ls")["runs"]
    assert isinstance(listed, list)
    assert len(listed) == 1
    page = as_person(desk, "ben", group)
    assert 'action="/commands/resubmit-all"' not in page
    assert "resubmit of 3 orders by ana" in text_of(page)
    again = operator.asks("resubmit", "--group", group, "--go", "--no-wait")
    assert again.exit_code == 1
    assert "of ana is running for the orders of" in again.output
    operator.world.pass_time(900)
    assert {operator.world.task(f"ord-{n}").state.value for n in (1, 2, 3)} == {"Completed"}
