"""The console of the first look: its pages, its sentences, and that it reaches no other AWS."""

import builtins
import html as markup
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

import boto3
import pytest
from botocore.exceptions import ClientError
from starlette.testclient import TestClient

from roundsman.aws.clock import now
from roundsman.model.instants import SECOND
from roundsman_console.aws.stack import find_stack
from roundsman_console.base.errors import StackNotFound
from roundsman_console.faces.web.access.one_browser import BrowserSession
from roundsman_console.faces.web.access.session import FORM_TOKEN
from roundsman_console.faces.web.application import application
from roundsman_testing.first_look.serving import WHERE, FirstLook, open_shop
from tests.web.browsers import PORT, text_of

OF_PYTHON = re.compile(
    "|".join(
        rf"\b{name}\b"
        for name, kind in vars(builtins).items()
        if isinstance(kind, type) and issubclass(kind, BaseException)
    )
    + r"|\b(roundsman|botocore|boto3|starlette)\w*\.|\bClientError\b|Traceback|NotImplemented"
)
"""What a visitor must never read: the name of an exception of Python, or of a module."""
NOT_IN_A_WORLD = re.compile(r"CloudWatch|aws logs|local AWS|A world in memory|not alerted|NaN|None")
"""What a world does not have, and what says that it was asked for it."""
FILLED_IN = {
    "reason": "it refuses every card",
    "seconds": "5m",
    "step": "charge_card",
    "outcome": "did-not",
    "workflow": "purchase",
    "token": "ord-1037",
    "failed": "Declined",
    "body": '{"orderId": "new-1", "processing": {"workflow": "purchase"}}',
    "orders": "ord-1037",
    "share": "10",
    "at": "2027-01-15T08:00:00Z",
}
"""What a visitor types into the fields of the forms."""
MOST_SECONDS = 120


@dataclass
class Clock:
    """The clock of a shop that goes on as often as it is looked at, however fast the machine is."""

    now: int = field(default_factory=now)

    def __call__(self) -> int:
        self.now += SECOND // 10
        return self.now


@dataclass(frozen=True)
class Visitor:
    """Someone before the console of a shop."""

    look: FirstLook
    clock: Clock
    session: BrowserSession
    client: TestClient

    def html(self, address: str) -> str:
        answer = self.client.get(address)
        assert answer.status_code == 200, text_of(answer.text)
        return answer.text

    def sends(self, address: str, **fields: str) -> str:
        answer = self.client.post(
            address,
            data={FORM_TOKEN: self.session.form_token, **fields},
            headers={"Origin": self.session.address},
        )
        assert answer.status_code == 200, text_of(answer.text)
        return answer.text

    def carries_out(self, command: str, **fields: str) -> str:
        """The text of the page after a form was sent, and sent again as it was shown."""
        before = self.sends(f"/commands/{command}", **fields)
        shown = before.partition('name="shown" value="')[2].partition('"')[0]
        assert shown, text_of(before)
        return text_of(self.sends(f"/commands/{command}", **fields, go="yes", shown=shown))

    def done(self) -> list[bool]:
        return [step.done for step in self.look.guide.steps()]

    def wait_for(self, true: Callable[[], bool]) -> None:
        for _ in range(MOST_SECONDS):
            if true():
                return
            self.clock.now += SECOND
            self.look.shop.go_on()
        pytest.fail(f"it is not so after {MOST_SECONDS} seconds of the shop")


@pytest.fixture
def visitor(monkeypatch: pytest.MonkeyPatch, session_without_real_aws: None) -> Iterator[Visitor]:
    clock = Clock()
    with open_shop(lambda _: None, clock) as look:
        session = BrowserSession(PORT)
        app = application(look.inspector, session, WHERE, look.guide)
        with TestClient(app, base_url=session.address) as client:
            client.get(session.link_to())
            yield Visitor(look, clock, session, client)


def group_of(visitor: Visitor) -> str:
    return next(iter(visitor.look.shop.failed().values()))


