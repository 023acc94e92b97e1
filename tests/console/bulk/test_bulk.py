"""Acting on many orders at once: shown first, then a canary, then the rest, and a report."""

import io
import json
import shlex
from dataclasses import replace

import pytest
from rich.console import Console
from typer.testing import CliRunner

from roundsman.aws.dynamodb.bulk_runs import DynamoBulkRuns
from roundsman.model.bulk_run import RequestAction, RunRequest
from roundsman.model.holds import OPERATOR, Hold
from roundsman_console.acts.bulk.dry_run import choose
from roundsman_console.aws.stack import find_stack
from roundsman_console.faces.cli import confirm
from roundsman_console.facts.orders.selection import Selection
from roundsman_console.main import app
from tests.console.bulk_stories import NO_MAIL, archived, group_of, names, states
from tests.console.operators import (
    DECLINED,
    Operator,
    document,
    holds_of,
    in_retry,
)
from tests.console.schemas import assert_schema
from tests.moto.orders import ALL_EFFECTS, order

COMPLETED = (
    *("--state", "Completed", "--workflow", "order_fulfilment"),
    *("--older", "1h", "--newer", "3h"),
)
"""A filter for completed orders that a command accepts."""


def commands(operator: Operator) -> list[str]:
    """What can be read from the SchedulerQueue: what was sent and not carried out."""
    return operator.world.bodies(operator.world.url("SchedulerQueue"))


def runs(operator: Operator) -> list[object]:
    """The bulk runs there are."""
    found = operator.reads("bulk", "ls")
    assert_schema("bulk-ls", found)
    listed = found["runs"]
    assert isinstance(listed, list)
    return listed


def begun_run(operator: Operator) -> str:
    """The id of a run over five orders that takes minutes."""
    group = archived(operator, 5)
    operator.world.clock.now += 1000
    slow = ("--go", "--canary", "0", "--rate", "0.02", "--no-wait", "--json")
    return str(document(operator.asks("resubmit", "--group", group, *slow))["runId"])


@pytest.mark.exhaustive
def test_many_orders_are_only_shown_without_go(operator: Operator) -> None:
    group = archived(operator, 4)
    operator.world.submit(order("ord-9"))
    operator.world.run()
    shown = operator.types("resubmit", "--group", group, "--reason", "mail is back")
    assert shown.exit_code == 0
    assert shown.stdout.splitlines() == [
        "resubmit of 4 orders. Nothing was sent.",
        "eligible  4  ord-1, ord-2, ord-3 ...".ljust(len(shown.stdout.splitlines()[1])),
        "All are sent at once; the run then waits for their results.",
        "The run stops if more than 20% fail again. To run it:",
        f"  roundsman resubmit --group {group} --reason 'mail is back' --go",
    ]
    printed = document(operator.asks("resubmit", "ord-1", "ord-9", "ord-1", "--json"))
    assert_schema("resubmit", printed)
    assert printed["selected"] == 2
    assert printed["eligible"] == {"orders": 1, "samples": ["ord-1"]}
    why = "only a task that ended with a failure can be resubmitted"
    assert printed["refused"] == [{"reason": why, "orders": 1, "samples": ["ord-9"]}]
    assert commands(operator) == []
    assert runs(operator) == []


