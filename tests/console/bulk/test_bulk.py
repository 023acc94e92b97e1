"""Acting on many orders at once: shown first, then a canary, then the rest, and a report."""

import pytest
from typer.testing import CliRunner

from roundsman.model.holds import OPERATOR, Hold
from roundsman_console import confirm
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


def test_many_orders_are_only_shown_unless_go_is_said(operator: Operator) -> None:
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
    told = document(operator.asks("resubmit", "ord-1", "ord-9", "ord-1", "--json"))
    assert_schema("resubmit", told)
    assert told["selected"] == 2
    assert told["eligible"] == {"orders": 1, "samples": ["ord-1"]}
    why = "only a task that ended with a failure can be resubmitted"
    assert told["refused"] == [{"reason": why, "orders": 1, "samples": ["ord-9"]}]
    assert commands(operator) == []
    assert runs(operator) == []


def test_the_canary_goes_first_then_the_rest_at_the_rate_and_all_of_it_is_told(
    operator: Operator,
) -> None:
    group = archived(operator, 5)
    operator.world.clock.now += 1000
    result = operator.asks("resubmit", "--group", group, "--go", "--canary", "1", "--rate", "2")
    assert result.exit_code == 0, result.output
    assert states(operator, names(5)) == ["Completed"] * 5
    # One and its result, then two and two, a second apart; and the last result.
    assert sum(operator.patience.slept) == pytest.approx(3)
    (listed,) = runs(operator)
    assert isinstance(listed, dict)
    run_id = str(listed["runId"])
    assert (listed["state"], listed["sent"], listed["failedAgain"]) == ("finished", 5, 0)
    assert [line.rstrip() for line in result.stdout.splitlines()] == [
        f"Bulk run {run_id} is finished.",
        "resubmit of 5 orders, by ops: told to",
        "sent       5",
        "Completed  5",
    ]
    for name in names(5):
        assert operator.world.effects(name) == ALL_EFFECTS
        asked = [row for row in operator.world.store.history(name) if row.kind == "resubmit"]
        assert [(row.by, row.reason, row.command_id) for row in asked] == [
            ("ops", f"resubmit by ops: told to (bulk {run_id})", run_id)
        ]
    shown = operator.reads("bulk", "show", run_id)
    assert_schema("bulk-show", shown)
    assert (shown["completed"], shown["selection"], shown["resume"]) == (
        5,
        f"--group {group}",
        None,
    )
    over = operator.types("bulk", "resume", run_id)
    assert (over.exit_code, over.stderr) == (
        1,
        f"{run_id} is finished: there is nothing to resume.\n",
    )
    empty = operator.asks("resubmit", "--group", group, "--go")
    assert empty.exit_code == 3
    assert f"Failure group {group} has no orders" in empty.stderr


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
    told = document(result)
    assert (told["state"], told["sent"], told["failedAgain"], told["notReached"]) == (
        "stopped",
        2,
        2,
        3,
    )
    assert told["failures"] == [
        {
            "group": group,
            "failure": "send_confirmation: InjectedFault: POST answered 422",
            "orders": 2,
            "samples": ["ord-1", "ord-2"],
        }
    ]
    operator.world.faults()
    operator.world.clock.now += 1000
    resumed = operator.types("bulk", "resume", str(told["runId"]), "--as", "eve", "--json")
    assert resumed.exit_code == 0, resumed.output
    after = document(resumed)
    assert_schema("bulk-resume", after)
    assert (after["completed"], after["failedAgain"], after["sent"]) == (3, 2, 5)
    assert str(after["carriedOn"]).startswith("['eve from ")
    # What failed again is no candidate of this run; it takes another.
    assert states(operator, names(5)) == ["Archived"] * 2 + ["Completed"] * 3


def test_a_service_that_breaks_midway_stops_it(operator: Operator) -> None:
    group = archived(operator, 5)
    operator.world.clock.now += 1000

    def breaks() -> None:
        if operator.patience.now > 1:
            operator.world.faults(NO_MAIL)
        operator.world.run()

    operator.patience.sleeping = breaks
    result = operator.asks(
        "resubmit", "--group", group, "--go", "--canary", "1", "--rate", "3", "--json"
    )
    assert result.exit_code == 1
    told = document(result)
    assert (told["completed"], told["failedAgain"], told["notReached"]) == (1, 3, 1)
    assert told["why"] == "3 of the last 4 failed again, more than 20%"


def test_what_would_only_wait_for_a_held_agent_is_told_and_not_sent(operator: Operator) -> None:
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
    told = document(sent)
    assert (told["sent"], told["underWay"], told["state"]) == (2, 2, "finished")
    assert states(operator, names(2)) == ["Retry"] * 2