@pytest.mark.exhaustive
def test_everything_on_every_page_can_be_read(visitor: Visitor) -> None:
    failed = next(iter(visitor.look.shop.failed()))
    for address in (
        *(
            "/",
            "/orders",
            "/orders?state=Completed",
            "/orders?step=charge_card",
            "/find?find=ord-10",
        ),
        *(f"/orders/{failed}", "/groups", f"/groups/{group_of(visitor)}", "/bulk", "/agents"),
        *("/dead-letters", "/rejected", "/workflows", "/doctor", "/cost"),
    ):
        html = visitor.html(address)
        assert 'class="causes"' not in html, text_of(html)
        assert "refuses every call" in html
    assert "Nothing is wrong" in text_of(visitor.html("/doctor"))
    assert "orders archived (purchase, charge_card)" in text_of(visitor.html("/"))
    assert "in memory; nothing here is real" in visitor.html("/")


def links_of(page: str) -> set[str]:
    """The pages that a page leads to; of the orders and of the states, one."""
    found = {markup.unescape(one) for one in re.findall(r'href="(/[^"#]*)', page)}
    return {
        one
        for one in found
        if not one.startswith(("/static", "/times"))
        and not ("ord-" in one and "ord-1037" not in one)
        and not ("state=" in one and "state=Archived" not in one)
    }


def sends_form(visitor: Visitor, address: str) -> str:
    """What a form shows when a visitor fills it in, and then presses its button."""
    parts, page = urlsplit(address), visitor.html(address)
    names = re.findall(r'<(?:input|select|textarea)[^>]* name="([^"]+)"', page)
    filled = {name: FILLED_IN[name] for name in names if name in FILLED_IN}
    fields = {**filled, **dict(parse_qsl(parts.query))}
    before = visitor.sends(parts.path, **fields)
    shown = before.partition('name="shown" value="')[2].partition('"')[0]
    return before + (visitor.sends(parts.path, **fields, go="yes", shown=shown) if shown else "")


@pytest.mark.exhaustive
def test_no_page_and_no_form_names_what_a_world_does_not_have_or_an_error_of_python(
    visitor: Visitor,
) -> None:
    todo, read = ["/"], dict[str, str]()
    while todo:
        address = todo.pop()
        read[address] = visitor.html(address)
        todo += sorted(links_of(read[address]) - {*read, *todo})
    for address in sorted(read, key=lambda one: one.startswith("/commands/erase")):
        if address.startswith("/commands/"):
            read[f"{address}, sent"] = sends_form(visitor, address)
    assert len(read) > 50, "the pages lead to all others"
    for address, page in read.items():
        shown = text_of(page)
        for unwanted in (OF_PYTHON, NOT_IN_A_WORLD):
            found = unwanted.search(shown)
            assert found is None, f"{address}: {shown[found.start() - 200 : found.end() + 200]}"


@pytest.mark.exhaustive
def test_the_page_and_the_terminal_say_what_is_so_of_the_first_success(visitor: Visitor) -> None:
    said = visitor.carries_out("hold", agent="payment", seconds="30m", reason="it refuses")
    assert "not alerted" not in said
    assert "held by" in visitor.look.shop.world.post.alerts[-1].subject
    overview = text_of(visitor.html("/"))
    assert "Last 24 hours" not in overview
    assert "CloudWatch" not in overview + text_of(visitor.html("/agents"))
    assert "AWS charges nothing for it" in text_of(visitor.html("/cost"))
    assert "aws logs" not in visitor.html(f"/groups/{group_of(visitor)}")


@pytest.mark.exhaustive
def test_hold_repair_release_and_resubmit_complete_the_orders(visitor: Visitor) -> None:
    failed, group = list(visitor.look.shop.failed()), group_of(visitor)
    assert visitor.done() == [False, False, False]
    visitor.carries_out("hold", agent="payment", seconds="30m", reason="it refuses every card")
    assert visitor.done() == [True, False, False]
    page = visitor.sends("/guide")
    assert visitor.done() == [True, True, False]
    assert "Let them go on" in page
    visitor.carries_out("release", agent="payment", reason="it is repaired")
    answer = visitor.carries_out("resubmit-all", group=group, reason="it is repaired")
    assert "the supervisor begins within a minute" in answer
    visitor.wait_for(lambda: visitor.done()[2])
    assert sorted(visitor.look.shop.completed(failed)) == sorted(failed)
    assert "are Completed, with each effect once" in text_of(visitor.html("/"))


