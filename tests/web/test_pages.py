"""Each page shows what the command line shows of the same stack, and never runs what it shows."""

import re
from html import unescape
from urllib.parse import quote, urlencode

import boto3
import pytest
from markupsafe import escape

from roundsman.model.instants import MINUTE
from roundsman.model.states import ProcessState, TaskState
from roundsman_console.faces.web.drawings.shapes import SHAPES
from tests.console.operators import DECLINED, in_retry, note_reply_read
from tests.console.test_left_out import with_an_item_left_out
from tests.moto.orders import order
from tests.web.browsers import Browser, text_of
from tests.web.wellness import make_well

PAGES = (
    "/",
    "/orders",
    "/groups",
    "/bulk",
    "/shift",
    "/dead-letters",
    "/rejected",
    "/agents",
    "/workflows",
    "/schedules",
    "/cost",
    "/export",
    "/doctor",
)
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'\x1b[31m\u202e{{ 7 * 7 }}"


@pytest.fixture
def declined(browser: Browser) -> Browser:
    """An order that was undone, and one that completed."""
    browser.operator.world.submit({**order("ord-1"), **DECLINED}, order("ord-2"))
    browser.operator.world.run()
    return browser


@pytest.mark.exhaustive
def test_the_pages_of_an_empty_stack_say_what_is_not_there(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_well(browser.operator.world, monkeypatch)
    pages = {address: browser.page(address) for address in PAGES}
    assert "Nothing needs attention: no failure group is open" in pages["/"]
    assert "There is no order yet" in pages["/orders"]
    assert "No failure group is open." in pages["/groups"]
    assert "No bulk run was started" in pages["/bulk"]
    assert "Nothing needs attention." in pages["/shift"]
    assert "No queue has dead letters." in pages["/dead-letters"]
    assert "No message is rejected." in pages["/rejected"]
    assert "payment takes work" in pages["/agents"]
    assert "order_fulfilment 0 0 0 0" in pages["/workflows"]
    assert "The stack has no recurring order." in pages["/schedules"]
    for address, page in pages.items():
        assert "None" not in page, address


def test_an_open_order_shows_its_deadline_if_it_has_one(browser: Browser) -> None:
    world = browser.operator.world
    in_retry(browser.operator)
    assert "Deadline" not in browser.page("/orders/ord-1")
    world.dynamodb.update_item(
        TableName=world.stack.outputs["TasksTableName"],
        Key={"TaskId": {"S": "ord-1"}},
        UpdateExpression="SET Deadline = :at",
        ExpressionAttributeValues={":at": {"N": str(world.clock() + 7_200_000)}},
    )
    assert "Deadline in 2 h" in browser.page("/orders/ord-1")


@pytest.mark.exhaustive
def test_an_order_that_has_left_out_an_item_is_marked_found_and_counted(browser: Browser) -> None:
    operator = browser.operator
    for name in ("ord-1", "ord-2"):
        operator.world.submit(order(name))
    operator.world.run()
    assert "items left out" not in browser.page("/")
    with_an_item_left_out(operator, "ord-2")
    assert browser.page("/orders/ord-2").startswith("ord-2 ")
    assert "Completed , 1 of 5 items left out" in browser.page("/orders/ord-2")
    listed = browser.page("/orders?left_out=yes")
    assert "1 of 5 items left out, took 0 ms" in listed
    assert "ord-1" not in listed
    assert "Completed with items left out 1" in browser.page("/")
    assert "/orders?state=Completed&amp;left_out=yes" in browser.html("/")


def test_an_order_is_explained_with_its_steps_times_and_history(declined: Browser) -> None:
    page = declined.page("/orders/ord-1")
    assert page.count("charge_card: failed for good: CardDeclined: POST answered 402") >= 2
    assert "Undone" in page
    assert "charge_card: its undo begins" in page
    assert "Show the input of the order" in page
    shown = str(declined.operator.reads("why", "ord-1")["sentence"])
    before, _, after = shown.partition("at 2027-01-15T")
    assert before in page, "the sentence is that of the command line, with relative times"
    assert after.partition(")")[2] in page
    assert "2027-01-15T" not in page, "an instant is shown on hover only"


@pytest.mark.exhaustive
def test_an_order_is_found_by_its_id(declined: Browser) -> None:
    assert declined.page("/orders?find=%20ord-1 ").startswith("ord-1 ")
    assert "There is no order nothing, and nothing else" in declined.page("/orders?find=nothing")
    assert "There is no order nothing in" in declined.page("/orders/nothing", 404)
    assert "an order id is 1 to 128" in declined.page("/orders/a%20b", 404)


@pytest.mark.exhaustive
def test_the_search_finds_the_group_that_an_email_names_and_a_bulk_run(declined: Browser) -> None:
    group = declined.operator.world.task("ord-1").failure
    assert "1 order of order_fulfilment failed at charge_card and was undone" in declined.page(
        f"/orders?find={group}"
    )
    assert "There is no bulk run b-0123abcd" in declined.page("/orders?find=b-0123abcd", 404)
    assert "There is no order f-0123" in declined.page("/orders?find=f-0123")


@pytest.mark.exhaustive
def test_orders_are_filtered_as_on_the_command_line(declined: Browser) -> None:
    assert "ord-2" not in declined.page("/orders?state=undone")
    assert "ord-1" in declined.page("/orders?state=undone&workflow=&step=")
    assert "No order matches these filters." in declined.page("/orders?state=Archived")


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("older", "soon", "is not a duration"),
        ("state", "Odd", "There is no such state."),
        ("group", HOSTILE, "is not a failure group id"),
        ("where", "customerId", "A search by a field requires the field and its whole value"),
        ("workflow", "x" * 1_001, "The filter Workflow has 1,001 characters, and may have 1,000."),
    ],
)
def test_a_wrong_filter_is_said_beside_its_field_and_the_form_keeps_all_others(
    browser: Browser, name: str, text: str, why: str
) -> None:
    html = browser.html("/orders?" + urlencode({"starts": "ord-", "tenant": "a b", name: text}))
    [said] = re.findall(rf'<span class="wrong" id="wrong-{name}">(.*?)</span>', html)
    assert why in unescape(said)
    assert f'aria-invalid="true" aria-describedby="wrong-{name}" autofocus' in html
    assert html.count("aria-invalid") == 1
    assert 'name="starts" value="ord-"' in html
    assert 'name="tenant" value="a b"' in html
    if name not in ("state", "workflow"):
        assert f'name="{name}" value="{escape(text)}"' in html
    assert "<details open>" in html
    assert "No order is listed, because a filter is wrong." in text_of(html)
    assert "There is no order yet" not in html
    assert "data-live" not in html
    assert "/export?" not in html


