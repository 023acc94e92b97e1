"""Each verb of an operator at work: accepted, carried out by the real scheduler, and reported."""

import pytest

from tests.console.operators import DECLINED, Operator, document, in_retry
from tests.moto.orders import ALL_EFFECTS, order

NO_MAIL = {"operation": "POST /messages", "status": 422}


def archived(operator: Operator) -> None:
    """An order whose confirmation was refused: three steps stand, a person is needed."""
    operator.world.faults(NO_MAIL)
    operator.world.submit(order("ord-1"))
    operator.world.run()
    operator.world.faults()
    assert operator.world.task("ord-1").state == "Archived"


def test_resubmit_goes_on_with_the_failed_step_and_says_so(operator: Operator) -> None:
    archived(operator)
    result = operator.asks("resubmit", "ord-1")
    assert result.exit_code == 0, result.output
    assert result.stdout == "Done: resubmit by ops: routine.\nord-1 is Completed.\n"
    assert operator.world.effects("ord-1") == ALL_EFFECTS
    assert operator.patience.slept == [0.25]


@pytest.mark.exhaustive
def test_resubmit_can_name_the_steps(operator: Operator) -> None:
    archived(operator)
    assert operator.asks("resubmit", "ord-1", "--step", "send_confirmation").exit_code == 0
    assert operator.world.task("ord-1").state == "Completed"


@pytest.mark.exhaustive
def test_a_fresh_key_is_given_by_a_persons_word_that_nothing_happened(operator: Operator) -> None:
    archived(operator)
    operator.world.clock.now += 60_000  # no copy of the request may act any more
    asked = operator.asks("resolve", "ord-1", "send_confirmation", "--did-not", "--fresh-key")
    assert asked.exit_code == 0
    assert operator.world.task("ord-1").step("send_confirmation").round == 2
    assert operator.world.effects("ord-1") == ALL_EFFECTS


@pytest.mark.exhaustive
def test_a_task_cancelled_as_it_was_begins_all_over_only_after_its_undo(
    operator: Operator,
) -> None:
    in_retry(operator)
    assert operator.asks("cancel", "ord-1", "--no-undo").exit_code == 0
    refused = operator.asks("resubmit", "ord-1", "--again")
    assert refused.exit_code == 1
    assert (
        "the effects of reserve_stock, charge_card may stand and would happen twice"
        in refused.stderr
    )
    assert operator.asks("undo", "ord-1").exit_code == 0
    assert operator.asks("resubmit", "ord-1", "--again").exit_code == 0
    assert operator.world.task("ord-1").state == "Completed"


@pytest.mark.exhaustive
def test_an_undone_task_begins_all_over_only_with_again(operator: Operator) -> None:
    operator.world.submit({**order("ord-1"), **DECLINED})
    operator.world.run()
    assert operator.world.task("ord-1").state == "Undone"
    refused = operator.asks("resubmit", "ord-1")
    assert refused.exit_code == 1
    assert "add --again to begin every step again" in refused.stderr
    result = operator.asks("resubmit", "ord-1", "--again")
    assert result.exit_code == 0
    assert "resubmit by ops: routine" in result.stdout
    assert operator.world.task("ord-1").step("reserve_stock").round == 2


def test_undo_compensates_what_has_happened(operator: Operator) -> None:
    in_retry(operator)
    result = operator.asks("undo", "ord-1")
    assert result.exit_code == 0, result.output
    assert result.stdout == "Done: undo by ops: routine.\nord-1 is Undone.\n"
    shown = operator.reads("show", "ord-1")
    assert shown["undone"] == ["reserve_stock", "charge_card"]
    assert shown["ending"] == {
        "how": "Undone",
        "why": "undo requested by ops: routine",
        "step": None,
        "undo": True,
        "part": [],
    }


def test_cancel_undoes_first(operator: Operator) -> None:
    in_retry(operator)
    result = operator.asks("cancel", "ord-1")
    assert result.stdout == "Done: cancel by ops: routine.\nord-1 is Cancelled.\n"
    assert operator.reads("show", "ord-1")["undone"] == ["reserve_stock", "charge_card"]