def test_the_button_needs_the_token_of_a_form(visitor: Visitor) -> None:
    origin = {"Origin": visitor.session.address}
    assert visitor.client.post("/guide", headers=origin).status_code == 403
    assert visitor.client.post("/guide", data={FORM_TOKEN: "x"}, headers=origin).status_code == 403
    real = {FORM_TOKEN: visitor.session.form_token}
    assert visitor.client.post("/guide", data=real).status_code == 403, "from another site"
    assert not visitor.look.shop.service.knows_merchant


@pytest.mark.exhaustive
def test_a_console_without_a_guide_has_neither_sentences_nor_a_button(visitor: Visitor) -> None:
    session = BrowserSession(PORT + 1)
    app = application(visitor.look.inspector, session)
    with TestClient(app, base_url=session.address) as client:
        client.get(session.link_to())
        html = client.get("/").text
        assert "guide" not in html
        real, origin = {FORM_TOKEN: session.form_token}, {"Origin": session.address}
        assert client.post("/guide", data=real, headers=origin).status_code == 404


@pytest.mark.exhaustive
def test_a_live_page_is_read_more_often_than_that_of_a_stack(visitor: Visitor) -> None:
    assert 'data-every="2"' in visitor.html("/")
    assert 'data-every="1"' not in visitor.html("/groups")


@pytest.mark.exhaustive
def test_an_event_that_is_rejected_is_corrected_and_sent_again(visitor: Visitor) -> None:
    world = visitor.look.shop.world
    with visitor.look.shop.aws.lock:
        world.submit({"orderId": "late-1", "processing": {"workflow": "purchase", "nope": 1}})
    visitor.wait_for(lambda: bool(world.post.put_aside))
    page = text_of(visitor.html("/rejected"))
    assert "late-1" in page
    assert "nope" in page
    queue = visitor.look.inspector.stack.output("RejectedQueueUrl")
    [rejected] = boto3.client("sqs").receive_message(QueueUrl=queue)["Messages"]
    visitor.carries_out(
        "resend",
        message=rejected["MessageId"],
        body='{"orderId": "late-1", "processing": {"workflow": "purchase"}}',
        reason="corrected",
    )
    visitor.wait_for(lambda: "late-1" in world.processes.watch.tasks)
    assert not world.post.put_aside


@pytest.mark.exhaustive
def test_an_order_goes_on_under_the_newest_plan(visitor: Visitor) -> None:
    """The stack's submission function is asked for it."""
    visitor.look.shop.repair()
    order = next(iter(visitor.look.shop.failed()))
    said = visitor.carries_out("resubmit", order=order, reason="x", newest_plan="yes")
    assert "resubmit by" in said
    visitor.wait_for(lambda: visitor.look.shop.completed([order]) == [order])


def test_no_call_leaves_the_process(visitor: Visitor) -> None:
    with pytest.raises(ClientError, match="A world in memory has no CreateBucket of s3"):
        boto3.client("s3").create_bucket(Bucket="b")
    with pytest.raises(ClientError, match="A world in memory has no ListBackups of dynamodb"):
        boto3.client("dynamodb").list_backups(TableName="TasksTable")
    with pytest.raises(StackNotFound):
        find_stack("another")
    assert boto3.client("sqs").meta.endpoint_url == "http://127.0.0.1:9"


@pytest.mark.exhaustive
def test_a_condition_that_fails_is_the_error_of_the_client(visitor: Visitor) -> None:
    client = boto3.client("dynamodb")
    with pytest.raises(client.exceptions.ConditionalCheckFailedException):
        client.put_item(
            TableName="ControlTable",
            Item={"ControlId": {"S": "x"}},
            ConditionExpression="attribute_exists(ControlId)",
        )


def test_the_environment_is_as_before_when_the_shop_closes(
    monkeypatch: pytest.MonkeyPatch, session_without_real_aws: None
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "a person's own")
    session, before = boto3.DEFAULT_SESSION, dict(os.environ)
    with open_shop(lambda _: None):
        assert "AWS_PROFILE" not in os.environ
        assert boto3.DEFAULT_SESSION is not session
    assert dict(os.environ) == before
    assert boto3.DEFAULT_SESSION is session
