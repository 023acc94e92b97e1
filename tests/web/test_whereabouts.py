"""Where am I: the stack, account, region, profile and caller on top of each page, in a colour."""

import boto3
import pytest
from botocore.exceptions import ClientError
from starlette.testclient import TestClient

from roundsman_console.aws.stack import DeployedStack
from roundsman_console.faces.web import whereabouts
from roundsman_console.faces.web.access.one_browser import BrowserSession
from roundsman_console.faces.web.application import application
from roundsman_console.faces.web.whereabouts import Colour, Whereabouts, colour_of, find_whereabouts
from roundsman_console.inspector import Inspector
from tests.web.browsers import PORT, Browser, text_of

ARN = "arn:aws:cloudformation:eu-central-1:123456789012:stack/shop/0a1b"
AWS = "https://cloudformation.eu-central-1.amazonaws.com"


@pytest.fixture
def of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has signed in."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("stack", "profile", "colour"),
    [
        ("shop", "", Colour.BLUE),
        ("shop-prod", "", Colour.RED),
        ("ProdShop", "", Colour.BLUE),  # no word of its own
        ("shop-production-2", "", Colour.RED),
        ("prd1-shop", "", Colour.RED),
        ("shop", "acme-live", Colour.RED),
        ("shop-products", "delivery", Colour.BLUE),
    ],
)
def test_production_is_red_by_the_names_of_the_stack_and_of_the_profile(
    stack: str, profile: str, colour: Colour
) -> None:
    assert colour_of(stack, profile, local=False) is colour
    assert colour_of(stack, profile, local=True) is Colour.GREEN


@pytest.mark.usefixtures("of_nobody")
def test_a_stack_is_shown_with_its_account_region_profile_and_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(whereabouts, "_caller", lambda: ("assumed-role/ops/amy", 90_000))
    monkeypatch.setenv("AWS_PROFILE", "prod")
    where = find_whereabouts(DeployedStack("shop", {}, {}, arn=ARN, endpoint=AWS))
    assert where == Whereabouts(
        *("shop", "123456789012", "eu-central-1", "", "prod", "assumed-role/ops/amy"),
        Colour.RED,
        90_000,
    )
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    keys = find_whereabouts(DeployedStack("shop", {}, {}, arn=ARN, endpoint=AWS), Colour.AMBER)
    assert (keys.profile, keys.colour) == ("", Colour.AMBER), "the keys are used, not the profile"


def test_a_local_aws_is_named_and_green(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whereabouts, "_caller", lambda: ("", 90_000))
    endpoint = "http://127.0.0.1:4510"
    where = find_whereabouts(DeployedStack("shop-prod", {}, {}, arn=ARN, endpoint=endpoint))
    assert (where.local, where.colour) == (endpoint, Colour.GREEN)
    assert where.clock_ahead == 0, "a local AWS has the clock of this machine"


def test_a_caller_is_found_without_the_account_and_may_be_unknown(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_whereabouts(browser.inspector.stack).caller == "user/moto"

    def refused(_: str) -> object:
        raise ClientError({"Error": {"Code": "AccessDenied"}}, "GetCallerIdentity")

    monkeypatch.setattr(boto3, "client", refused)
    assert find_whereabouts(browser.inspector.stack).caller == ""


@pytest.mark.parametrize(
    ("date", "ahead"),
    [
        ("Wed, 01 Apr 2026 10:00:00 GMT", 240_000),
        ("Wed, 01 Apr 2026 10:06:00 GMT", -120_000),
        ("", 0),
        ("soon", 0),
        ("Wed, 01 Apr 2026 10:00:00", 0),  # without a zone it is no instant
    ],
)
def test_the_clock_of_this_machine_is_compared_with_that_of_aws(
    monkeypatch: pytest.MonkeyPatch, date: str, ahead: int
) -> None:
    class Sts:
        def get_caller_identity(self) -> object:
            answer = {"HTTPHeaders": {"date": date}}
            return {"Arn": "arn:aws:iam::1:user/amy", "ResponseMetadata": answer}

    monkeypatch.setattr(boto3, "client", lambda _: Sts())
    monkeypatch.setattr(whereabouts, "now", lambda: 1_775_037_840_000)  # 10:04
    where = find_whereabouts(DeployedStack("shop", {}, {}, arn=ARN, endpoint=AWS))
    assert (where.caller, where.clock_ahead) == ("user/amy", ahead)


def test_a_clock_that_is_wrong_is_said_on_each_page() -> None:
    for ahead, words in (
        (0, ""),
        (29_999, ""),
        (240_000, "The clock of this machine is 4 min ahead of that of AWS"),
        (-90_000, "The clock of this machine is 90 s behind that of AWS"),
    ):
        session, inspector = BrowserSession(PORT), Inspector(DeployedStack("shop", {}, {}))
        app = application(inspector, session, Whereabouts("shop", clock_ahead=ahead))
        with TestClient(app, base_url=session.address) as client:
            client.get(session.link_to())
            page = text_of(client.get("/export").text)
        assert words in page
        assert ("clock of this machine" in page) is bool(words)


def test_every_page_says_where_it_is_and_hostile_text_is_inert() -> None:
    session = BrowserSession(PORT, read_only=True)
    where = Whereabouts(
        "shop", "123456789012", "eu-west-1", "", "<b>x</b>", "user/\u202eamy", Colour.RED
    )
    inspector = Inspector(DeployedStack("shop", {}, {}))
    with TestClient(application(inspector, session, where), base_url=session.address) as client:
        client.get(session.link_to())
        for address in ("/export", "/progress/none", "/none", "/commands/none"):
            page = client.get(address).text
            assert "colour-red" in page, address
            assert "shop 1234-5678-9012 eu-west-1 profile <b>x</b> user/?amy read-only" in (
                text_of(page)
            ), address
            assert "<b>x" not in page
