"""Bulk runs in the browser: tried out, started, watched, paused, resumed and stopped."""

import re
import threading
from collections.abc import Iterator
from html import unescape
from typing import cast

import pytest
from starlette.testclient import TestClient

from roundsman.errors import TryAgain
from roundsman.model.states import TaskState
from roundsman_console.acts.bulk.dry_run import choose_for
from roundsman_console.aws.stack import find_stack
from roundsman_console.base.hints import option_words
from roundsman_console.faces.web import results
from roundsman_console.faces.web.access.one_browser import BrowserSession
from roundsman_console.faces.web.application import application
from roundsman_console.faces.web.expiring_values import LONGEST
from roundsman_console.faces.web.work import MOST_KEPT, Work, WorkResult, works_of
from roundsman_console.facts.application import application_events
from roundsman_console.inspector import Inspector
from roundsman_testing.stack import Clock, Services, Stack
from tests.console.bulk.conftest import PARAMETERS
from tests.console.operators import Operator, let_go_is_seen_at_once, operator_of
from tests.moto.orders import order
from tests.project import deployed_project
from tests.support.kept_stack import KeptStack
from tests.web.browsers import PORT, Browser, text_of
from tests.web.declined import DECLINES, kept_with_declined

NAMES = [f"ord-{n}" for n in range(8)]