@pytest.mark.exhaustive
def test_a_dry_run_shows_its_progress_on_a_terminal_apart_from_what_it_prints(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived(operator, 3)
    terminal = io.StringIO()

    def console(*, stderr: bool, quiet: bool) -> Console:
        assert stderr
        return Console(file=terminal, force_terminal=True, quiet=quiet)

    monkeypatch.setattr("roundsman_console.faces.cli.act.Console", console)
    words = ("resubmit", "--state", "Archived", "--reason", "mail is back", "--dry-run")
    printed = operator.types(*words).stdout
    assert "3 of 3 orders checked" in terminal.getvalue()
    assert "checked" not in printed
    terminal.truncate(0)
    operator.reads(*words)
    assert terminal.getvalue() == ""


@pytest.mark.exhaustive
@pytest.mark.parametrize("asked", [(), ("--dry-run",)], ids=["", "a dry run that was asked for"])
def test_the_command_that_a_dry_run_prints_carries_out_what_was_tried(
    operator: Operator, asked: tuple[str, ...]
) -> None:
    archived(operator, 2)
    tried = operator.asks("resubmit", "--state", "Archived", *asked).stdout
    _, command = " ".join(tried.split()).rsplit("roundsman resubmit", 1)
    assert "--dry-run" not in command
    result = operator.types("resubmit", *shlex.split(command))
    assert result.exit_code == 0, result.output
    assert states(operator, names(2)) == ["Completed"] * 2


@pytest.mark.exhaustive
def test_orders_that_are_named_are_counted_while_they_are_found(operator: Operator) -> None:
    archived(operator, 2)
    counts: list[str] = []
    choose(find_stack(None), Selection(), ["ord-1", "ord-2", "ord-1"], counts.append)
    assert counts == ["1 of 2 orders found", "2 of 2 orders found"]


@pytest.mark.exhaustive
def test_the_canary_goes_first_then_the_rest_at_the_rate_and_all_of_it_is_reported(
    operator: Operator,
) -> None:
    group = archived(operator, 5)
    operator.world.clock.now += 1000
    result = operator.asks("resubmit", "--group", group, "--go", "--canary", "1", "--rate", "2")
    assert result.exit_code == 0, result.output
    assert states(operator, names(5)) == ["Completed"] * 5
    (listed,) = runs(operator)
    assert isinstance(listed, dict)
    run_id = str(listed["runId"])
    assert (listed["state"], listed["sent"], listed["failedAgain"]) == ("finished", 5, 0)
    sender = str(operator.reads("bulk", "show", run_id)["sender"])
    assert [line.rstrip() for line in result.stdout.splitlines()] == [
        f"Bulk run {run_id} is finished.",
        f"resubmit of 5 orders, by ops ({sender}): routine",
        "sent       5",
        "Completed  5",
    ]
    for name in names(5):
        assert operator.world.effects(name) == ALL_EFFECTS
        asked = [row for row in operator.world.store.history(name) if row.kind == "resubmit"]
        assert [(row.by, row.reason, row.command_id) for row in asked] == [
            ("ops", f"resubmit by ops: routine (bulk {run_id})", run_id)
        ]
    shown = operator.reads("bulk", "show", run_id)
    assert (shown["completed"], shown["selection"], shown["resume"], shown["open"]) == (
        5,
        f"--group {group}",
        None,
        False,
    )
    over = operator.types("bulk", "resume", run_id, "--reason", "again")
    assert (over.exit_code, over.stderr) == (
        1,
        f"{run_id} cannot be resumed: it is finished.\n",
    )
    empty = operator.asks("resubmit", "--group", group, "--go")
    assert empty.exit_code == 3
    assert f"Failure group {group} has no orders" in empty.stderr


@pytest.mark.exhaustive
def test_a_canary_that_fails_again_stops_it_and_after_the_repair_the_rest_is_carried_on(
    operator: Operator,
) -> None:
    group = archived(operator, 5)
    operator.world.clock.now += 1000
    operator.world.faults(NO_MAIL)
    result = operator.asks("resubmit", "--group", group, "--go", "--canary", "2", "--json")
    assert result.exit_code == 1
    assert result.stderr == (
        "resubmit was stopped: 2 of the first 2 failed again, more than 20%.\n"
    )
    printed = document(result)
    assert (printed["state"], printed["sent"], printed["failedAgain"], printed["notReached"]) == (
        "stopped",
        2,
        2,
        3,
    )
    assert printed["failures"] == [
        {
            "group": group,
            "failure": "send_confirmation: InjectedFault: POST answered 422",
            "orders": 2,
            "samples": ["ord-1", "ord-2"],
        }
    ]
    run_id = str(printed["runId"])
    operator.world.faults()
    operator.world.clock.now += 1000
    asked = operator.types("bulk", "resume", run_id, "--as", "eve", "--reason", "back", "--json")
    assert asked.exit_code == 0, asked.output
    watched = operator.types("bulk", "watch", run_id, "--json")
    after = document(watched)
    assert (after["completed"], after["failedAgain"], after["sent"]) == (3, 2, 5)
    requests = after["requests"]
    assert isinstance(requests, list)
    assert [str(one).startswith("resumed at ") for one in requests] == [True]
    assert "by eve (" in requests[0]
    # What failed again is no candidate of this run; it takes another.
    assert states(operator, names(5)) == ["Archived"] * 2 + ["Completed"] * 3
    each = operator.reads("bulk", "show", run_id, "--orders")["orders"]
    sentence = "send_confirmation: InjectedFault: POST answered 422"
    assert each == [
        {"orderId": name, "result": "failedAgain", "sentence": sentence} for name in names(2)
    ]
    assert (
        f"ord-2  failed again  {sentence}"
        in operator.types("bulk", "show", run_id, "--orders").stdout
    )


@pytest.mark.exhaustive
def test_the_command_need_not_wait_and_the_stack_carries_the_run_out(operator: Operator) -> None:
    group = archived(operator, 3)
    operator.world.clock.now += 1000
    started = operator.asks("resubmit", "--group", group, "--go", "--no-wait", "--json")
    assert started.exit_code == 0, started.output
    printed = document(started)
    assert (printed["state"], printed["sent"], printed["savedAt"], printed["open"]) == (
        "running",
        0,
        None,
        True,
    )
    assert operator.patience.slept == []
    operator.world.pass_time(200)
    assert states(operator, names(3)) == ["Completed"] * 3
    assert operator.reads("bulk", "show", str(printed["runId"]))["state"] == "finished"


@pytest.mark.exhaustive
def test_ctrl_c_ends_the_watch_and_not_the_run(operator: Operator) -> None:
    group = archived(operator, 3)
    operator.world.clock.now += 1000

    def ctrl_c() -> None:
        raise KeyboardInterrupt

    operator.patience.sleeping = ctrl_c
    result = operator.asks("resubmit", "--group", group, "--go")
    (listed,) = runs(operator)
    assert isinstance(listed, dict)
    run_id = listed["runId"]
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == (
        f"The stack carries on {run_id}. Watch it with: roundsman bulk watch {run_id}\n"
        f"Stop it with: roundsman bulk stop {run_id} --reason '...'\n"
    )
    operator.world.pass_time(200)
    assert states(operator, names(3)) == ["Completed"] * 3


@pytest.mark.exhaustive
def test_a_run_is_paused_resumed_and_stopped_by_whoever_may_write_requests(
    operator: Operator,
) -> None:
    group = archived(operator, 4)
    operator.world.clock.now += 1000
    slow = ("--go", "--canary", "0", "--rate", "0.02", "--no-wait", "--json")
    run_id = str(document(operator.asks("resubmit", "--group", group, *slow))["runId"])
    operator.world.pass_time(70)
    shown = operator.reads("bulk", "show", run_id)
    assert_schema("bulk-show", shown)
    assert shown["sent"] in (1, 2)
    asked = operator.types("bulk", "pause", run_id, "--as", "eve", "--reason", "slow", "--json")
    assert_schema("bulk-pause", document(asked))
    assert document(asked) == {
        "runId": run_id,
        "command": "pause",
        "sentence": f"Requested: {run_id} is paused within a minute.",
    }
    watched = operator.types("bulk", "watch", run_id)
    assert watched.exit_code == 4
    assert watched.stderr == (
        f"resubmit is paused. Resume it with: roundsman bulk resume {run_id} --reason '...'\n"
    )
    assert f"Bulk run {run_id} is paused (by eve (" in watched.stdout
    sent = operator.reads("bulk", "show", run_id)["sent"]
    operator.world.pass_time(600)
    assert operator.reads("bulk", "show", run_id)["sent"] == sent
    resumed = operator.types("bulk", "resume", run_id, "--reason", "go on", "--json")
    assert_schema("bulk-resume", document(resumed))
    operator.world.pass_time(60)
    stopped = document(operator.types("bulk", "stop", run_id, "--reason", "now", "--json"))
    assert_schema("bulk-stop", stopped)
    assert str(stopped["sentence"]).startswith(f"Requested: {run_id} is stopped within a minute")
    watched = operator.types("bulk", "watch", run_id, "--json")
    printed = document(watched)
    assert_schema("bulk-watch", printed)
    assert (printed["state"], watched.exit_code) == ("stopped", 1)
    requests = printed["requests"]
    assert isinstance(requests, list)
    assert [str(one).split(" at ")[0] for one in requests] == ["paused", "resumed", "stopped"]
    late = operator.types("bulk", "pause", run_id, "--reason", "now")
    assert (late.exit_code, late.stderr) == (1, f"{run_id} cannot be paused: it is stopped.\n")


def plan_of_run(operator: Operator, run_id: object) -> tuple[int, list[object] | None, str | None]:
    """What the plan of the run has of its first order besides its id."""
    found = operator.world.dynamodb.scan(
        TableName=operator.world.stack.outputs["ControlTableName"]
    )["Items"]
    [part] = [
        item
        for item in found
        if item["ControlId"]["S"].startswith("bulk-by#")
        and item["ControlId"]["S"].endswith(f"{run_id}#0")
    ]
    version, changes, refused = json.loads(part["Checked"]["S"])[0]
    return version, changes, refused


@pytest.mark.exhaustive
def test_a_corrected_input_is_checked_for_each_order_before_the_run_begins(
    operator: Operator,
) -> None:
    group = archived(operator, 2)
    operator.world.clock.now += 1000
    fixed = ["--set", "shippingAddress.name=B. Reader", "--not-done", "send_confirmation"]
    fixed += ["--fresh-key", "--used"]
    result = operator.asks("resubmit", "--group", group, *fixed, "--go", "--json")
    printed = document(result)
    version, changes, refused = plan_of_run(operator, printed["runId"])
    assert (version > 1, bool(changes), refused) == (True, True, None)
    assert (printed["completed"], printed["refused"]) == (2, [])
    for name in names(2):
        assert operator.world.task(name).corrections


@pytest.mark.exhaustive
def test_a_correction_that_is_not_valid_for_an_order_is_refused_for_that_order(
    operator: Operator,
) -> None:
    group = archived(operator, 2)
    operator.world.clock.now += 1000
    result = operator.asks("resubmit", "--group", group, "--set", "nothing=1", "--go", "--json")
    printed = document(result)
    _, changes, why = plan_of_run(operator, printed["runId"])
    assert changes is None
    assert str(why).startswith("the corrected input is not valid: ")
    assert printed["refused"] == [{"reason": why, "orders": 2, "samples": names(2)}]


@pytest.mark.exhaustive
def test_what_would_only_wait_for_a_held_agent_is_reported_and_not_sent(operator: Operator) -> None:
    group = archived(operator, 2)
    world = operator.world
    hold = Hold("mail", OPERATOR, world.clock(), world.clock() + 3_600_000, "moving", "amy")
    holds_of(world).hold(hold)
    shown = document(operator.asks("resubmit", "--group", group, "--json"))
    assert shown["held"] == [
        {"reason": "mail is held by amy: moving", "orders": 2, "samples": ["ord-1", "ord-2"]}
    ]
    refused = operator.asks("resubmit", "--group", group, "--go")
    assert refused.exit_code == 1
    assert refused.stderr == (
        "mail is held by amy: moving, and the orders would wait for it. Nothing was sent. "
        "To send to these orders nevertheless, add --anyway.\n"
    )
    assert commands(operator) == []
    assert runs(operator) == []
    world.clock.now += 10_000  # the schedulers know of the hold by now
    sent = operator.asks(
        "resubmit", "--group", group, "--go", "--anyway", "--canary-wait", "20s", "--json"
    )
    assert sent.exit_code == 4
    assert sent.stderr == "2 of the orders are still in flight.\n"
    printed = document(sent)
    assert (printed["sent"], printed["underWay"], printed["state"]) == (2, 2, "finished")
    assert states(operator, names(2)) == ["Retry"] * 2


@pytest.mark.exhaustive
def test_an_agent_that_is_held_midway_stops_it_before_the_next_is_sent(operator: Operator) -> None:
    group = archived(operator, 2)
    world = operator.world
    world.clock.now += 1000
    waits = operator.patience.sleeping

    def held() -> None:
        waits()
        if world.task("ord-1").state == "Completed":
            holds_of(world).hold(
                Hold("mail", OPERATOR, world.clock(), world.clock() + 3_600_000, "moving", "amy")
            )

    operator.patience.sleeping = held
    result = operator.asks("resubmit", "--group", group, "--go", "--canary", "1", "--json")
    printed = document(result)
    assert (printed["sent"], printed["state"], printed["notReached"]) == (1, "stopped", 1)
    assert result.stderr.endswith("To send nevertheless, resume it with --anyway.\n")
    assert printed["why"] == "mail is held by amy: moving, and the orders would wait for it"
    run_id = str(printed["runId"])
    operator.types("bulk", "resume", run_id, "--anyway", "--reason", "so be it")
    world.pass_time(70)
    assert operator.reads("bulk", "show", run_id)["sent"] == 2


@pytest.mark.exhaustive
def test_what_cannot_be_taken_back_is_asked_once_with_the_count(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = archived(operator, 2)
    operator.world.clock.now += 1000
    command = ("undo", "--group", group, "--go", "--reason", "routine")
    refused = operator.types(*command)
    assert refused.exit_code == 2
    assert refused.stderr.startswith(
        "Undo 2 orders? There is no terminal to confirm at: add --yes."
    )
    monkeypatch.setattr(confirm, "at_a_terminal", lambda: True)
    assert operator.types(*command, answer="n\n").exit_code == 1
    assert runs(operator) == []
    assert states(operator, names(2)) == ["Archived"] * 2
    agreed = operator.types(*command, "--json", answer="y\n")
    assert agreed.exit_code == 0
    assert document(agreed)["undone"] == 2
    assert states(operator, names(2)) == ["Undone"] * 2


@pytest.mark.exhaustive
def test_undone_orders_begin_all_over_together_only_with_again(
    operator: Operator,
) -> None:
    for name in names(2):
        operator.world.submit({**order(name), **DECLINED})
    operator.world.run()
    operator.world.clock.now += 1000
    group = group_of(operator, "ord-1")
    printed = document(operator.asks("resubmit", "--group", group, "--json"))
    assert printed["eligible"] == {"orders": 0, "samples": []}
    result = operator.asks("resubmit", "--group", group, "--again", "--go", "--json")
    # The card is declined again: undone though it was to go on is a failure.
    assert result.exit_code == 1
    again = document(result)
    assert (again["undone"], again["failedAgain"], again["state"]) == (0, 2, "stopped")
    cancelled = operator.asks("cancel", "--state", "Undone", "--go", "--json")
    assert document(cancelled)["refused"] == [
        {
            "reason": "the task is already undone",
            "orders": 2,
            "samples": ["ord-1", "ord-2"],
        }
    ]


@pytest.mark.exhaustive
def test_a_failed_undo_that_is_made_again_ends_well_where_it_ends_undone(
    operator: Operator,
) -> None:
    world = operator.world
    world.faults({"operation": "DELETE /reservations", "status": 422})
    for name in names(2):
        world.submit({**order(name), **DECLINED})
    world.run()
    group = group_of(operator, "ord-1")
    did = operator.asks("resolve", "ord-1", "ord-2", "charge_card", "--did", "--json")
    assert document(did)["eligible"] == {"orders": 0, "samples": []}
    world.faults()
    world.clock.now += 1000
    printed = document(operator.asks("resubmit", "--group", group, "--go", "--json"))
    assert (printed["undone"], printed["failedAgain"]) == (2, 0)


@pytest.mark.exhaustive
def test_that_a_step_happened_can_be_reported_for_many_only_where_it_has_no_result(
    operator: Operator,
) -> None:
    group = archived(operator, 2)
    operator.world.clock.now += 1000
    printed = document(
        operator.asks("resolve", "--group", group, "send_confirmation", "--did", "--json")
    )
    assert printed["refused"] == [
        {
            "reason": "a step can be marked as done for one order at a time only: each has "
            "its own result",
            "orders": 2,
            "samples": ["ord-1", "ord-2"],
        }
    ]
    command = ("resolve", "--group", group, "send_confirmation", "--did-not", "--go", "--json")
    assert document(operator.asks(*command))["completed"] == 2


@pytest.mark.exhaustive
def test_many_orders_are_given_more_time_and_run_by_a_filter(operator: Operator) -> None:
    in_retry(operator)
    before = operator.world.task("ord-1").complete_by
    command = ("extend", "--state", "Retry", "--by", "1h", "--go", "--json")
    assert document(operator.asks(*command))["taken"] == 1
    assert operator.world.task("ord-1").complete_by == before + 3_600_000
    printed = document(operator.asks("run", "--state", "Retry", "--go", "--json"))
    assert (printed["completed"], printed["selected"]) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("resubmit",), "Give an order id, or a filter: --group or --state."),
        (("undo", "o", "--group", "f-00000000"), "Give order ids or a filter, not both."),
        (("undo", "--workflow", "w"), "To select many orders, give --group or --state"),
        (("undo", "--group", "f-1"), "'f-1' is not a failure group id"),
        (("run", "--state", "Completed"), "A completed order accepts no other command than undo"),
        (("undo", "--state", "Completed"), "also give their workflow and both ends"),
        (("undo", *COMPLETED[:2], "--older", "1h", "--newer", "3h"), "also give their workflow"),
        (("undo", *COMPLETED[:4], "--older", "1h"), "both ends of a time span"),
        (("undo", *COMPLETED[:4], "--newer", "3h"), "both ends of a time span"),
        (("undo", *COMPLETED, "--go"), "Completed orders are undone after a dry run only"),
        (("undo", *COMPLETED, "--as-of", "noon"), "'noon' is not an instant with a time zone"),
        (
            ("undo", "--state", "Archived", "--as-of", "2027-01-15T08:00:00Z"),
            "--as-of is for completed orders",
        ),
        (("undo", *COMPLETED, "--as-of", "2999-01-15T08:00:00Z"), "--as-of is in the future"),
        (("run", "a", "b", "--rate", "0"), "--rate must be 0.001 to 25"),
        (("run", "a", "b", "--rate", "0.0009"), "--rate must be 0.001 to 25"),
        (("run", "a", "b", "--rate", "nan"), "--rate must be 0.001 to 25"),
        (("run", "a", "b", "--rate", "1e9"), "--rate must be 0.001 to 25"),
        (("run", "a", "b", "--canary", "-1"), "--canary must be 0 to 100 orders, not -1."),
        (("run", "a", "b", "--at-once", "0"), "--at-once must be 1 to 1000 orders, not 0."),
        (("run", "a", "b", "--stop-at", "0.2"), "--stop-at must be a share from 0% to 100%"),
        (("run", "a", "b", "--stop-at", "nan%"), "--stop-at must be a share from 0% to 100%"),
        (("run", "a", "b", "--stop-at", "101%"), "--stop-at must be a share from 0% to 100%"),
        (("run", "a", "b", "--canary-wait", "5"), "'5' is not a duration"),
        (("extend", "a", "b", "c", "--by", "1m"), "extend takes one order and one of its steps"),
        (("resolve", "s", "--did"), "Give an order and its step"),
        (("resolve", "a", "b", "s", "--did", "--result", "1"), "--result works for one order only"),
    ],
)
def test_wrong_usage_is_one_sentence_and_nothing_is_asked_of_aws(
    arguments: tuple[str, ...], sentence: str
) -> None:
    result = CliRunner().invoke(app, [*arguments, "--reason", "routine"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_orders_groups_and_runs_that_are_not_there_are_one_sentence(operator: Operator) -> None:
    for arguments, sentence in (
        (("undo", "--group", "f-00000000"), "Failure group f-00000000 has no orders."),
        (("undo", "--state", "Archived"), "No order matches the filter."),
        (("undo", "ord-1", "ord-2"), "There is no order ord-1 in roundsman"),
    ):
        result = operator.asks(*arguments)
        assert (result.exit_code, result.stdout) == (3, ""), arguments
        assert result.stderr.startswith(sentence)
    for run_id in ("b-00000000", "nothing", "\x1b[31m"):
        reason = ("--reason", "routine")
        for verb in (
            ("show",),
            ("watch",),
            ("pause", *reason),
            ("resume", *reason),
            ("stop", *reason),
        ):
            result = operator.types("bulk", verb[0], run_id, *verb[1:])
            assert (result.exit_code, result.stdout) == (3, ""), (verb, run_id)
            assert "\x1b" not in result.stderr


@pytest.mark.exhaustive
def test_the_request_of_another_person_is_not_lost_by_a_later_one(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = archived(operator, 5)
    operator.world.clock.now += 1000
    started = operator.asks(
        *("resubmit", "--group", group, "--go", "--no-wait", "--json", "--canary", "1")
    )
    run_id = str(document(started)["runId"])
    asked = "roundsman_console.acts.bulk.start.own_principal"
    monkeypatch.setattr(asked, lambda: "AROAOPERATOR:ann")
    stopped = operator.types("bulk", "stop", run_id, "--reason", "it charges twice")
    assert stopped.exit_code == 0, stopped.output
    monkeypatch.setattr(asked, lambda: "AROAOPERATOR:bob")
    late = operator.types("bulk", "pause", run_id, "--reason", "lunch")
    assert late.exit_code == 1
    assert late.stderr.startswith(f"{run_id} cannot be paused yet: AROAOPERATOR:ann has just asked")
    again = operator.types("bulk", "stop", run_id, "--reason", "stop it")
    assert again.exit_code == 0, again.output


@pytest.mark.exhaustive
def test_a_stop_is_heard_although_another_request_comes_between_its_read_and_its_write(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other's clock is ahead, and the request is carried out before the stop is written."""
    run_id, ask = begun_run(operator), DynamoBulkRuns.ask
    overtaken: list[int] = []

    def after_another(runs: DynamoBulkRuns, one: str, request: RunRequest, *, seen: int) -> bool:
        if not overtaken:
            overtaken.append(seen)
            bob = replace(request, action=RequestAction.PAUSE, sender="AROAOPERATOR:bob")
            assert ask(runs, one, replace(bob, at=request.at + 600_000), seen=seen)
            operator.world.pass_time(60)
        return ask(runs, one, request, seen=seen)

    monkeypatch.setattr(DynamoBulkRuns, "ask", after_another)
    stopped = operator.types("bulk", "stop", run_id, "--reason", "it charges twice")
    assert stopped.exit_code == 0, stopped.output
    assert overtaken == [0]
    operator.world.pass_time(60)
    shown = operator.reads("bulk", "show", run_id)
    assert shown["state"] == "stopped"


@pytest.mark.exhaustive
def test_a_request_that_is_overtaken_by_another_persons_is_refused(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id, ask = begun_run(operator), DynamoBulkRuns.ask

    def after_another(runs: DynamoBulkRuns, one: str, request: RunRequest, *, seen: int) -> bool:
        ask(runs, one, replace(request, sender="AROAOPERATOR:bob"), seen=seen)
        return ask(runs, one, request, seen=seen)

    monkeypatch.setattr(DynamoBulkRuns, "ask", after_another)
    late = operator.types("bulk", "pause", run_id, "--reason", "lunch")
    assert late.exit_code == 1
    assert late.stderr.startswith(f"{run_id} cannot be paused yet: AROAOPERATOR:bob has just asked")
    stop = operator.types("bulk", "stop", run_id, "--reason", "lunch")
    assert stop.exit_code == 1
    assert stop.stderr.startswith(f"{run_id} cannot be stopped: others ask for changes of it")
