"""Masked values are in nothing that a person is shown, unless the person asks for them."""

import json
from pathlib import Path

import pytest

from roundsman.aws.dynamodb.tasks import DynamoStore
from roundsman.engine import masks
from roundsman.errors import TryAgain
from roundsman_console.inspector import Inspector
from roundsman_testing import eventbridge_event, sns_notification
from tests.console.operators import DECLINED, Operator
from tests.moto.orders import order

TOKEN = DECLINED["paymentToken"]


@pytest.fixture
def undone(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> Operator:
    """An undone order in whose history a person has quoted the token of its card.

    A scheduler stored it that did not mask what enters, as older ones did not.
    """
    with monkeypatch.context() as older:
        older.setattr(masks, "says_something", lambda _: False)
        is_undone_again(operator)
    return operator


def is_undone_again(operator: Operator) -> None:
    """Let an order be undone, and undone again after a command that quotes its token."""
    operator.world.submit({**order("ord-1"), **DECLINED})
    operator.world.run()
    who = ("--as", "ops", "--yes", "--no-wait")
    result = operator.types("resubmit", "ord-1", "--again", *who, "--reason", f"{TOKEN} is right")
    assert result.exit_code == 0, result.output
    operator.world.run()
    assert operator.world.task("ord-1").state == "Undone"


def test_what_a_person_quotes_is_neither_stored_nor_logged(
    operator: Operator, capsys: pytest.CaptureFixture[str]
) -> None:
    is_undone_again(operator)
    history = repr(operator.world.store.history("ord-1"))
    assert "(masked) is right" in history
    assert TOKEN not in history
    logged = capsys.readouterr().out
    assert "(masked) is right" in logged
    assert TOKEN not in logged


@pytest.mark.exhaustive
def test_what_is_shown_of_an_order_has_no_masked_value(undone: Operator, tmp_path: Path) -> None:
    for command in ("show", "timeline"):
        for options in ((), ("--json",)):
            result = undone.types(command, "ord-1", *options)
            assert result.exit_code == 0, result.output
            assert TOKEN not in result.stdout
            assert "(masked)" in result.stdout
    commands: tuple[tuple[str, ...], ...]
    commands = (("why", "ord-1"), ("ls",), ("ls", "--json"), ("watch", "--times", "1"))
    for each in commands:
        assert TOKEN not in undone.types(*each).stdout
    to = tmp_path / "orders.jsonl"
    assert undone.types("export", "--with-orders", "--to", str(to)).exit_code == 0
    line = json.loads(to.read_text())
    assert TOKEN not in to.read_text()
    assert line["order"]["paymentToken"] == "(masked)"
    assert line["order"]["lines"] == order("ord-1")["lines"]


@pytest.mark.exhaustive
def test_an_erasure_that_has_not_reached_the_history_shows_no_masked_value(
    undone: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order, which says what to mask in the reasons, is erased before them."""

    def is_throttled(*_: object) -> None:
        raise TryAgain("throttled")

    erase = ("erase", "ord-1", "--why", "request 17", "--as", "ops", "--yes")
    with monkeypatch.context() as patched:
        patched.setattr(DynamoStore, "erase_history", is_throttled)
        assert undone.types(*erase).exit_code == 4
    row, history = undone.world.store.order("ord-1"), undone.world.store.history("ord-1")
    assert row is not None
    assert row.content is None
    assert TOKEN in repr(history)
    for command in (("show", "ord-1"), ("timeline", "ord-1"), ("export", "--with-orders")):
        output = undone.types(*command).stdout
        assert TOKEN not in output
        assert "request 17" in output
    assert undone.types(*erase).exit_code == 0
    assert "(masked)" not in undone.types("show", "ord-1").stdout


@pytest.mark.exhaustive
def test_a_person_who_asks_for_them_is_shown_the_masked_values(undone: Operator) -> None:
    assert f"{TOKEN} is right" in undone.types("show", "ord-1", "--reveal").stdout
    assert f"{TOKEN} is right" in undone.types("show", "ord-1", "--reveal", "--json").stdout


@pytest.mark.exhaustive
def test_the_inspector_masks_without_the_code_of_the_workflow(undone: Operator) -> None:
    inspector = Inspector.of_stack()
    assert inspector.stack.events is None
    task, _, history = inspector.task("ord-1")
    shown = [repr(task), repr(history), repr(inspector.timeline("ord-1"))]
    shown += [repr(inspector.tasks()), repr(inspector.why("ord-1"))]
    assert not [text for text in shown if TOKEN in text]
    assert TOKEN in repr(inspector.task("ord-1", reveal=True)[2])


def test_a_printed_command_does_not_repeat_a_masked_value(operator: Operator) -> None:
    operator.world.submit({**order("ord-1"), **DECLINED})
    operator.world.run()
    typed = ("--set", "paymentToken=tok_visa", "--set", "lines[0].quantity=3", "--again")
    result = operator.types("resubmit", "--state", "Undone", *typed, "--reason", "a new card")
    assert result.exit_code == 0, result.output
    assert "tok_visa" not in result.stdout
    assert "'paymentToken=(masked)'" in result.stdout
    assert "'lines[0].quantity=3'" in result.stdout
    again = operator.asks("resubmit", "ord-1", "--again", "--set", "paymentToken=(masked)")
    assert again.exit_code == 2
    assert "paymentToken was left out of the printed command" in again.output


def test_the_body_of_a_rejected_message_is_masked(operator: Operator) -> None:
    operator.world.submit({**order("ord-1"), "paymentToken": "tok_secret", "lines": []})
    operator.world.run()
    listed = operator.reads("rejected", "ls")["messages"]
    assert isinstance(listed, list)
    ((message,),) = [[one["messageId"] for one in listed]]
    for options in ((), ("--json",)):
        shown = operator.types("rejected", "show", message, *options)
        assert shown.exit_code == 0, shown.output
        assert "tok_secret" not in shown.stdout
        assert "(masked)" in shown.stdout
    assert "tok_secret" in operator.types("rejected", "show", message, "--reveal").stdout


@pytest.mark.parametrize("of_topic", [True, False])
def test_the_body_of_a_rejected_envelope_is_masked(operator: Operator, of_topic: bool) -> None:
    event = {**order("ord-1"), "paymentToken": "tok_secret"}
    operator.world.submit(
        sns_notification(event, topic="orders")
        if of_topic
        else eventbridge_event(event, source="shop", detail_type="OrderPlaced")
    )
    operator.world.run()
    listed = operator.reads("rejected", "ls")["messages"]
    assert isinstance(listed, list)
    [message] = [one["messageId"] for one in listed]
    for options in ((), ("--json",)):
        shown = operator.types("rejected", "show", message, *options)
        assert shown.exit_code == 0, shown.output
        assert "tok_secret" not in shown.stdout
        assert "(masked)" in shown.stdout
    assert "tok_secret" in operator.types("rejected", "show", message, "--reveal").stdout