@pytest.fixture(scope="module")
def one_world(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    """One deployment for all tests of a module, with few shards."""
    with deployed_project(roundsman_services, roundsman_clock, PARAMETERS) as world:
        yield world


@pytest.fixture
def before_none(monkeypatch: pytest.MonkeyPatch, one_world: Stack) -> Iterator[Browser]:
    """A browser before a stack that has no orders, for messages that do not depend on orders."""
    with let_go_is_seen_at_once(one_world):
        operator = operator_of(one_world, monkeypatch)
        session = BrowserSession(PORT)
        inspector = Inspector(find_stack(None, application_events()))
        app = application(inspector, session)
        with TestClient(app, base_url=session.address) as client:
            client.get(session.link_to())
            yield Browser(client, session, operator, inspector)


@pytest.fixture(scope="module")
def with_declined(one_world: Stack, session_without_real_aws: None) -> KeptStack:
    """The deployment with a group of orders that were declined by mistake."""
    return kept_with_declined(one_world, NAMES)


@pytest.fixture
def browser(before_none: Browser, with_declined: KeptStack) -> Browser:
    """A browser before a stack with a group of orders that were declined by mistake."""
    with_declined.go_back()
    return before_none


def group_of(operator: Operator) -> str:
    return str(operator.world.task(NAMES[0]).failure)


def started(browser: Browser, **fields: str) -> str:
    """The id of a run that was started over the group."""
    browser.carries_out(
        "resubmit-all", group=group_of(browser.operator), reason="mistake", again="yes", **fields
    )
    runs = browser.operator.reads("bulk", "ls")["runs"]
    assert isinstance(runs, list)
    return str(runs[0]["runId"])


@pytest.mark.exhaustive
def test_a_run_is_tried_out_first_and_says_who_is_eligible(browser: Browser) -> None:
    group = group_of(browser.operator)
    assert "Resubmit 8 orders" in browser.page(f"/groups/{group}")
    fields = {"group": group, "reason": "declined by mistake"}
    page = browser.sends("resubmit-all", **fields)
    assert "0 of 8 orders are eligible; nothing was sent." in page
    assert "8 orders ord-0, ord-1, ord-2 not eligible" in page
    page = browser.sends("resubmit-all", **fields, again="yes")
    assert "8 of 8 orders are eligible; nothing was sent. The first 5 are sent" in page
    assert "8 orders ord-0, ord-1, ord-2 eligible" in page
    assert browser.operator.reads("bulk", "ls")["runs"] == []


@pytest.mark.exhaustive
def test_a_run_is_carried_out_by_the_stack_and_its_page_follows(browser: Browser) -> None:
    assert "No bulk run was started" in browser.page("/bulk")
    run = started(browser)
    page = browser.page(f"/bulk/{run}")
    assert "Resubmit of 8 orders running" in page
    assert "0 of 8 orders with a result" in page
    browser.operator.world.pass_time(300)
    page = browser.page(f"/bulk/{run}")
    assert "finished" in page
    assert "8 of 8 orders with a result" in page
    assert "Completed 8" in page
    assert run in browser.page("/bulk")
    assert browser.operator.world.task(NAMES[7]).state is TaskState.COMPLETED
    assert "There is no bulk run" in browser.page("/bulk/b-00000000", 404)


def test_a_run_that_cannot_be_read_is_named_and_hides_no_other(browser: Browser) -> None:
    spoilt = started(browser)
    assert browser.operator.asks("bulk", "stop", spoilt).exit_code == 0
    browser.operator.world.pass_time(70)
    started(browser)
    runs = cast("list[dict[str, object]]", browser.operator.reads("bulk", "ls")["runs"])
    [readable] = [str(run["runId"]) for run in runs if run["runId"] != spoilt]
    stack = browser.operator.world.stack
    table, client = stack.outputs["ControlTableName"], browser.operator.world.dynamodb
    [row] = [
        row["ControlId"]["S"]
        for row in client.scan(TableName=table)["Items"]
        if "Run" in row and row["ControlId"]["S"].endswith(spoilt)
    ]
    client.update_item(
        TableName=table,
        Key={"ControlId": {"S": row}},
        UpdateExpression="SET #run = :odd",
        ExpressionAttributeNames={"#run": "Run"},
        ExpressionAttributeValues={":odd": {"S": "{}"}},
    )
    page = browser.page("/bulk")
    assert readable in page
    assert f"Not listed: the record {row} cannot be read" in page
    listed = browser.operator.types("bulk", "ls")
    assert readable in listed.stdout
    assert f"Not listed: the record {row} cannot be read" in listed.stderr


def test_a_run_is_stopped_when_that_was_shown_first(browser: Browser) -> None:
    run = started(browser)
    stop = {"run": run, "reason": "the carrier asked us to"}
    assert f"{run} is running. It would be stopped." in browser.sends("bulk-stop", **stop)
    assert "is stopped within a minute" in browser.carries_out("bulk-stop", **stop)


@pytest.mark.exhaustive
def test_a_run_is_stopped_and_resumed_with_a_reason(browser: Browser) -> None:
    run = started(browser, canary="1", rate="0.1")
    stop = {"run": run, "reason": "the carrier asked us to"}
    assert f"{run} is running. It would be stopped." in browser.sends("bulk-stop", **stop)
    assert "is stopped within a minute" in browser.carries_out("bulk-stop", **stop)
    browser.operator.world.pass_time(90)
    page = browser.page(f"/bulk/{run}")
    assert "Stopped: by" in page
    assert "the carrier asked us to" in page
    assert browser.operator.world.task(NAMES[7]).state is TaskState.UNDONE
    answer = browser.sends("bulk-pause", run=run, reason="x", go="yes")
    typed = browser.operator.types("bulk", "pause", run, "--reason", "x").stderr
    assert f"{run} cannot be paused: it is stopped." in answer
    assert f"{run} cannot be paused: it is stopped." in " ".join(typed.split())
    resume = {"run": run, "reason": "the carrier is back"}
    assert "is resumed within a minute" in browser.carries_out("bulk-resume", **resume)
    browser.operator.world.pass_time(400)
    assert "finished" in browser.page(f"/bulk/{run}")


@pytest.mark.exhaustive
def test_what_failed_again_is_listed(browser: Browser) -> None:
    browser.operator.world.faults(DECLINES)
    run = started(browser, canary="8")
    browser.operator.world.pass_time(300)
    page = browser.page(f"/bulk/{run}")
    assert "Failed again" in page
    assert "CardDeclined: POST answered 402" in page
    assert "Each of these orders (8)" in page
    assert "ord-7 failed again" in page


@pytest.mark.parametrize(
    ("field", "text", "option", "label"),
    [
        ("canary", "101", "--canary", "Orders that are sent first"),
        ("rate", "26", "--rate", "Orders a second"),
        pytest.param("rate", "nan", "--rate", "Orders a second", marks=pytest.mark.exhaustive),
        ("at_once", "0", "--at-once", "Orders in flight at most"),
        pytest.param(
            "stop_at",
            "half",
            "--stop-at",
            "The run stops if more fail again",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param("canary_wait", "soon", "--canary-wait", "", marks=pytest.mark.exhaustive),
    ],
)
def test_limits_that_are_not_possible_are_refused_in_the_words_of_the_command_line(
    before_none: Browser, field: str, text: str, option: str, label: str
) -> None:
    group = "f-00000000"
    page = before_none.posts("resubmit-all", group=group, reason="x", **{field: text}).text
    typed = before_none.operator.types(
        "resubmit", "--group", group, "--reason", "x", option, text
    ).stderr
    sentence = " ".join(typed.split()).replace(option, label)
    assert f'id="wrong-{field}">{sentence}<' in unescape(page)
    assert 'value="x"' in page, "the reason is kept"


def test_limits_that_are_no_numbers_are_all_named_at_once(before_none: Browser) -> None:
    wrong = {"group": "f-00000000", "canary": "many", "rate": "fast"}
    page = before_none.sends("resubmit-all", **wrong)
    assert "3 fields below must be corrected" in page
    assert "Reason is empty." in page
    assert "'many' is not a whole number of orders." in page
    assert "'fast' is not a number of orders a second." in page


def test_the_orders_page_offers_what_the_filter_can_be_acted_on_with(before_none: Browser) -> None:
    offered = before_none.html("/orders?state=Undone&step=charge_card&error=CardDeclined")
    about = "state=Undone&amp;at_step=charge_card&amp;error=CardDeclined"
    assert f'href="/commands/resubmit-all?{about}"' in offered
    assert "cancel-all" not in offered
    assert "cancel-all" in before_none.html("/orders?state=Retry")
    assert "run-all" in before_none.html("/orders?state=Retry")
    few = "To select many orders, give a failure group or a state."
    assert few in before_none.page("/orders?workflow=order_fulfilment")
    completed = "/orders?state=Completed&workflow=order_fulfilment&older=1h"
    assert "-all" not in before_none.html(completed)
    assert "both ends of a time span" in before_none.page(completed)
    whole = before_none.html(f"{completed}&newer=3h")
    assert re.findall("[a-z]+-all", whole) == ["undo-all"], "a completed order is taken back"
    before_none.session.read_only = True
    assert "-all" not in before_none.html("/orders?state=Undone")


def rows_of(tried: object) -> list[tuple[int, str]]:
    """The groups of orders of a dry run on the command line."""
    assert isinstance(tried, list)
    return [(one["orders"], one["reason"]) for one in tried]


def eligible(typed: dict[str, object]) -> object:
    """The number of eligible orders of a dry run on the command line."""
    found = typed["eligible"]
    assert isinstance(found, dict)
    return found["orders"]


@pytest.mark.exhaustive
def test_a_dry_run_over_a_filter_is_that_of_the_command_line(browser: Browser) -> None:
    world = browser.operator.world
    world.submit(order("ord-8"))
    world.run()
    fields = {"state": "Undone", "at_step": "charge_card", "error": "CardDeclined"}
    options = ("--state", "Undone", "--at-step", "charge_card", "--error", "CardDeclined")
    typed = browser.operator.reads("resubmit", *options, "--reason", "x")
    page = browser.sends("resubmit-all", **fields, reason="x")
    assert page.count("ord-8") == 0
    assert eligible(typed) == 0
    assert "0 of 8 orders are eligible" in page
    [(orders, why)] = rows_of(typed["refused"])
    assert f"{orders} orders" in page
    assert "add --again" in option_words(why)
    assert (
        "choose \u201cBegin again from the start, each call as a new request\u201d to begin" in page
    )
    typed = browser.operator.reads("resubmit", *options, "--reason", "x", "--again")
    assert eligible(typed) == 8
    assert "8 of 8 orders are eligible" in browser.sends(
        "resubmit-all", **fields, reason="x", again="yes"
    )


@pytest.mark.exhaustive
def test_completed_orders_are_taken_back_by_a_filter_with_both_ends_of_a_time_span(
    before_none: Browser,
) -> None:
    world = before_none.operator.world
    world.submit(*map(order, NAMES[:2]))
    world.run()
    world.clock.now += 120_000
    world.submit(order("ord-new"))
    world.run()
    fields = {
        "state": "Completed",
        "workflow": "order_fulfilment",
        "older": "1m",
        "newer": "1h",
        "reason": "the wrong price",
    }
    tried = before_none.posts("undo-all", **fields).text
    assert re.search(r'<button class="danger" name="go" value="yes">Undo all now</button>', tried)
    page = text_of(tried)
    assert "2 of 2 orders are eligible; nothing was sent." in page
    assert "Examined to find them: 3 tasks, at least 3 read units." in page
    assert before_none.operator.reads("bulk", "ls")["runs"] == []
    assert "is stored" in before_none.carries_out("undo-all", **fields)
    world.pass_time(300)
    found = [world.task(name).state for name in (*NAMES[:2], "ord-new")]
    assert found == [TaskState.UNDONE, TaskState.UNDONE, TaskState.COMPLETED]
    runs = before_none.operator.reads("bulk", "ls")["runs"]
    assert isinstance(runs, list)
    assert "--older 1m --newer 1h --as-of 20" in runs[0]["selection"]
    refused = before_none.page("/commands/cancel-all?state=Completed", 400)
    assert "A completed order accepts no other command than undo." in refused


@pytest.mark.exhaustive
def test_a_run_over_a_filter_corrects_inputs_and_shows_the_difference(browser: Browser) -> None:
    fields = {
        "state": "Undone",
        "workflow": "order_fulfilment",
        "reason": "a new contract",
        "again": "yes",
        "sets": "customerId=c-77",
        "stop_at": "50%",
    }
    answer = browser.sends("resubmit-all", **fields)
    assert "Resubmit all Undone, of order_fulfilment" in answer
    assert "8 of 8 orders are eligible; nothing was sent. The first 5 are sent" in answer
    assert "The run stops if more than 50% fail again." in answer
    for name in NAMES[:3]:
        assert f"Correction of the input of {name}" in answer
    assert "customerId" in answer
    assert "c-77" in answer
    assert browser.operator.reads("bulk", "ls")["runs"] == []
    assert "is stored" in browser.carries_out("resubmit-all", **fields)
    browser.operator.world.pass_time(300)
    runs = browser.operator.reads("bulk", "ls")["runs"]
    assert isinstance(runs, list)
    page = browser.page(f"/bulk/{runs[0]['runId']}")
    assert "Completed 8" in page
    assert "--state Undone --workflow order_fulfilment" in page
    for name in NAMES:
        row, task = browser.operator.world.store.order(name), browser.operator.world.task(name)
        assert row is not None
        assert task.state is TaskState.COMPLETED
        assert "c-77" in str(task.input(row.content))


@pytest.mark.exhaustive
def test_the_run_is_over_what_was_shown_whatever_matches_later(browser: Browser) -> None:
    world = browser.operator.world
    fields = {"state": "Undone", "reason": "mistake", "again": "yes"}
    shown = re.search(r'name="shown" value="([^"]+)"', browser.posts("resubmit-all", **fields).text)
    assert shown is not None
    world.faults(DECLINES)
    world.submit(order("ord-later"))
    world.run()
    world.faults()
    sent = {**fields, "go": "yes", "shown": shown[1]}
    assert "Nothing was sent" in browser.sends("resubmit-all", **{**sent, "sets": "customerId=c"})
    assert "is stored" in browser.sends("resubmit-all", **sent)
    assert "Nothing was sent" in browser.sends("resubmit-all", **sent)
    world.pass_time(300)
    assert world.task("ord-7").state is TaskState.COMPLETED
    assert world.task("ord-later").state is TaskState.UNDONE


def progress_of(browser: Browser, command: str, **fields: str) -> tuple[str, Work]:
    """The address of the progress that a form goes to, and its work."""
    [moved] = browser.posts(command, **fields).history
    assert moved.status_code == 303
    address = moved.headers["Location"]
    return address, works_of(browser.inspector).find(address.rpartition("/")[2])


@pytest.mark.exhaustive
def test_a_dry_run_that_takes_long_shows_its_progress_and_then_a_link_to_its_page(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, goes_on = threading.Event(), threading.Event()

    def slowly(*arguments: object, **more: object) -> object:
        report = arguments[4]
        assert callable(report)
        report("5000 tasks examined, 3 orders found")
        began.set()
        goes_on.wait()
        return choose_for(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("roundsman_console.faces.web.forms.bulk.choose_for", slowly)
    monkeypatch.setattr("roundsman_console.faces.web.previews.PATIENCE", 0)
    fields = {"state": "Undone", "reason": "mistake", "again": "yes"}
    address, work = progress_of(browser, "resubmit-all", **fields)
    began.wait()
    assert "It runs: 5000 tasks examined, 3 orders found." in browser.page(address)
    assert "data-live" in browser.html(address)
    goes_on.set()
    assert work.thread is not None
    work.thread.join()
    ended = browser.html(address)
    assert "8 of 8 orders are eligible; nothing was sent." in ended
    assert "data-live" not in ended
    link = re.search(r'href="(/results/[^"]+)">Show what it would do<', ended)
    assert link is not None
    html = browser.html(link[1])
    assert "8 orders ord-0, ord-1, ord-2 eligible" in text_of(html)
    shown = re.search(r'name="shown" value="([^"]+)"', html)
    assert shown is not None
    assert browser.operator.reads("bulk", "ls")["runs"] == []
    assert "is stored" in browser.sends("resubmit-all", **fields, go="yes", shown=shown[1])
    browser.operator.world.clock.now += results.LONGEST + 1
    assert "This result is not known any more" in browser.page(link[1], 404)


def test_a_dry_run_that_takes_long_and_fails_says_why_on_the_page_of_its_progress(
    before_none: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()

    def refused(*_: object, **__: object) -> object:
        goes_on.wait()
        raise TryAgain("reading the tasks: throttled")

    monkeypatch.setattr("roundsman_console.faces.web.forms.bulk.choose_for", refused)
    monkeypatch.setattr("roundsman_console.faces.web.previews.PATIENCE", 0)
    address, work = progress_of(before_none, "undo-all", state="Archived", reason="x")
    goes_on.set()
    assert work.thread is not None
    work.thread.join()
    page = before_none.html(address)
    assert "reading the tasks: throttled." in page
    assert "problem" in page
    assert "/results/" not in page


@pytest.mark.exhaustive
def test_a_dry_run_that_is_shown_at_once_leaves_no_work(browser: Browser) -> None:
    works = works_of(browser.inspector)
    kept = works.start("Smoke test", "/doctor", lambda _: WorkResult("Done.", good=True))
    for _ in range(MOST_KEPT + 1):
        browser.sends("resubmit-all", state="Undone", reason="x")
    assert works.find(kept.id) is kept


@pytest.mark.exhaustive
def test_what_was_shown_too_long_ago_is_shown_again(browser: Browser) -> None:
    fields = {"state": "Undone", "reason": "mistake", "again": "yes"}
    shown = re.search(r'name="shown" value="([^"]+)"', browser.posts("resubmit-all", **fields).text)
    assert shown is not None
    browser.operator.world.clock.now += LONGEST + 1
    page = browser.sends("resubmit-all", **fields, go="yes", shown=shown[1])
    assert "Nothing was sent" in page
    assert browser.operator.reads("bulk", "ls")["runs"] == []


def test_a_filter_that_selects_too_much_is_refused(before_none: Browser) -> None:
    refused = "To select many orders, give a failure group or a state."
    assert refused in before_none.page("/commands/resubmit-all?older=2h", 400)
    assert refused in before_none.sends("undo-all", workflow="order_fulfilment", reason="x")
    completed = {"state": "Completed", "reason": "x"}
    typed = before_none.operator.types("undo", "--state", "Completed", "--reason", "x").stderr
    assert " ".join(typed.split()) in before_none.sends("undo-all", **completed)
    typed = before_none.operator.types("undo", "--state", "Archived", "--reason", "x").stderr
    assert " ".join(typed.split()).partition(".")[0] in before_none.sends(
        "undo-all", state="Archived", reason="x"
    )


@pytest.mark.exhaustive
def test_a_held_agent_keeps_a_run_back_with_the_sentence_of_the_command_line(
    browser: Browser,
) -> None:
    browser.operator.asks("hold", "inventory", "--for", "30m")
    fields = {"state": "Undone", "reason": "x", "again": "yes"}
    options = ("resubmit", "--state", "Undone", "--again", "--reason", "x", "--go", "--yes")
    page = browser.sends("resubmit-all", **fields)
    assert "would wait" in page
    assert "Also send to orders that would wait" in page
    page = browser.carries_out("resubmit-all", **fields)
    typed = " ".join(browser.operator.types(*options).stderr.split())
    assert typed.removesuffix("To send to these orders nevertheless, add --anyway.").strip() in page
    assert browser.operator.reads("bulk", "ls")["runs"] == []
    assert "is stored" in browser.carries_out("resubmit-all", **fields, anyway="yes")


@pytest.mark.exhaustive
def test_the_newest_plan_of_many_orders_is_shown(browser: Browser) -> None:
    fields = {"state": "Undone", "reason": "x", "again": "yes", "newest_plan": "yes"}
    page = browser.sends("resubmit-all", **fields)
    assert "8 orders: the plan" in page
    assert "is the newest." in page
    page = browser.sends("resubmit-all", **fields, steps="charge_card")
    assert ": every failed step is tried again" in page


@pytest.mark.parametrize(
    ("command", "more", "words"),
    [
        ("extend-all", {"seconds": "10m"}, "4 of 4 orders are eligible"),
        pytest.param(
            "extend-all",
            {"seconds": "10m", "step": "no_step"},
            "0 of 4 orders are eligible",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param("run-all", {}, "4 of 4 orders are eligible", marks=pytest.mark.exhaustive),
        pytest.param(
            "cancel-all",
            {"keep": "yes"},
            "4 of 4 orders are eligible",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            "resolve-all",
            {"step": "charge_card", "did": "no"},
            "of 4 orders are eligible",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_the_other_commands_act_on_all_that_match(
    before_none: Browser, command: str, more: dict[str, str], words: str
) -> None:
    world = before_none.operator.world
    world.faults({"operation": "POST /charges", "status": 503, "retryAfter": 600})
    world.submit(*(order(f"wait-{n}") for n in range(4)))
    world.run()
    assert words in before_none.sends(command, state="Retry", reason="x", **more)


@pytest.mark.exhaustive
def test_a_run_over_orders_that_are_named(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 'href="/commands/resubmit-all"' in browser.html("/bulk")
    assert "Resubmit all the orders that you name" in browser.page("/commands/resubmit-all")
    fields = {"reason": "x", "again": "yes"}
    ids = {"orders": "ord-1, ord-2\r\nord-1 ord-3"}
    typed = browser.operator.reads("resubmit", *NAMES[1:4], "--again", "--reason", "x")
    assert eligible(typed) == 3
    page = browser.sends("resubmit-all", **fields, **ids)
    assert "Resubmit all 3 orders" in page
    assert "3 of 3 orders are eligible" in page
    assert "Name at least one order." in browser.sends("resubmit-all", **fields)
    for wrong, options in (
        ({**ids, "state": "Undone"}, ("ord-1", "ord-2", "--state", "Undone")),
        ({"orders": "none"}, ("ord-1", "none")),
    ):
        typed_wrong = browser.operator.types("resubmit", *options, "--reason", "x")
        answer = browser.posts("resubmit-all", **fields, **wrong)
        typed_words = " ".join(typed_wrong.stderr.partition("See:")[0].split())
        assert typed_words
        assert typed_words in text_of(answer.text)
    assert "is stored" in browser.carries_out("resubmit-all", **fields, **ids)
    browser.operator.world.pass_time(300)
    states = {name: browser.operator.world.task(name).state for name in NAMES}
    assert [name for name, state in states.items() if state is TaskState.COMPLETED] == NAMES[1:4]
    monkeypatch.setattr("roundsman_console.faces.web.forms.bulk.MOST_NAMED", 2)
    assert "At most 2 orders can be named." in browser.sends("resubmit-all", **fields, **ids)


def test_a_result_is_for_one_order_only(before_none: Browser) -> None:
    fields = {"state": "Archived", "step": "charge_card", "did": "yes", "result": "1"}
    page = before_none.sends("resolve-all", reason="x", **fields)
    assert "works for one order only. Resolve the orders one by one." in page
    assert 'name="result"' not in before_none.html("/commands/resolve-all?state=Archived")


def test_text_of_a_filter_is_inert(before_none: Browser) -> None:
    address = "/commands/undo-all?state=Archived&workflow=%3Cb%3Ex%1b%22"
    assert "<b>x" not in before_none.html(address)
    assert "\x1b" not in before_none.page(address)