def test_filters_that_are_wrong_together_are_said_below_the_form(browser: Browser) -> None:
    html = browser.html("/orders?older=2h&newer=1h")
    assert "No order is older than 2 h and newer than 1 h" in text_of(html)
    assert "aria-invalid" not in html
    assert 'name="older" value="2h"' in html
    both = browser.html("/orders?older=soon&newer=never")
    assert both.count('<span class="wrong"') == 2
    assert both.count("autofocus") == 1


@pytest.mark.exhaustive
def test_a_failure_group_has_its_cause_count_and_samples(browser: Browser) -> None:
    browser.operator.world.faults({"operation": "POST /refunds", "status": 400})
    browser.operator.world.submit({**order("ord-1"), **DECLINED}, {**order("ord-2"), **DECLINED})
    browser.operator.world.run()
    browser.operator.world.faults()
    groups = browser.operator.reads("groups", "ls")["groups"]
    assert isinstance(groups, list)
    for group in groups:
        page = browser.page(f"/groups/{group['group']}")
        assert group["error"]["message"] in page
        assert "ord-1" in page
    assert "There is no such failure group" in browser.page("/groups/f-1", 404)


@pytest.mark.exhaustive
def test_the_overview_has_what_is_retried_since_when_and_when_next(browser: Browser) -> None:
    assert "No order is retried." in browser.page("/")
    in_retry(browser.operator)
    browser.operator.world.clock.now += 7 * MINUTE
    page = browser.page("/").partition("Retried now")[2]
    where = "order_fulfilment, charge_card 1 0 1 of 5 7 min ago in 3 min ord-1"
    assert where in page
    assert "TransientError: POST answered 503" in page.partition(where)[0]


@pytest.mark.exhaustive
def test_a_held_agent_says_by_whom_and_why(browser: Browser) -> None:
    browser.operator.asks("hold", "mail", "--for", "30m")
    assert "held for another 30 min by ops: routine" in browser.page("/agents")
    assert "mail is held by ops" in browser.page("/")


@pytest.mark.exhaustive
def test_a_workflow_is_drawn_with_its_orders(declined: Browser) -> None:
    page = declined.page("/workflows")
    assert "order_fulfilment" in page
    assert "50 %" in page
    task = declined.operator.world.task("ord-1")
    assert "<svg" in declined.html(f"/workflows/{task.plan}")
    assert "There is no such plan." in declined.page(f"/workflows/{'0' * 64}", 404)
    assert "keeps no order of the workflow none" in declined.page("/workflows/none", 404)