def test_an_agent_that_is_held_midway_stops_it_before_the_next_is_sent(operator: Operator) -> None:
    group = archived(operator, 2)
    world = operator.world
    world.clock.now += 1000

    def held() -> None:
        world.run()
        holds_of(world).hold(
            Hold("mail", OPERATOR, world.clock(), world.clock() + 3_600_000, "moving", "amy")
        )

    operator.patience.sleeping = held
    result = operator.asks("resubmit", "--group", group, "--go", "--canary", "1", "--json")
    told = document(result)
    assert (told["sent"], told["state"], told["notReached"]) == (1, "stopped", 1)
    assert result.stderr.endswith("To send nevertheless, resume it with --anyway.\n")
    assert told["why"] == "mail is held by amy: moving, and the orders would wait for it"


def test_what_cannot_be_taken_back_is_asked_once_with_the_count(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = archived(operator, 2)
    operator.world.clock.now += 1000
    command = ("undo", "--group", group, "--go", "--reason", "told to")
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


def test_undone_orders_begin_all_over_together_only_where_again_is_said(
    operator: Operator,
) -> None:
    for name in names(2):
        operator.world.submit({**order(name), **DECLINED})
    operator.world.run()
    operator.world.clock.now += 1000
    group = group_of(operator, "ord-1")
    told = document(operator.asks("resubmit", "--group", group, "--json"))
    assert told["eligible"] == {"orders": 0, "samples": []}
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


def test_a_failed_undo_that_is_made_again_ends_well_where_it_ends_undone(
    operator: Operator,
) -> None:
    world = operator.world
    world.faults({"operation": "DELETE /reservations", "status": 403})
    for name in names(2):
        world.submit({**order(name), **DECLINED})
    world.run()
    group = group_of(operator, "ord-1")
    did = operator.asks("resolve", "ord-1", "ord-2", "charge_card", "--did", "--json")
    assert document(did)["eligible"] == {"orders": 0, "samples": []}
    world.faults()
    world.clock.now += 1000
    told = document(operator.asks("resubmit", "--group", group, "--go", "--json"))
    assert (told["undone"], told["failedAgain"]) == (2, 0)


def test_that_a_step_happened_is_said_of_many_only_where_it_has_no_result(
    operator: Operator,
) -> None:
    group = archived(operator, 2)
    operator.world.clock.now += 1000
    told = document(
        operator.asks("resolve", "--group", group, "send_confirmation", "--did", "--json")
    )
    assert told["refused"] == [
        {
            "reason": "a step can be marked as done for one order at a time only: each has "
            "its own result",
            "orders": 2,
            "samples": ["ord-1", "ord-2"],
        }
    ]
    command = ("resolve", "--group", group, "send_confirmation", "--did-not", "--go", "--json")
    assert document(operator.asks(*command))["completed"] == 2


def test_many_orders_are_given_more_time_and_run_by_a_filter(operator: Operator) -> None:
    in_retry(operator)
    before = operator.world.task("ord-1").complete_by
    command = ("extend", "--state", "Retry", "--by", "1h", "--go", "--json")
    assert document(operator.asks(*command))["taken"] == 1
    assert operator.world.task("ord-1").complete_by == before + 3_600_000
    told = document(operator.asks("run", "--state", "Retry", "--go", "--json"))
    assert (told["completed"], told["selected"]) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("resubmit",), "Give an order id, or a filter: --group or --state."),
        (("undo", "o", "--group", "f-00000000"), "Give order ids or a filter, not both."),
        (("undo", "--workflow", "w"), "To select many orders, give --group or --state"),
        (("undo", "--group", "f-1"), "'f-1' is not a failure group id"),
        (("run", "--state", "Completed"), "A Completed task accepts no command"),
        (("run", "a", "b", "--no-wait"), "--no-wait works for one order only"),
        (("run", "a", "b", "--rate", "0"), "--rate must be more than 0"),
        (("run", "a", "b", "--rate", "nan"), "--rate must be more than 0"),
        (("run", "a", "b", "--rate", "1e9"), "--rate must be more than 0"),
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
    result = CliRunner().invoke(app, [*arguments, "--reason", "told to"])
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
        for verb in (("show",), ("resume",), ("stop", "--reason", "told to")):
            result = operator.types("bulk", verb[0], run_id, *verb[1:])
            assert (result.exit_code, result.stdout) == (3, ""), (verb, run_id)
            assert "\x1b" not in result.stderr
