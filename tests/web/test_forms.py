"""Forms keep what was typed, say what is wrong at the field, and their results have addresses."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from roundsman.model.instants import MINUTE
from roundsman_console.faces.web import results
from roundsman_console.faces.web.form_registry import commands
from roundsman_console.faces.web.work import Work, WorkResult, works_of
from tests.console.operators import DECLINED, in_retry
from tests.moto.orders import order
from tests.web.browsers import Browser, text_of
from tests.web.hand import Hand

STRANGE = "a\u202egnp\u200b b"


@contextmanager
def answered(code: str, *operations: str) -> Iterator[None]:
    """Let AWS answer these operations with an error; all of DynamoDB's if none is named."""
    make = BaseClient._make_api_call  # type: ignore[attr-defined]  # what every call goes through

    def call(self: BaseClient, operation: str, arguments: object) -> object:
        all_of_it = not operations and self.meta.service_model.service_name == "dynamodb"
        if all_of_it or operation in operations:
            problem = {"Error": {"Code": code, "Message": f"no {operation} for you"}}
            raise ClientError(problem, operation)  # type: ignore[arg-type]  # a part of an answer
        return make(self, operation, arguments)

    with patch.object(BaseClient, "_make_api_call", call):
        yield


def wrong_fields(html: str) -> list[str]:
    """The names of the fields that are marked as wrong."""
    return re.findall(r'name="(\w+)"[^>]*aria-invalid="true"', html)


def focused(html: str) -> list[str]:
    """What has the focus when the page is shown: the tag with the attribute."""
    return re.findall(r"<(\w+)[^>]*\bautofocus\b", html)


def test_a_forgotten_field_keeps_the_others_and_is_named_at_its_place(browser: Browser) -> None:
    answer = browser.posts("hold", agent="payment", reason="it declines", seconds="")
    [moved] = answer.history
    assert (moved.status_code, moved.headers["Location"][:9]) == (303, "/results/")
    assert answer.status_code == 200
    assert 'value="it declines"' in answer.text
    assert wrong_fields(answer.text) == ["seconds"]
    assert 'id="wrong-seconds">&#39;&#39; is not a duration.' in answer.text
    assert 'aria-describedby="wrong-seconds"' in answer.text
    assert focused(answer.text) == ["input"]
    assert browser.operator.reads("agents")["agents"]
    assert "takes work" in browser.page("/agents")


def test_all_wrong_fields_are_named_and_the_first_has_the_focus(browser: Browser) -> None:
    html = browser.posts("hold", agent="payment", reason="  ", seconds="soon").text
    assert wrong_fields(html) == ["reason", "seconds"]
    assert "Reason is empty." in text_of(html)
    assert "2 fields below must be corrected" in text_of(html)
    assert len(re.findall(r"\bautofocus\b", html)) == 1
    assert re.search(r'name="reason"[^>]*autofocus', html) is not None


def test_a_wrong_field_that_is_folded_away_is_unfolded(browser: Browser) -> None:
    html = browser.posts("resubmit-all", state="Undone", reason="x", stop_at="most").text
    assert re.search(r"<details open><summary>More options", html) is not None
    assert wrong_fields(html) == ["stop_at"]
    html = browser.posts("resubmit-all", state="Undone", reason="x", rate="fast").text
    assert "<details open>" not in html
    html = browser.posts("resubmit-all", state="Undone", reason="x", sets="a=1", rate="fast").text
    assert "<details open><summary>More options" in html, "what was filled in is seen"


def test_a_result_can_be_loaded_again_and_left_with_back(browser: Browser) -> None:
    person = Hand(browser).opens("/commands/hold?agent=mail")
    person.sends("Show what", Reason="maintenance")
    shown = person.address
    person.sends("Hold now")
    done = person.address
    assert "Done: mail is held for 30 min." in person.text
    for address, words in (
        (done, "Done: mail is held for 30 min."),
        (shown, "would make no new call"),
    ):
        assert words in browser.page(address)
    person.opens(shown).sends("Hold now")
    assert "Nothing was sent: the form, or what it is about, has changed" in person.text
    browser.operator.world.clock.now += 5 * MINUTE
    assert "Done: mail is held for 30 min. 5 min ago" in browser.page(done)
    browser.operator.world.clock.now += results.LONGEST
    assert "This result is not known any more" in browser.page(done, 404)


def test_a_form_proposes_what_is_usual_and_requires_what_is_needed(browser: Browser) -> None:
    in_retry(browser.operator)
    hold = Hand(browser).opens("/commands/hold?agent=mail").form("Show what")
    assert (hold.field("For how long").value, hold.field("For how long").required) == ("30m", True)
    assert hold.field("Reason").required
    extend = Hand(browser).opens("/commands/extend?order=ord-1").form("Show what")
    assert extend.field("Additional time").value == "10m"
    resolve = Hand(browser).opens("/commands/resolve?order=ord-1").form("Show what")
    assert resolve.field("Step").required


