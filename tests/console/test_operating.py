"""Each verb of an operator at work: accepted, carried out by the real scheduler, and reported."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from roundsman_console import confirming
from roundsman_console.main import app
from tests.console.operators import DECLINED, Operator, document
from tests.moto.orders import ALL_EFFECTS, order

NO_MAIL = {"operation": "POST /messages", "status": 422}
NO_CHARGE_YET = {"operation": "POST /charges", "status": 503, "retryAfter": 600, "times": 1}


def archived(operator: Operator) -> None:
    """An order whose confirmation was refused: three steps stand, a person is needed."""
    operator.world.faults(NO_MAIL)
    operator.world.submit(order("ord-1"))
    operator.world.run()
    operator.world.faults()
    assert operator.world.task("ord-1").state == "Archived"


def in_retry(operator: Operator) -> None:
    """An order whose charge waits ten minutes for its second attempt."""
    operator.world.faults(NO_CHARGE_YET)
    operator.world.submit(order("ord-1"))
    operator.world.run()
    assert operator.world.task("ord-1").state == "Retry"


def commands(operator: Operator) -> list[str]:
    """What can be read from the SchedulerQueue: what was sent and not carried out."""
    return operator.world.bodies(operator.world.url("SchedulerQueue"))


def test_resubmit_goes_on_with_the_failed_step_and_says_so(operator: Operator) -> None:
    archived(operator)
    result = operator.asks("resubmit", "ord-1")
    assert result.exit_code == 0, result.output
    assert result.stdout == "Done: resubmit by ops: told to.\nord-1 is Completed.\n"
    assert operator.world.effects("ord-1") == ALL_EFFECTS
    assert operator.patience.slept == [0.25]


def test_resubmit_can_name_the_steps(operator: Operator) -> None:
    archived(operator)
    assert operator.asks("resubmit", "ord-1", "--step", "send_confirmation").exit_code == 0
    assert operator.world.task("ord-1").state == "Completed"


def test_resubmit_of_a_step_that_did_not_fail_is_refused(operator: Operator) -> None:
    archived(operator)
    result = operator.asks("resubmit", "ord-1", "--step", "charge_card")
    assert result.exit_code == 1
    assert "charge_card: not among the steps that failed" in result.stderr


def test_a_fresh_key_is_taken_after_a_definite_refusal(operator: Operator) -> None:
    archived(operator)
    assert operator.asks("resubmit", "ord-1", "--fresh-key").exit_code == 0
    assert operator.world.task("ord-1").step("send_confirmation").round == 2
    assert operator.world.effects("ord-1") == ALL_EFFECTS


def test_a_fresh_key_is_refused_where_the_effect_may_stand_under_the_old_one(
    operator: Operator,
) -> None:
    operator.world.faults({"operation": "POST /messages", "status": 503})
    operator.world.submit(order("ord-1"))
    operator.world.pass_time(30, step=1)
    assert operator.world.task("ord-1").state == "Archived"
    result = operator.asks("resubmit", "ord-1", "--fresh-key")
    assert result.exit_code == 1
    assert "it may have had its effect under its key" in result.stderr


def test_an_undone_task_begins_all_over_only_where_again_is_said(operator: Operator) -> None:
    operator.world.submit({**order("ord-1"), **DECLINED})
    operator.world.run()
    assert operator.world.task("ord-1").state == "Undone"
    refused = operator.asks("resubmit", "ord-1")
    assert refused.exit_code == 1
    assert "say --again to begin all over" in refused.stderr
    result = operator.asks("resubmit", "ord-1", "--again")
    assert result.exit_code == 0
    assert "resubmit by ops: told to" in result.stdout
    assert operator.world.task("ord-1").step("reserve_stock").round == 2


def test_undo_compensates_what_has_happened(operator: Operator) -> None:
    in_retry(operator)
    result = operator.asks("undo", "ord-1")
    assert result.exit_code == 0, result.output
    assert result.stdout == "Done: undo by ops: told to.\nord-1 is Undone.\n"
    shown = operator.reads("show", "ord-1")
    assert shown["undone"] == ["reserve_stock", "charge_card"]
    assert shown["ending"] == {
        "how": "Undone",
        "why": "undo asked by ops: told to",
        "step": None,
        "undo": True,
    }


def test_cancel_undoes_first(operator: Operator) -> None:
    in_retry(operator)
    result = operator.asks("cancel", "ord-1")
    assert result.stdout == "Done: cancel by ops: told to.\nord-1 is Cancelled.\n"
    assert operator.reads("show", "ord-1")["undone"] == ["reserve_stock", "charge_card"]


def test_cancel_without_undo_leaves_what_has_happened(operator: Operator) -> None:
    in_retry(operator)
    result = operator.asks("cancel", "ord-1", "--no-undo")
    assert result.stdout == "Done: cancel by ops: told to.\nord-1 is Cancelled.\n"
    shown = operator.reads("show", "ord-1")
    assert shown["undone"] == []
    assert shown["mayHaveHappened"] == ["reserve_stock", "charge_card"]
    assert operator.world.effects("ord-1") == {"inventory perform": 1}


def test_resolve_as_done_takes_the_result_and_the_task_completes(operator: Operator) -> None:
    archived(operator)
    result = operator.asks(
        "resolve", "ord-1", "send_confirmation", "--did", "--result", '{"messageId": "m-7"}'
    )
    assert result.stdout == "Done: resolve by ops: told to.\nord-1 is Completed.\n"
    assert operator.world.task("ord-1").step("send_confirmation").result == {"messageId": "m-7"}
    assert "mail perform" not in operator.world.effects("ord-1")


def test_resolve_reads_a_result_from_a_file(
    operator: Operator, tmp_path_factory: pytest.TempPathFactory
) -> None:
    archived(operator)
    path = tmp_path_factory.mktemp("results") / "result.json"
    path.write_text('["é"]', encoding="utf-8")
    command = ("resolve", "ord-1", "send_confirmation", "--did", "--result", f"@{path}")
    assert operator.asks(*command).exit_code == 0
    assert operator.world.task("ord-1").step("send_confirmation").result == ["é"]


def test_resolve_as_not_done_has_the_step_made_again(operator: Operator) -> None:
    archived(operator)
    result = operator.asks("resolve", "ord-1", "send_confirmation", "--did-not")
    assert result.exit_code == 0, result.output
    assert operator.world.task("ord-1").state == "Completed"
    assert operator.world.effects("ord-1") == ALL_EFFECTS


def test_a_failed_undo_is_resolved_as_done_by_hand(operator: Operator) -> None:
    operator.world.faults({"operation": "DELETE /reservations", "status": 403})
    operator.world.submit({**order("ord-1"), **DECLINED})
    operator.world.run()
    assert operator.reads("show", "ord-1")["undoFailed"] == ["reserve_stock"]
    with_result = ("resolve", "ord-1", "reserve_stock", "--did", "--result", "1")
    refused = operator.asks(*with_result)
    assert refused.exit_code == 1
    assert "an undo has no result" in refused.stderr
    stands = operator.asks("resolve", "ord-1", "reserve_stock", "--did-not")
    assert stands.exit_code == 1
    assert "its effect stands" in stands.stderr
    result = operator.asks("resolve", "ord-1", "reserve_stock", "--did")
    assert result.stdout == "Done: resolve by ops: told to.\nord-1 is Undone.\n"


def test_a_result_larger_than_the_plan_allows_is_refused(operator: Operator) -> None:
    archived(operator)
    large = json.dumps("x" * 5000)
    result = operator.asks("resolve", "ord-1", "send_confirmation", "--did", "--result", large)
    assert result.exit_code == 1
    assert "the result has 5002 bytes; the plan allows 4096" in result.stderr


def test_extend_gives_the_task_more_time(operator: Operator) -> None:
    in_retry(operator)
    before = operator.world.task("ord-1").complete_by
    result = operator.asks("extend", "ord-1", "--by", "1h30m")
    assert result.stdout == "Done: extend by ops: told to.\nord-1 is Retry.\n"
    assert operator.world.task("ord-1").complete_by == before + 5_400_000


def test_extend_gives_a_step_at_its_agent_more_time(operator: Operator) -> None:
    operator.world.kill("PaymentFunction", at="UpdateItem")
    operator.world.submit(order("ord-1"))
    operator.world.run()
    before = operator.world.task("ord-1").step("charge_card").complete_by
    assert before is not None
    assert operator.asks("extend", "ord-1", "charge_card", "--by", "10m").exit_code == 0
    assert operator.world.task("ord-1").step("charge_card").complete_by == before + 600_000
    refused = operator.asks("extend", "ord-1", "reserve_stock", "--by", "10m")
    assert refused.exit_code == 1
    assert "reserve_stock is not at its agent" in refused.stderr


def test_run_starts_a_scheduled_task_at_once(operator: Operator) -> None:
    operator.world.submit(order("ord-1", processIn=86_400))
    operator.world.run()
    assert operator.world.task("ord-1").state == "Scheduled"
    result = operator.asks("run", "ord-1")
    assert result.stdout == "Done: run by ops: told to.\nord-1 is Completed.\n"
    assert operator.world.effects("ord-1") == ALL_EFFECTS


def test_run_makes_the_next_attempt_at_once(operator: Operator) -> None:
    in_retry(operator)
    assert operator.asks("run", "ord-1").exit_code == 0
    assert operator.world.task("ord-1").state == "Completed"


def test_a_command_told_as_json_is_one_object(operator: Operator) -> None:
    in_retry(operator)
    told = document(operator.asks("run", "ord-1", "--json"))
    command_id = told.pop("commandId")
    assert told == {
        "orderId": "ord-1",
        "command": "run",
        "outcome": "done",
        "sentence": "run by ops: told to.",
        "by": "ops",
        "reason": "told to",
        "state": "Completed",
        "version": operator.world.task("ord-1").version,
    }
    rows = operator.world.store.history("ord-1")
    assert [(row.kind, row.by) for row in rows if row.command_id == command_id] == [("run", "ops")]


ALL_VERBS = [
    ("resubmit", "ord-1"),
    ("undo", "ord-1"),
    ("cancel", "ord-1"),
    ("resolve", "ord-1", "charge_card", "--did"),
    ("extend", "ord-1", "--by", "10m"),
    ("run", "ord-1"),
]


def test_each_verb_is_refused_at_once_where_the_state_does_not_allow_it(operator: Operator) -> None:
    operator.world.submit(order("ord-1"))
    operator.world.run()
    for command in ALL_VERBS:
        result = operator.asks(*command, "--json")
        assert result.exit_code == 1, command
        told = document(result)
        assert (told["outcome"], told["commandId"], told["state"]) == ("refused", None, "Completed")
        start = f"{command[0]} of ord-1 refused, nothing was sent: "
        assert str(told["sentence"]).startswith(start)
        assert result.stderr == f"{told['sentence']}\n"
    assert commands(operator) == []
    assert operator.world.store.history("ord-1") == []


def test_each_verb_of_an_order_that_is_not_there_is_one_sentence(operator: Operator) -> None:
    for verb, _, *rest in ALL_VERBS:
        for name in ("ord-2", "no such id!", "", "\udcff\x1b[31m"):
            result = operator.asks(verb, name, *rest, "--json")
            assert (result.exit_code, result.stdout) == (3, ""), (verb, name)
            assert result.stderr.startswith("There is no order ")
            assert "\x1b" not in result.stderr


def test_a_step_that_does_not_exist_is_told_with_those_that_do(operator: Operator) -> None:
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


def test_what_changed_since_the_look_is_refused_by_the_scheduler_and_told(
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
    told = document(result)
    assert told["outcome"] == "refused"
    assert told["commandId"] is not None
    assert result.stderr == (
        "extend by ops refused: the task has changed since you looked "
        f"(version {seen.version}, now {seen.version + 1}): look again.\n"
    )
    assert world.task("ord-1").complete_by == seen.complete_by


def test_a_scheduler_that_does_not_answer_is_told_and_the_command_still_acts_later(
    operator: Operator,
) -> None:
    in_retry(operator)
    operator.patience.sleeping = lambda: None
    result = operator.asks("undo", "ord-1", "--json", "--wait", "2")
    assert result.exit_code == 4
    told = document(result)
    assert (told["outcome"], told["state"]) == ("unconfirmed", "Retry")
    assert result.stderr == (
        "undo of ord-1 is sent, but the scheduler has not answered in 2 s. It acts once, "
        "whenever it is read. Look with: roundsman show ord-1\n"
    )
    assert sum(operator.patience.slept) == 2
    operator.world.run()
    assert operator.world.task("ord-1").state == "Undone"


def test_without_waiting_it_is_sent_and_that_is_all(operator: Operator) -> None:
    in_retry(operator)
    result = operator.asks("run", "ord-1", "--no-wait")
    assert result.exit_code == 0
    assert result.stdout == "run of ord-1 is sent. Look with: roundsman show ord-1\n"
    assert operator.patience.slept == []
    told = document(operator.asks("run", "ord-1", "--no-wait", "--json"))
    assert told["outcome"] == "sent"
    operator.world.run()
    assert operator.world.task("ord-1").state == "Completed"


IRREVERSIBLE = [("undo", "ord-1"), ("cancel", "ord-1"), ("cancel", "ord-1", "--no-undo")]


def test_what_cannot_be_taken_back_is_not_sent_unless_someone_can_be_asked_or_yes_is_said(
    operator: Operator,
) -> None:
    in_retry(operator)
    for command in IRREVERSIBLE:
        result = operator.types(*command, "--reason", "told to")
        assert result.exit_code == 2
        assert "Nobody can be asked here: say --yes. Nothing was sent." in result.stderr
    assert commands(operator) == []


def test_at_a_terminal_the_person_is_asked_and_may_say_no(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_retry(operator)
    monkeypatch.setattr(confirming, "at_a_terminal", lambda: True)
    command = ("cancel", "ord-1", "--no-undo", "--reason", "told to", "--json")
    refused = operator.types(*command, answer="n\n")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert (
        "ord-1 is Retry; this may have happened: reserve_stock, charge_card. "
        "Cancel it and leave that standing? [y/N] "
    ) in refused.stderr
    assert "Nothing was sent." in refused.stderr
    assert commands(operator) == []
    agreed = operator.types(*command, answer="y\n")
    assert agreed.exit_code == 0
    assert document(agreed)["state"] == "Cancelled"


def test_what_is_not_irreversible_is_never_asked_about(operator: Operator) -> None:
    in_retry(operator)
    assert operator.types("run", "ord-1", "--reason", "told to").exit_code == 0


def test_the_users_name_stands_in_where_none_is_given(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_retry(operator)
    monkeypatch.setenv("LOGNAME", "amy")
    told = document(operator.types("extend", "ord-1", "--by", "1m", "--reason", "x", "--json"))
    assert told["by"] == "amy"
    told = document(operator.types("run", "ord-1", "--by", "bob", "--reason", "x", "--json"))
    assert told["by"] == "bob"


def test_text_that_no_message_can_carry_is_refused_in_a_sentence(operator: Operator) -> None:
    in_retry(operator)
    result = operator.types("run", "ord-1", "--reason", "half \udcff")
    assert result.exit_code == 1
    assert "half of a surrogate pair" in result.stderr
    assert commands(operator) == []


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
        (("extend", "o", "--by", "10"), "'10' is no duration: write it with its units"),
        (("extend", "o", "--by", "-1m"), "'-1m' is no duration"),
        (("extend", "o", "--by", ""), "'' is no duration"),
        (("extend", "o", "--by", "0s"), "0s is too short"),
        (("extend", "o", "--by", "31d"), "31d is too long: at least 1s, at most 30d"),
        (("resolve", "o", "s"), "Say either --did or --did-not."),
        (("resolve", "o", "s", "--did", "--did-not"), "Say either --did or --did-not."),
        (("resolve", "o", "s", "--did-not", "--result", "1"), "did not happen has no --result"),
        (("resolve", "o", "s", "--did", "--result", "ch_1"), "--result is not JSON: "),
        (("resolve", "o", "s", "--did", "--result", "NaN"), "NaN is not JSON"),
        (("resolve", "o", "s", "--did", "--result", "[" * 99), "--result is not JSON: "),
        (("resolve", "o", "s", "--did", "--result", "@/none"), "/none cannot be read: No such"),
        (("resolve", "o", "s", "--did", "--result", "@\0"), "cannot be read: embedded null byte"),
        (("run", "o", "--reason", "  "), "--reason is empty."),
        (("run", "o", "--reason", "x" * 501), "--reason has 501 characters; at most 500."),
        (("run", "o", "--as", ""), "The name of who asks is empty."),
        (("run", "o", "--as", "x" * 101), "The name of who asks has 101 characters"),
    ],
)
def test_wrong_usage_is_one_sentence_and_nothing_is_asked_of_aws(
    arguments: tuple[str, ...], sentence: str
) -> None:
    reason = () if "--reason" in arguments else ("--reason", "told to")
    result = CliRunner().invoke(app, [*arguments, *reason])
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("verb", ["resubmit", "undo", "cancel", "resolve", "extend", "run"])
def test_each_verb_shows_an_example_and_wants_a_reason(verb: str) -> None:
    shown = CliRunner().invoke(app, [verb, "--help"])
    assert f"Example: roundsman {verb} ord-1001" in shown.stdout
    missing = CliRunner().invoke(app, [verb, "ord-1", *{"resolve": ["s"]}.get(verb, [])])
    assert missing.exit_code == 2
