"""What holds for every verb: refusals, questions, waiting, and what is printed for each."""

from dataclasses import replace

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from typer.testing import CliRunner

from roundsman_console.faces.cli import confirm
from roundsman_console.main import app
from tests.console.operators import Operator, at_each_call, document, in_retry
from tests.moto.orders import order

ALL_VERBS = [
    ("resubmit", "ord-1"),
    ("undo", "ord-1"),
    ("cancel", "ord-1"),
    ("resolve", "ord-1", "charge_card", "--did"),
    ("extend", "ord-1", "--by", "10m"),
    ("run", "ord-1"),
]


def commands(operator: Operator) -> list[str]:
    """What can be read from the SchedulerQueue: what was sent and not carried out."""
    return operator.world.bodies(operator.world.url("SchedulerQueue"))


def test_each_verb_is_refused_at_once_where_the_state_does_not_allow_it(operator: Operator) -> None:
    operator.world.submit(order("ord-1"))
    operator.world.run()
    for command in ALL_VERBS:
        if command[0] == "undo":
            continue  # a completed order can be taken back
        result = operator.asks(*command, "--json")
        assert result.exit_code == 1, command
        printed = document(result)
        assert (printed["outcome"], printed["commandId"], printed["state"]) == (
            "refused",
            None,
            "Completed",
        )
        start = f"{command[0]} of ord-1 refused, nothing was sent: "
        assert str(printed["sentence"]).startswith(start)
        assert result.stderr == f"{printed['sentence']}\n"
    assert commands(operator) == []
    assert operator.world.store.history("ord-1") == []


@pytest.mark.exhaustive
def test_each_verb_of_an_order_that_is_not_there_is_one_sentence(operator: Operator) -> None:
    for verb, _, *rest in ALL_VERBS:
        for name in ("ord-2", "no such id!", "", "\udcff\x1b[31m"):
            result = operator.asks(verb, name, *rest, "--json")
            assert (result.exit_code, result.stdout) == (3, ""), (verb, name)
            assert result.stderr.startswith("There is no order ")
            assert "\x1b" not in result.stderr


def test_a_step_that_does_not_exist_is_reported_with_those_that_do(operator: Operator) -> None:
    in_retry(operator)
    for arguments in (
        ("resolve", "ord-1", "charge", "--did"),
        ("extend", "ord-1", "charge", "--by", "1m"),
        ("resubmit", "ord-1", "--step", "charge"),
    ):
        result = operator.asks(*arguments)
        assert result.exit_code == 1
        assert result.stderr == (
            "The workflow has no step charge; it has reserve_stock, charge_card, "
            "create_shipment, send_confirmation.\n"
        )


@pytest.mark.exhaustive
def test_what_changed_since_the_look_is_refused_by_the_scheduler_and_reported(
    operator: Operator,
) -> None:
    in_retry(operator)
    world, seen = operator.world, operator.world.task("ord-1")

    def someone_else_comes_first() -> None:
        world.store.save(replace(seen, version=seen.version + 1), seen=seen.version)
        world.run()

    operator.patience.sleeping = someone_else_comes_first
    result = operator.asks("extend", "ord-1", "--by", "1m", "--json")
    assert result.exit_code == 1
    printed = document(result)
    assert printed["outcome"] == "refused"
    assert printed["commandId"] is not None
    assert result.stderr == (
        "extend by ops refused: the task has changed since it was read "
        f"(version {seen.version}, now {seen.version + 1}): read it again.\n"
    )
    assert world.task("ord-1").complete_by == seen.complete_by


@pytest.mark.exhaustive
def test_a_scheduler_that_does_not_answer_is_reported_and_the_command_still_acts_later(
    operator: Operator,
) -> None:
    in_retry(operator)
    operator.patience.sleeping = lambda: None
    result = operator.asks("undo", "ord-1", "--json", "--wait", "2")
    assert result.exit_code == 4
    printed = document(result)
    assert (printed["outcome"], printed["state"]) == ("unconfirmed", "Retry")
    assert result.stderr == (
        "undo of ord-1 is sent, but the scheduler has not handled it within 2 s. The command takes "
        "effect once, when the scheduler reads it. See: roundsman show ord-1\n"
    )
    assert sum(operator.patience.slept) == 2
    operator.world.run()
    assert operator.world.task("ord-1").state == "Undone"


def test_a_send_whose_answer_was_lost_is_reported_as_not_confirmed(operator: Operator) -> None:
    in_retry(operator)

    def lost(**_: object) -> None:
        raise ReadTimeoutError(endpoint_url="https://sqs.test")

    with at_each_call("sqs.SendMessage", lost):
        result = operator.asks("run", "ord-1", "--json")
    assert result.exit_code == 4
    assert document(result)["outcome"] == "unconfirmed"
    assert "run of ord-1 may have been sent nevertheless" in result.stderr


def test_an_outcome_that_may_not_be_read_is_reported_as_not_confirmed(operator: Operator) -> None:
    in_retry(operator)

    def denied(**_: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "Query")

    with at_each_call("dynamodb.Query", denied):
        result = operator.asks("run", "ord-1")
    assert result.exit_code == 4
    assert "The command is sent, but its outcome cannot be read" in result.stderr


@pytest.mark.exhaustive
def test_a_look_that_is_throttled_is_repeated(operator: Operator) -> None:
    in_retry(operator)
    throttles = iter([True])

    def throttled(**_: object) -> None:
        if next(throttles, False):
            raise ClientError({"Error": {"Code": "ThrottlingException"}}, "Query")

    with at_each_call("dynamodb.Query", throttled):
        assert operator.asks("run", "ord-1").exit_code == 0


