"""`roundsman smoke` over the real functions: how the order ends, where it stuck, what is left."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from roundsman_testing.stack import Clock, Services, Stack
from tests.console.operators import CHARGED_LATER, DECLINED, Operator, document, operator_of
from tests.console.schemas import assert_schema
from tests.moto.orders import ALL_EFFECTS, order
from tests.project import deployed_project, of_each_agent

NO_MAIL = {"operation": "POST /messages", "status": 422}


@pytest.fixture(scope="module")
def one_world(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    """One deployment for all of these."""
    parameters = of_each_agent("BreakerFailures", "100")
    with deployed_project(roundsman_services, roundsman_clock, parameters) as world:
        yield world


@pytest.fixture
def operator(
    monkeypatch: pytest.MonkeyPatch, one_world: Stack, session_without_real_aws: None
) -> Operator:
    """Someone at the command line of a stack as deployed just now."""
    return operator_of(one_world, monkeypatch)


@pytest.fixture
def event(tmp_path: Path) -> Path:
    """A file with an order event."""
    path = tmp_path / "order.json"
    path.write_text(json.dumps(order("any")))
    return path


def test_an_order_that_completes_is_as_expected(operator: Operator) -> None:
    result = operator.types("smoke", "--json")
    found = document(result)
    assert_schema("smoke", found)
    assert result.exit_code == 0
    assert (found["ok"], found["outcome"], found["state"]) == (True, "asExpected", "Completed")
    assert found["event"] == "events/smoke/order_fulfilment.json"
    assert operator.world.effects(str(found["orderId"])) == ALL_EFFECTS
    [left] = found["left"] if isinstance(found["left"], list) else []
    assert "reserve_stock" in left
    assert found["next"] is None


@pytest.mark.exhaustive
def test_each_run_has_an_order_of_its_own_whose_id_is_put_into_the_event(
    operator: Operator, event: Path
) -> None:
    event.write_text(json.dumps({**order("any"), "customerId": "of-$ORDER_ID"}))
    first = document(operator.types("smoke", "--event", str(event), "--json"))["orderId"]
    second = document(operator.types("smoke", "--event", str(event), "--json"))["orderId"]
    assert first != second
    stored = operator.world.store.order(str(first))
    assert stored is not None
    assert f"of-{first}" in json.dumps(stored.content)


@pytest.mark.exhaustive
def test_the_way_of_the_order_is_shown_in_words(operator: Operator) -> None:
    result = operator.types("smoke")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("  0.0 s  sent smoke-")
    assert lines[0].endswith(" to roundsman")
    assert any(line.endswith("the order is Completed") for line in lines)
    words = " ".join(result.stdout.split())
    assert "is Completed after 0.2 s, as expected. Left behind: the effects of reserve_" in words


@pytest.mark.exhaustive
def test_with_undo_an_order_is_cancelled_on_its_way_and_leaves_no_effect(
    operator: Operator,
) -> None:
    operator.world.faults(CHARGED_LATER)
    result = operator.types("smoke", "--undo", "--json")
    found = document(result)
    assert (result.exit_code, found["state"], found["left"]) == (0, "Cancelled", [])
    assert found["expected"] == "Cancelled"
    assert operator.world.effects(str(found["orderId"])) == {
        "inventory perform": 1,
        "inventory undo": 1,
    }


@pytest.mark.exhaustive
def test_an_order_that_completes_before_it_is_cancelled_is_a_failure(operator: Operator) -> None:
    # Here every function runs to the end between two looks.
    result = operator.types("smoke", "--undo", "--json")
    found = document(result)
    assert (result.exit_code, found["outcome"], found["state"]) == (
        1,
        "endedOtherwise",
        "Completed",
    )
    assert "completed before the cancellation reached it" in str(found["sentence"])
    assert found["left"] != []


@pytest.mark.exhaustive
def test_an_order_that_a_service_refuses_may_be_expected_to_be_undone(
    operator: Operator, event: Path
) -> None:
    event.write_text(json.dumps({**order("any"), **DECLINED}))
    typed = ("smoke", "--event", str(event))
    expected = operator.types(*typed, "--expect", "undone", "--json")
    assert (expected.exit_code, document(expected)["left"]) == (0, [])
    otherwise = operator.types(*typed)
    assert otherwise.exit_code == 1
    words = " ".join(otherwise.stdout.split())
    assert "is Undone after 0.2 s, and should be Completed: " in words
    assert "charge_card" in words


@pytest.mark.exhaustive
def test_an_archived_order_is_explained_and_with_undo_undone(operator: Operator) -> None:
    operator.world.faults(NO_MAIL)
    plain = operator.types("smoke", "--json")
    found = document(plain)
    assert (plain.exit_code, found["state"]) == (1, "Archived")
    assert "send_confirmation" in str(found["sentence"])
    assert str(found["next"]).startswith(f"roundsman resubmit {found['orderId']}")
    undone = operator.types("smoke", "--undo", "--json")
    found = document(undone)
    assert (undone.exit_code, found["state"]) == (1, "Undone")
    assert "It was archived first: " in str(found["sentence"])
    changes = found["changes"]
    assert isinstance(changes, list)
    assert any(change.endswith("undo asked") for change in changes)


@pytest.mark.exhaustive
def test_an_order_that_is_stuck_says_where_and_what_is_left(operator: Operator) -> None:
    operator.world.faults(CHARGED_LATER)
    result = operator.types("smoke", "--within", "5", "--json")
    found = document(result)
    assert (result.exit_code, found["outcome"], found["state"]) == (4, "notEnded", "Retry")
    why = found["why"]
    assert isinstance(why, dict)
    assert (why["case"], why["step"]) == ("retry", "charge_card")
    assert "has not ended within 5 s; it is Retry." in str(found["sentence"])
    assert found["left"] == [f"the order {found['orderId']}, which goes on by itself"]
    operator.world.faults(CHARGED_LATER)
    shown = operator.types("smoke", "--within", "5")
    assert "Left behind: the order smoke-" in shown.stdout


@pytest.mark.exhaustive
def test_an_agent_that_does_not_run_is_seen_by_its_queue(operator: Operator) -> None:
    world = operator.world

    def without_agents() -> None:
        for queue in ("SubmissionQueue", "SchedulerQueue"):
            if world.waiting(queue):
                world.run_one_batch(queue)

    operator.patience.sleeping = without_agents
    result = operator.types("smoke", "--within", "5", "--json")
    found = document(result)
    assert result.exit_code == 4
    assert [one["queue"] for one in found["queues"]] == ["InventoryRequestQueue"]  # type: ignore[attr-defined]
    assert "Messages wait in InventoryRequestQueue (1" in str(found["sentence"])


def test_an_event_that_nobody_reads_is_reported_with_its_queue(operator: Operator) -> None:
    operator.patience.sleeping = lambda: None
    result = operator.types("smoke", "--within", "5", "--json")
    found = document(result)
    assert (result.exit_code, found["outcome"], found["why"]) == (4, "noTask", None)
    assert "Messages wait in SubmissionQueue (1" in str(found["sentence"])
    assert found["left"] == [
        f"the event of {found['orderId']}; if it is read later, the order begins"
    ]


def test_an_event_that_is_rejected_says_why(
    operator: Operator, event: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The deployed submission may know other rules than the folder that smoke is typed in.
    monkeypatch.setattr("roundsman_console.facts.application.application_events", lambda: None)
    event.write_text(json.dumps({**order("any"), "lines": []}))
    result = operator.types("smoke", "--event", str(event), "--json")
    found = document(result)
    assert (result.exit_code, found["outcome"]) == (1, "rejected")
    assert "lines: " in str(found["sentence"])
    assert operator.patience.now < 5, "it does not wait in vain"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--workflow", "x", "--event", "y"), 2, "Give --workflow or --event, not both."),
        (("--workflow", "none"), 2, "There is no events/smoke/none.json; there are: order_ful"),
        (("--event", "none.json"), 2, "none.json cannot be read: No such file"),
        (("--event", "events/malformed.json"), 1, "events/malformed.json would be rejected: "),
        (("--event", "events/cancel.json"), 2, "events/cancel.json is not an order event."),
        (("--event", "events/README.md"), 2, "events/README.md is not JSON"),
        (("--expect", "Retry"), 2, "--expect takes Completed, Undone, Cancelled, Archived; 'Retry"),
        (("--stack", "nobody"), 1, "There is no stack nobody"),
    ],
)
def test_wrong_usage_is_one_sentence_and_sends_nothing(
    operator: Operator, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = operator.types("smoke", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in " ".join(result.stderr.split())
    assert operator.patience.slept == []


def test_ctrl_c_says_what_is_left(operator: Operator) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    operator.patience.sleeping = interrupt
    result = operator.types("smoke")
    assert result.exit_code == 130
    assert "was sent, and continues. See: roundsman why smoke-" in " ".join(result.stderr.split())
