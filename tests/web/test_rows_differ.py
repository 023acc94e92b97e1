"""Lists of messages: no two rows look the same where the messages differ, and none shows a secret.

The id of a message and its time are left out here: they tell nobody what it is.
"""

import json
import re
from collections import Counter

import pytest

from roundsman_console.facts.set_aside.beginning import MOST, beginning_of, measure_of
from tests.console.operators import Operator
from tests.console.test_rejected import rejected
from tests.moto.orders import order
from tests.web.browsers import Browser, text_of
from tests.web.reader import dead, reader_of

NO_ID = {name: value for name, value in order("x").items() if name != "orderId"}
SECRET = str(NO_ID["paymentToken"])
HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"
BODIES = [
    json.dumps(NO_ID),
    json.dumps({**NO_ID, "customerId": "c-2"}),
    json.dumps({**NO_ID, "note": "the end differs from the first"}),
    json.dumps({"note": HOSTILE}),
    '{"paymentToken": "tok_cut_off", "customerId": ',
    '{"paymentToken": "tok_cut_off", "customerI": ',
    "[1, 2]",
    "7",
]
ARTICLE = re.compile(r'<article class="letter.*?</article>', re.DOTALL)
NEITHER_ID_NOR_TIME = re.compile(
    r'Message <code>[^<]*</code>|<time[^>]*>[^<]*</time>|\?message=[^"]*'
)


def rows(html: str) -> list[str]:
    """What the rows say, without the ids of messages and the times."""
    return [text_of(NEITHER_ID_NOR_TIME.sub("", one)) for one in ARTICLE.findall(html)]


def test_rejected_messages_without_an_order_id_are_told_apart(browser: Browser) -> None:
    rejected(browser.operator.world, *BODIES)
    html = browser.html("/rejected")
    found = rows(html)
    assert len(found) == len({*found}) == len(BODIES)
    assert all("without an order id" not in one for one in found)
    text = " ".join(found)
    assert 'No order id: {"customerId": "c-42"' in text
    assert measure_of(BODIES[4]) in text
    assert "Sent to " in text
    assert "rejected" in text
    assert SECRET not in html
    assert "tok_cut_off" not in html
    assert "<script>alert" not in html
    assert "\x1b" not in html


def test_dead_letters_without_an_order_id_are_told_apart(browser: Browser) -> None:
    dead(browser.operator, *BODIES)
    html = browser.html("/dead-letters")
    found = rows(html)
    assert len(found) == len({*found}) == len(BODIES)
    assert SECRET not in html
    assert "tok_cut_off" not in html
    assert "<script>alert" not in html


def test_dead_letters_of_one_order_are_told_apart(browser: Browser) -> None:
    dead(browser.operator, '{"orderId": "ord-1", "cancel": {}}', '{"orderId": "ord-1"}')
    found = rows(browser.html("/dead-letters"))
    assert len(found) == len({*found}) == 2


def test_a_message_that_no_function_rejected_says_who_sent_it(browser: Browser) -> None:
    world = browser.operator.world
    world.sqs.send_message(QueueUrl=world.url("RejectedQueue"), MessageBody='{"hello": 1}')
    [found] = rows(browser.html("/rejected"))
    assert 'No order id: {"hello": 1}' in found
    assert re.search(r"(Sent by \S+|Of unknown origin), rejected", found)


def test_the_command_line_says_the_same_of_them(operator: Operator) -> None:
    rejected(operator.world, *BODIES)
    printed = " ".join(operator.types("rejected", "ls").stdout.split())
    assert "no order id:" in printed
    assert SECRET not in printed
    assert "tok_cut_off" not in printed
    messages = operator.reads("rejected", "ls")["messages"]
    assert isinstance(messages, list)
    assert len({one["sha256"] for one in messages}) == len(BODIES)
    assert sum("begins" in one for one in messages) == len(BODIES) - 2


def test_a_value_is_masked_before_the_text_is_cut(browser: Browser) -> None:
    stack = browser.inspector.stack
    secret = "s" * 200
    shown = beginning_of(stack, json.dumps({"paymentToken": secret, "currency": "EUR"}))
    assert shown == '{"paymentToken": "(masked)", "currency": "EUR"}'
    large = beginning_of(stack, json.dumps({"note": "x" * 100_000}))
    assert large is not None
    assert len(large) == MOST + 3


def test_nothing_of_a_body_is_shown_where_the_workflows_are_not_known(browser: Browser) -> None:
    stack = browser.inspector.stack
    assert beginning_of(stack, '{"a": 1}') == '{"a": 1}'
    object.__setattr__(stack, "events", None)
    assert beginning_of(stack, '{"a": 1}') is None


ROW = re.compile(r"<(tr|li|article|dt)\b(?:(?!<(?:tr|li|article)\b).)*?</\1>", re.DOTALL)
"""A row of a table or of a list, without another one in it."""


@pytest.mark.exhaustive
def test_no_list_of_any_page_has_two_rows_that_look_the_same(browser: Browser) -> None:
    for name, html in reader_of(browser).pages():
        main = html.partition("<main")[2]
        for part in re.split(r"<(?:tbody|ul|ol)\b", main)[1:]:
            listed = re.split(r"</(?:tbody|ul|ol)>", part)[0]
            found = Counter(text_of(one[0]) for one in ROW.finditer(listed))
            twice = [text for text, count in found.items() if count > 1]
            assert twice == [], name
