"""Every message of the AlertTopic is as its schema says."""

import json
from collections.abc import Callable, Mapping
from functools import partial

import pytest

from roundsman.alerts.group import AlertKind
from roundsman.alerts.stack_faults import stack_fault_alert
from roundsman.model.holds import Hold
from roundsman.model.stack_faults import FaultKind, StackFault
from roundsman.wire.alert import (
    Alert,
    breaker_closed_alert,
    breaker_opened_alert,
    closing_failed_alert,
    foreign_command_alert,
    late_answer_alert,
)
from roundsman_console.acts.hold import alerts as hold_alerts
from roundsman_console.aws.stack import DeployedStack
from tests.console.schemas import assert_schema

T0 = 1_795_000_000_000
NOWHERE = DeployedStack("shop", {}, {})

ALERTS: Mapping[str, Callable[[], Alert]] = {
    "opened": lambda: breaker_opened_alert("payment", "503", opened_at=T0, until=T0 + 30_000),
    "closed": lambda: breaker_closed_alert("payment", since=T0, now=T0 + 60_000),
    "closed, of unknown age": lambda: breaker_closed_alert("payment", since=None, now=T0),
    "foreign": lambda: foreign_command_alert("cancel", "ord-1", "ops", "AROA:somebody"),
    "closing failed": lambda: closing_failed_alert("ord-1", "orders", "notify, log", "Undone"),
    "late answer": lambda: late_answer_alert("ord-1", "orders", "approve", went_on=False),
    "late answer after it went on": lambda: late_answer_alert(
        "ord-1", "orders", "approve", went_on=True
    ),
    **{
        f"{kind}, {news}": partial(stack_fault_alert, news, StackFault(kind, "PayQueue", T0, 2), T0)
        for kind in FaultKind
        for news in (AlertKind.FIRST, AlertKind.CLEAR)
    },
    "foreign, of nobody": lambda: foreign_command_alert("cancel", "ord-1", "ops", None),
}


@pytest.mark.parametrize("make", ALERTS.values(), ids=ALERTS.keys())
def test_an_alert_is_as_its_schema_says(make: Callable[[], Alert]) -> None:
    assert_schema("alert-message", json.loads(make().body))


def test_the_alerts_of_a_hold_are_as_their_schema_says(monkeypatch: pytest.MonkeyPatch) -> None:
    alerts: list[Alert] = []

    def send(_: DeployedStack, alert: Alert) -> None:
        alerts.append(alert)

    monkeypatch.setattr(hold_alerts, "_publish", send)
    hold = Hold("payment", "operator", T0, T0 + 60_000, "routine", "ops")
    hold_alerts.alert_held(NOWHERE, hold)
    hold_alerts.alert_released(NOWHERE, "payment", "ops", "", T0)
    assert len(alerts) == 2
    for alert in alerts:
        assert_schema("alert-message", json.loads(alert.body))


def test_a_message_of_another_kind_is_not_as_the_schema_says() -> None:
    document = json.loads(breaker_closed_alert("payment", since=None, now=T0).body)
    with pytest.raises(AssertionError, match=r"not as schemas/alert-message\.json says"):
        assert_schema("alert-message", {**document, "alert": "other"})


def chat_of(alert: Alert) -> tuple[str, str, str]:
    """What a chat shows of the alert: its title and its text; and the thread in which it does."""
    document = json.loads(alert.body)
    content = document["content"]
    return content["title"], content["description"], document["metadata"]["threadId"]


def test_a_chat_shows_the_title_and_in_a_code_block_the_text() -> None:
    alert = ALERTS["late answer"]()
    title, description, thread = chat_of(alert)
    assert title == "Roundsman: approve of ord-1 was answered after its undo"
    assert description == f"```\n{alert.text.strip()}\n```"
    assert thread == "order:ord-1"


def test_the_alerts_of_one_circuit_are_one_thread() -> None:
    assert {chat_of(ALERTS[name]())[2] for name in ("opened", "closed")} == {"agent:payment"}


@pytest.mark.parametrize(
    "said", ["``` @everyone", "<!channel> & <https://evil.example|click>", "*_~[x](https://y)#"]
)
def test_no_text_from_outside_is_markup_in_a_chat(said: str) -> None:
    alert = breaker_opened_alert("payment", said, opened_at=T0, until=T0 + 1)
    document = json.loads(alert.body)
    title, description, _ = chat_of(alert)
    text = description.removeprefix("```\n").removesuffix("\n```")
    assert not set("`<>") & set(text), "nothing ends the code block, or is a mention in it"
    for plain in (title, document["metadata"]["summary"]):
        assert not set("`<>*_~[]|@#") & set(plain)