def test_an_agent_that_is_not_held_has_no_release(browser: Browser) -> None:
    for page in (
        browser.page("/commands/release?agent=mail"),
        browser.sends("release", agent="mail", reason="x"),
        browser.sends("release", agent="mail", reason="x", go="yes", shown="x"),
    ):
        assert "mail is not held, so there is nothing to release." in page
        assert "Release now" not in page
        assert "Show what" not in page


def test_of_two_tabs_that_release_the_second_is_told_that_nothing_is_held(
    browser: Browser,
) -> None:
    browser.operator.asks("hold", "mail", "--for", "30m")
    one = Hand(browser).opens("/commands/release?agent=mail")
    other = Hand(browser).opens("/commands/release?agent=mail")
    for tab in (one, other):
        tab.sends("Show what")
    one.sends("Release now")
    other.sends("Release now")
    assert "mail is not held, so there is nothing to release." in other.text
    assert "would end now" not in other.text


def test_a_work_says_what_is_done_and_what_runs_each_in_a_sentence(browser: Browser) -> None:
    goes_on: list[Work] = []

    def do(work: Work) -> WorkResult:
        work.counts("12 open orders examined, 3 of them woken")
        goes_on.append(work)
        return WorkResult("mail is released.", good=True)

    works = works_of(browser.inspector)
    work = works.start("Release of mail", "/agents", do, done="mail is released.")
    assert work.thread is not None
    work.thread.join()
    work.result = None  # as it is while it runs
    page = browser.page(f"/progress/{work.id}")
    assert "mail is released. It runs: 12 open orders examined, 3 of them woken." in page
    assert ".." not in page.partition("Release of mail")[2]


@pytest.mark.parametrize("right", ["UpdateItem"])
def test_a_right_that_is_missing_is_named_at_the_form_which_keeps_what_was_typed(
    browser: Browser, right: str
) -> None:
    person = Hand(browser).opens("/commands/hold?agent=mail")
    person.sends("Show what", Reason="maintenance", For_how_long="45m")
    with answered("AccessDeniedException", right):
        person.sends("Hold now")
    assert f"AWS refused {right} with these credentials: no {right} for you" in person.text
    assert "Cannot be read" not in person.text
    form = person.form("Show what")
    assert form.field("Reason").value == "maintenance"
    assert form.field("For how long").value == "45m"
    assert focused(person.html) == ["p"], "the sentence is read out"
    person.sends("Show what")
    person.sends("Hold now")
    assert "Done: mail is held for 45 min." in person.text


def test_a_stack_that_is_deleted_under_a_form_leaves_what_was_typed(browser: Browser) -> None:
    person = Hand(browser).opens("/commands/hold?agent=mail")
    with answered("ResourceNotFoundException"):
        person.sends("Show what", Reason="maintenance", For_how_long="45m")
        assert "ResourceNotFoundException" in person.text
        form = person.form("Show what")
        assert form.field("Reason").value == "maintenance"
        assert form.field("For how long").value == "45m"
    person.sends("Show what")
    assert "mail would make no new call for 45 min:" in person.text


def test_an_order_that_is_erased_under_a_form_is_refused_there(browser: Browser) -> None:
    browser.operator.world.submit({**order("ord-1"), **DECLINED})
    browser.operator.world.run()
    person = Hand(browser).opens("/commands/resubmit?order=ord-1")
    erased = browser.operator.types("erase", "ord-1", "--why", "request 17", "--yes")
    assert erased.exit_code == 0, erased.output
    person.sends("Show what", Reason="declined by mistake")
    assert "refused, nothing was sent" in person.text
    assert person.form("Show what").field("Reason").value == "declined by mistake"


def test_an_order_that_is_gone_under_a_form_leaves_what_was_typed(browser: Browser) -> None:
    in_retry(browser.operator)
    person = Hand(browser).opens("/commands/run?order=ord-1")
    outputs, dynamodb = browser.operator.world.stack.outputs, browser.operator.world.dynamodb
    for table, key in (("TasksTableName", "TaskId"), ("OrdersTableName", "OrderID")):
        dynamodb.delete_item(TableName=outputs[table], Key={key: {"S": "ord-1"}})
    person.sends("Show what", Reason="the acquirer is back")
    assert "There is no order ord-1" in person.text
    assert person.form("Show what").field("Reason").value == "the acquirer is back"