def test_a_wait_that_is_broken_off_is_reported_as_not_confirmed(operator: Operator) -> None:
    in_retry(operator)

    def ctrl_c() -> None:
        raise KeyboardInterrupt

    operator.patience.sleeping = ctrl_c
    result = operator.asks("run", "ord-1", "--json")
    assert (result.exit_code, document(result)["outcome"]) == (4, "unconfirmed")
    assert document(result)["commandId"] is not None
    assert "run of ord-1 is sent, but the wait for its outcome was interrupted." in result.stderr


def test_a_stack_that_is_not_there_is_one_sentence(operator: Operator) -> None:
    result = operator.asks("run", "ord-1", "--stack", "nowhere")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("There is no stack nowhere in this account and region")


@pytest.mark.exhaustive
def test_without_waiting_it_is_sent_and_that_is_all(operator: Operator) -> None:
    in_retry(operator)
    result = operator.asks("run", "ord-1", "--no-wait")
    assert result.exit_code == 0
    assert result.stdout == "run of ord-1 is sent. See: roundsman show ord-1\n"
    assert operator.patience.slept == []
    printed = document(operator.asks("run", "ord-1", "--no-wait", "--json"))
    assert printed["outcome"] == "sent"
    operator.world.run()
    assert operator.world.task("ord-1").state == "Completed"


IRREVERSIBLE = [("undo", "ord-1"), ("cancel", "ord-1"), ("cancel", "ord-1", "--no-undo")]


def test_what_cannot_be_taken_back_is_not_sent_unless_someone_can_be_asked_or_with_yes(
    operator: Operator,
) -> None:
    in_retry(operator)
    for command in IRREVERSIBLE:
        result = operator.types(*command, "--reason", "routine")
        assert result.exit_code == 2
        assert "There is no terminal to confirm at: add --yes. Nothing was sent." in result.stderr
    assert commands(operator) == []


def test_at_a_terminal_the_person_is_asked_and_may_say_no(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_retry(operator)
    monkeypatch.setattr(confirm, "at_a_terminal", lambda: True)
    command = ("cancel", "ord-1", "--no-undo", "--reason", "routine", "--json")
    refused = operator.types(*command, answer="n\n")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert (
        "ord-1 is Retry; this may have happened: reserve_stock, charge_card. Cancel it and "
        "keep that? [y/N] "
    ) in refused.stderr
    assert "Nothing was sent." in refused.stderr
    assert commands(operator) == []
    agreed = operator.types(*command, answer="y\n")
    assert agreed.exit_code == 0
    assert document(agreed)["state"] == "Cancelled"


@pytest.mark.exhaustive
def test_what_is_not_irreversible_is_never_asked_about(operator: Operator) -> None:
    in_retry(operator)
    assert operator.types("run", "ord-1", "--reason", "routine").exit_code == 0


@pytest.mark.exhaustive
def test_the_users_name_stands_in_where_none_is_given(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_retry(operator)
    monkeypatch.setenv("LOGNAME", "amy")
    printed = document(operator.types("extend", "ord-1", "--by", "1m", "--reason", "x", "--json"))
    assert printed["by"] == "amy"
    printed = document(operator.types("run", "ord-1", "--by", "bob", "--reason", "x", "--json"))
    assert printed["by"] == "bob"


def test_text_that_no_message_can_carry_is_refused_in_a_sentence(operator: Operator) -> None:
    in_retry(operator)
    result = operator.types("run", "ord-1", "--reason", "half \udcff")
    assert result.exit_code == 2
    assert "half of a surrogate pair" in result.stderr
    assert commands(operator) == []


@pytest.mark.exhaustive
def test_a_reason_that_would_act_on_a_terminal_is_shown_inert(operator: Operator) -> None:
    in_retry(operator)
    reason = "\x1b[2J[red]wiped\u202e"
    result = operator.types("extend", "ord-1", "--by", "1m", "--as", "ops", "--reason", reason)
    assert result.stdout.startswith("Done: extend by ops: ?[2J[red]wiped?.\n")
    shown = operator.types("show", "ord-1").stdout
    assert "?[2J[red]wiped?" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("extend", "o", "--by", "10"), "'10' is not a duration. Write it with units"),
        (("extend", "o", "--by", "31d"), "31d is too long: at least 1s, at most 30d"),
        (("resolve", "o", "s"), "Give either --did or --did-not."),
        (("resolve", "o", "s", "--did", "--did-not"), "Give either --did or --did-not."),
        (("resolve", "o", "s", "--did", "--result", "ch_1"), "--result is not JSON: "),
        (("resolve", "o", "s", "--did", "--result", "NaN"), "NaN is not a number of JSON"),
        (("resolve", "o", "s", "--did", "--result", "[" * 99), "--result is not JSON: "),
        (("resolve", "o", "s", "--did", "--result", "@/none"), "/none cannot be read: No such"),
        (("resolve", "o", "s", "--did", "--result", "@\0"), "cannot be read: embedded null byte"),
        (("run", "o", "--reason", "  "), "--reason is empty."),
        (("run", "o", "--reason", "x" * 501), "--reason has 501 characters; at most 500."),
        (("run", "o", "--as", ""), "The name of the operator is empty."),
        (("run", "o", "--as", "x" * 101), "The name of the operator has 101 characters"),
    ],
)
def test_wrong_usage_is_one_sentence_and_nothing_is_asked_of_aws(
    arguments: tuple[str, ...], sentence: str
) -> None:
    reason = () if "--reason" in arguments else ("--reason", "routine")
    result = CliRunner().invoke(app, [*arguments, *reason])
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("verb", ["resubmit", "undo", "cancel", "resolve", "extend", "run"])
def test_each_verb_wants_a_reason(verb: str) -> None:
    missing = CliRunner().invoke(app, [verb, "ord-1", *{"resolve": ["s"]}.get(verb, [])])
    assert missing.exit_code == 2