def test_cancel_without_undo_leaves_what_has_happened(operator: Operator) -> None:
    in_retry(operator)
    result = operator.asks("cancel", "ord-1", "--no-undo")
    assert result.stdout == "Done: cancel by ops: routine.\nord-1 is Cancelled.\n"
    shown = operator.reads("show", "ord-1")
    assert shown["undone"] == []
    assert shown["mayHaveHappened"] == ["reserve_stock", "charge_card"]
    assert operator.world.effects("ord-1") == {"inventory perform": 1}


def test_resolve_as_done_takes_the_result_and_the_task_completes(operator: Operator) -> None:
    archived(operator)
    result = operator.asks(
        "resolve", "ord-1", "send_confirmation", "--did", "--result", '{"messageId": "m-7"}'
    )
    assert result.stdout == "Done: resolve by ops: routine.\nord-1 is Completed.\n"
    assert operator.world.task("ord-1").step("send_confirmation").result == {"messageId": "m-7"}
    assert "mail perform" not in operator.world.effects("ord-1")


@pytest.mark.exhaustive
def test_resolve_as_not_done_has_the_step_made_again(operator: Operator) -> None:
    archived(operator)
    result = operator.asks("resolve", "ord-1", "send_confirmation", "--did-not")
    assert result.exit_code == 0, result.output
    assert operator.world.task("ord-1").state == "Completed"
    assert operator.world.effects("ord-1") == ALL_EFFECTS


@pytest.mark.exhaustive
def test_a_failed_undo_is_resolved_as_done_by_hand(operator: Operator) -> None:
    operator.world.faults({"operation": "DELETE /reservations", "status": 422})
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
    assert result.stdout == "Done: resolve by ops: routine.\nord-1 is Undone.\n"


def test_extend_gives_the_task_more_time(operator: Operator) -> None:
    in_retry(operator)
    before = operator.world.task("ord-1").complete_by
    result = operator.asks("extend", "ord-1", "--by", "1h30m")
    assert (
        result.stdout
        == "Done: extend by ops: routine.\nord-1 is Retry. Follow it with: roundsman show ord-1\n"
    )
    assert operator.world.task("ord-1").complete_by == before + 5_400_000


def test_extend_gives_a_step_at_its_agent_more_time(operator: Operator) -> None:
    operator.world.kill("PaymentFunction", at="UpdateItem")
    operator.world.submit(order("ord-1"))
    operator.world.run()
    assert operator.asks("extend", "ord-1", "charge_card", "--by", "10m").exit_code == 0
    assert operator.world.task("ord-1").step("charge_card").extra == 600_000
    refused = operator.asks("extend", "ord-1", "reserve_stock", "--by", "10m")
    assert refused.exit_code == 1
    assert "reserve_stock has no attempt in progress" in refused.stderr


@pytest.mark.exhaustive
def test_run_starts_a_scheduled_task_at_once(operator: Operator) -> None:
    operator.world.submit(order("ord-1", processIn=86_400))
    operator.world.run()
    assert operator.world.task("ord-1").state == "Scheduled"
    result = operator.asks("run", "ord-1")
    assert result.stdout == "Done: run by ops: routine.\nord-1 is Completed.\n"
    assert operator.world.effects("ord-1") == ALL_EFFECTS


def test_run_makes_the_next_attempt_at_once(operator: Operator) -> None:
    in_retry(operator)
    assert operator.asks("run", "ord-1").exit_code == 0
    assert operator.world.task("ord-1").state == "Completed"


@pytest.mark.exhaustive
def test_the_result_of_a_command_as_json_is_one_object(operator: Operator) -> None:
    in_retry(operator)
    printed = document(operator.asks("run", "ord-1", "--json"))
    command_id = printed.pop("commandId")
    assert printed == {
        "orderId": "ord-1",
        "command": "run",
        "outcome": "done",
        "sentence": "run by ops: routine.",
        "by": "ops",
        "reason": "routine",
        "state": "Completed",
        "version": operator.world.task("ord-1").version,
    }
    rows = operator.world.store.history("ord-1")
    assert [(row.kind, row.by) for row in rows if row.command_id == command_id] == [("run", "ops")]