@pytest.mark.exhaustive
def test_hostile_text_is_shown_and_never_runs(browser: Browser) -> None:
    browser.operator.world.submit(
        {**order("ord-1"), "customerId": HOSTILE[:60]}, {"orderId": HOSTILE}
    )
    browser.operator.world.run()
    browser.operator.types(
        "hold", "mail", "--for", "30m", "--as", HOSTILE[:90], "--reason", HOSTILE, "--yes"
    )
    for address in (*PAGES, "/orders/ord-1", f"/orders/{quote(HOSTILE, safe='')}"):
        answer = browser.client.get(address)
        assert "<script>alert" not in answer.text, address
        assert "<img" not in answer.text, address
        assert "\x1b" not in answer.text, address
        assert "\u202e" not in answer.text, address
        assert "49" not in text_of(answer.text).split(), address
    assert "<script>alert(1)</script>" in browser.page("/agents")


@pytest.mark.exhaustive
def test_a_part_that_cannot_be_read_says_so_and_the_rest_is_shown(
    declined: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        client = boto3.client("sqs")
        raise client.exceptions.ClientError(
            {"Error": {"Code": "AccessDenied", "Message": "not for viewers"}},
            "GetQueueAttributes",
        )

    monkeypatch.setattr("roundsman_console.faces.web.pages.overview._stats", refused)
    page = declined.page("/")
    assert "AWS refused GetQueueAttributes with these credentials: not for viewers" in page
    assert "Needs attention" in page


def test_the_overview_says_once_that_the_scheduler_is_behind(browser: Browser) -> None:
    note_reply_read(browser.operator.world, "payment", waited=720_000)
    page = browser.page("/")
    assert page.count("the scheduler is 12 min behind: orders are late") == 1


def test_the_page_of_an_order_says_that_the_scheduler_is_behind(browser: Browser) -> None:
    world = browser.operator.world
    world.submit(order("ord-1"))
    world.run_one_batch("SubmissionQueue")
    world.run_one_batch("SchedulerQueue")
    late = {":late": {"N": str(world.clock() - 150_000)}}
    world.dynamodb.update_item(
        TableName=world.stack.outputs["TasksTableName"],
        Key={"TaskId": {"S": "ord-1"}},
        UpdateExpression="SET Steps.reserve_stock.Late = :late",
        ExpressionAttributeValues=late,
    )
    note_reply_read(world, "inventory", waited=720_000)
    page = browser.page("/orders/ord-1")
    assert "the scheduler is 12 min behind; nothing is counted, and the order's time moves" in page
    assert browser.operator.reads("why", "ord-1")["case"] == "reply_waits"


@pytest.mark.exhaustive
def test_a_read_only_console_shows_no_buttons(browser: Browser) -> None:
    in_retry(browser.operator)
    assert "Run now" in browser.page("/orders/ord-1")
    browser.session.read_only = True
    assert "Run now" not in browser.page("/orders/ord-1")
    assert "--read-only" in browser.page("/commands/run?order=ord-1")


def test_only_pages_that_are_live_are_read_again(browser: Browser) -> None:
    assert "There is no such live page." in browser.page("/live?page=/doctor", 404)
    assert "There is no such live page." in browser.page("/live?page=//evil.example/orders", 404)


def test_every_state_has_a_colour_and_a_shape_of_its_own(browser: Browser) -> None:
    page = browser.html("/")
    for state in TaskState:
        assert f'class="state state-{state.lower()}"' in page
        assert SHAPES[state] in page
    assert len({SHAPES[state] for state in TaskState}) == len(TaskState)
    assert {*TaskState, *ProcessState} <= {*SHAPES}


@pytest.mark.exhaustive
def test_masked_fields_are_in_no_page(declined: Browser) -> None:
    token = DECLINED["paymentToken"]
    for address in (*PAGES, "/orders/ord-1", "/commands/resubmit?order=ord-1"):
        assert token not in declined.html(address), address
    assert "(masked)" in declined.html("/orders/ord-1")


@pytest.mark.exhaustive
def test_an_erased_order_says_so_and_offers_no_command(declined: Browser) -> None:
    before = declined.page("/orders/ord-1")
    assert "Resubmit" in before
    assert "1 Main St" in before
    typed = ("erase", "ord-1", "--why", "request 17", "--as", "ops", "--yes")
    assert declined.operator.types(*typed).exit_code == 0
    page = declined.page("/orders/ord-1")
    assert "Its contents were erased just now by ops: request 17." in page
    assert "Resubmit" not in page
    assert "1 Main St" not in page