def test_long_and_strange_text_is_refused_in_words_and_inert_where_it_is_shown(
    browser: Browser,
) -> None:
    long = "x" * 200
    assert f"No agent &#39;{long[:50]}" in browser.posts("hold", agent=long, reason="x").text
    assert "There is no order" in browser.sends("run", order=long, reason="x")
    over = browser.posts("hold", agent="mail", reason="y" * 501, seconds="30m").text
    assert wrong_fields(over) == ["reason"]
    assert "y" * 501 in over, "what was typed can be shortened"
    browser.carries_out("hold", agent="mail", reason=STRANGE, seconds="30m")
    page = browser.html("/agents")
    assert "a?gnp? b" in page
    assert "\u202e" not in page
    wrong = browser.posts("hold", agent="mail", reason="x", seconds=STRANGE).text
    assert "\u202e" not in wrong.partition('id="wrong-seconds"')[2]


def test_the_text_of_a_form_is_true_for_the_state_of_its_order(browser: Browser) -> None:
    world = browser.operator.world
    world.submit({**order("ord-1"), **DECLINED})
    world.run()
    undone = Hand(browser).opens("/commands/resubmit?order=ord-1")
    assert (
        "Each call is made as a new request, so what happened before would happen again"
        in undone.text
    )
    assert "under the same keys" not in undone.text
    assert undone.form("Show what").field("Begin again").checked
    undone.sends("Show what", Reason="x")
    assert "resubmit of ord-1 is possible" in undone.text
    page = browser.sends("resubmit", order="ord-1", reason="x")
    assert "`again`" not in page
    assert (
        "choose \u201cBegin again from the start, each call as a new request\u201d to begin" in page
    )


def test_red_is_only_what_takes_something_away(browser: Browser) -> None:
    world = browser.operator.world
    in_retry(browser.operator)
    world.submit({**order("ord-2"), **DECLINED})
    world.run()
    asks = {
        "run": ("Run now", "go"),
        "extend": ("Extend now", "go"),
        "cancel": ("Cancel now", "danger"),
        "undo": ("Undo now", "danger"),
    }
    for command, (button, classes) in asks.items():
        person = Hand(browser).opens(f"/commands/{command}?order=ord-1")
        person.sends("Show what", Reason="x")
        [found] = [one for one in person.form(button).buttons if one.words == button]
        assert found.classes == classes, command
    html = browser.html("/orders/ord-2")
    apart = html.index('<li class="apart"><a class="button danger" href="/commands/erase')
    assert apart > html.index("/commands/resubmit?order=ord-2")


def test_every_form_that_cannot_be_read_is_a_form_and_no_error_page(browser: Browser) -> None:
    for command in commands():
        with answered("ResourceNotFoundException"):
            answer = browser.posts(
                command,
                order="ord-1",
                agent="mail",
                run="b-00000000",
                reason="kept <b>",
                state="Retry",
            )
        assert answer.status_code == 200, command
        assert "kept <b>" not in answer.text
        if 'name="reason"' in answer.text:
            assert 'value="kept &lt;b&gt;"' in answer.text, command


@pytest.mark.exhaustive
def test_what_a_bulk_run_has_in_flight_is_named(browser: Browser) -> None:
    world = browser.operator.world
    world.submit({**order("ord-1"), **DECLINED})
    world.run()
    group = str(world.task("ord-1").failure)
    world.faults({"operation": "POST /shipments", "status": 503, "retryAfter": 600})
    go = (
        "--again",
        "--reason",
        "x",
        "--go",
        "--yes",
        "--no-wait",
        "--set",
        "paymentToken=tok_visa",
    )
    browser.operator.types("resubmit", "--group", group, *go)
    world.pass_time(120)
    runs = browser.operator.reads("bulk", "ls")["runs"]
    assert isinstance(runs, list)
    html = browser.html(f"/bulk/{runs[0]['runId']}")
    assert "In flight: ord-1" in text_of(html)
    assert '<a href="/orders/ord-1">' in html


@pytest.mark.parametrize(
    ("command", "sent", "field"),
    [
        ("smoke", {"within": "soon"}, "within"),
        ("smoke", {"body": "no"}, "body"),
        ("answer", {"callback": "ord-1", "step": "charge_card", "result": "no"}, "result"),
        ("reconcile", {"restored_to": "yesterday", "rate": "fast"}, "restored_to"),
    ],
)
def test_the_other_forms_name_the_wrong_field_too(
    browser: Browser, command: str, sent: dict[str, str], field: str
) -> None:
    html = browser.posts(command, **sent).text
    assert wrong_fields(html)[0] == field
    for text in sent.values():
        assert text in html
