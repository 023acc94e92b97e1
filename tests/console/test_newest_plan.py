"""`resubmit --plan newest` and `move`: an order continues under the plan that is deployed."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import TypedDict

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from roundsman.definition.plan import plan_of
from roundsman.definition.workflow import Retry, Signal, Workflow
from roundsman_console.aws.stack import find_stack
from roundsman_console.faces.web.access.one_browser import BrowserSession
from roundsman_console.faces.web.application import application
from roundsman_console.facts.application import application_events
from roundsman_console.inspector import Inspector
from roundsman_console.main import app
from tests.console.operators import Operator, document, in_retry
from tests.console.schemas import assert_schema
from tests.moto.orders import ALL_EFFECTS, order
from tests.web.browsers import PORT, Browser
from workflows.registry import WORKFLOWS

NO_MAIL: dict[str, object] = {"operation": "POST /messages", "status": 422}
OLD = WORKFLOWS["order_fulfilment"]
PATIENT = Retry(max_attempts=9)

Deploy = Callable[[Workflow], None]


def with_step(name: str, **changes: object) -> Workflow:
    """The example's workflow with one step changed; every step names the steps before it."""
    steps = [replace(step, after=step.after_names()) for step in OLD.steps]
    found = [replace(s, **changes) if s.name == name else s for s in steps]  # type: ignore[arg-type]  # fields of a step
    return replace(OLD, steps=tuple(found))


FIXED = with_step("send_confirmation", retry=PATIENT)


@pytest.fixture
def deploy(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> Deploy:
    """Deploy another version of the workflow; no order uses it yet."""

    def deployed(workflow: Workflow) -> None:
        monkeypatch.setitem(WORKFLOWS, "order_fulfilment", workflow)
        operator.world.redeploy()

    return deployed


def orders_failed(operator: Operator, *names: str) -> Operator:
    """Orders whose confirmation was refused."""
    operator.world.faults(NO_MAIL)
    operator.world.submit(*(order(name) for name in names))
    operator.world.run()
    assert operator.world.task(names[0]).state == "Archived"
    operator.world.faults()
    return operator


@pytest.fixture
def failed(operator: Operator) -> Operator:
    """One such order."""
    return orders_failed(operator, "ord-1")


def test_an_order_continues_under_a_plan_that_no_order_has_used(
    failed: Operator, deploy: Deploy
) -> None:
    deploy(FIXED)
    old, new = plan_of(OLD).hash, plan_of(FIXED).hash
    assert failed.world.plans.plan(new) is None
    result = failed.asks("resubmit", "ord-1", "--plan", "newest")
    assert result.exit_code == 0, result.output
    output = result.stdout.splitlines()
    assert output[0] == f"Its plan {old[:12]} would change to {new[:12]}:"
    assert output[1].startswith("  send_confirmation: retry: ")
    assert output[2] == (
        f"Done: resubmit by ops: routine; its plan changes from {old[:12]} to {new[:12]}."
    )
    failed.world.run()
    task = failed.world.task("ord-1")
    assert (task.state, task.plan) == ("Completed", new)
    assert failed.world.effects("ord-1") == ALL_EFFECTS


def test_a_dry_run_shows_what_differs_and_sends_nothing(failed: Operator, deploy: Deploy) -> None:
    deploy(replace(FIXED, complete_within=timedelta(hours=3)))
    before = failed.world.task("ord-1")
    found = failed.reads(
        "resubmit", "ord-1", "--plan", "newest", "--dry-run", "--reason", "routine"
    )
    assert (found["outcome"], found["commandId"]) == ("dryRun", None)
    assert found["sentence"] == "resubmit of ord-1 is possible; nothing was sent."
    plan = found["plan"]
    assert isinstance(plan, dict)
    assert [(each["change"], each["step"]) for each in plan["differences"]] == [
        ("changed", None),
        ("changed", "send_confirmation"),
    ]
    assert plan["differences"][0]["sentence"] == (
        "the workflow: complete_within: 7200 s, now 10800 s"
    )
    shown = failed.types(
        "resubmit", "ord-1", "--plan", "newest", "--dry-run", "--reason", "routine"
    )
    assert shown.stdout.splitlines()[-1] == "resubmit of ord-1 is possible; nothing was sent."
    failed.world.run()
    assert failed.world.task("ord-1") == before


@pytest.mark.exhaustive
def test_without_a_change_the_plan_is_the_newest_already(failed: Operator) -> None:
    result = failed.asks("resubmit", "ord-1", "--plan", "newest")
    assert result.stdout.startswith(f"Its plan {plan_of(OLD).hash[:12]} is the newest.\n")
    failed.world.run()
    assert failed.world.task("ord-1").state == "Completed"


@pytest.mark.exhaustive
def test_a_plan_in_which_a_finished_step_is_another_is_refused_with_what_differs(
    failed: Operator, deploy: Deploy
) -> None:
    deploy(with_step("charge_card", compensation=None))
    result = failed.asks("resubmit", "ord-1", "--plan", "newest")
    assert result.exit_code == 1
    assert "charge_card: compensation: " in result.stdout
    assert "charge_card is done, but in that plan it has no compensation" in result.stderr
    assert failed.world.task("ord-1").state == "Archived"
    assert [row.kind for row in failed.world.store.history("ord-1")][-1] != "refused"


class Loyal(TypedDict):
    """An order of a shop with loyalty numbers."""

    customerId: str
    loyaltyNumber: str


@pytest.mark.exhaustive
def test_an_order_whose_input_the_new_plan_does_not_accept_is_refused(
    failed: Operator, deploy: Deploy
) -> None:
    deploy(replace(FIXED, input=Loyal))
    result = failed.asks("resubmit", "ord-1", "--plan", "newest")
    assert result.exit_code == 1
    message = "its input is not valid under the newest plan: loyaltyNumber: "
    assert message in result.stderr.replace("\n", " ")
    assert failed.world.task("ord-1").state == "Archived"


@pytest.mark.exhaustive
def test_a_person_is_asked_before_the_plan_changes(
    failed: Operator, deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy(FIXED)
    result = failed.types("resubmit", "ord-1", "--plan", "newest", "--reason", "routine")
    assert result.exit_code == 2
    assert "ord-1 is Archived. Continue it under the newest plan?" in result.stderr
    assert failed.world.task("ord-1").state == "Archived"


@pytest.mark.exhaustive
def test_many_orders_are_shown_what_differs_and_continue(
    operator: Operator, deploy: Deploy
) -> None:
    orders = ("ord-1", "ord-2", "ord-3")
    failed = orders_failed(operator, *orders)
    deploy(FIXED)
    options = ("--plan", "newest", "--reason", "routine", "--as", "ops")
    found = failed.reads("resubmit", *orders, *options)
    assert found["plans"] == [
        {
            "before": plan_of(OLD).hash,
            "after": plan_of(FIXED).hash,
            "differences": [
                {
                    "change": "changed",
                    "step": "send_confirmation",
                    "sentence": "send_confirmation: retry: 3 attempts, delays from 1 s to 300 s, "
                    "now 9 attempts, delays from 1 s to 300 s",
                }
            ],
            "orders": 3,
        }
    ]
    eligible = found["eligible"]
    assert isinstance(eligible, dict)
    assert eligible["orders"] == 3
    shown = failed.types("resubmit", *orders, *options)
    assert f"3 orders: the plan {plan_of(OLD).hash[:12]} would change to" in shown.stdout
    failed.lets_time_pass()
    result = failed.types("resubmit", *orders, *options, "--go", "--yes", "--json")
    assert result.exit_code == 0, result.output
    assert document(result)["completed"] == 3
    assert {failed.world.task(name).plan for name in orders} == {plan_of(FIXED).hash}


@pytest.mark.exhaustive
def test_orders_whose_input_is_not_valid_are_refused_and_the_others_go_on(
    operator: Operator, deploy: Deploy
) -> None:
    failed = orders_failed(operator, "ord-1", "ord-2")

    class ForOne(TypedDict):
        customerId: str

    deploy(replace(FIXED, input=ForOne))
    table = failed.world.stack.outputs["OrdersTableName"]
    row = failed.world.dynamodb.get_item(TableName=table, Key={"OrderID": {"S": "ord-2"}})["Item"]
    content = json.loads(row["Content"]["S"])
    del content["customerId"]
    row["Content"] = {"S": json.dumps(content)}
    failed.world.dynamodb.put_item(TableName=table, Item=row)
    options = ("--plan", "newest", "--reason", "routine", "--as", "ops")
    failed.lets_time_pass()
    result = failed.types("resubmit", "ord-1", "ord-2", *options, "--go", "--yes", "--json")
    found = document(result)
    assert (found["completed"], found["sent"]) == (1, 1)
    refused = found["refused"]
    assert isinstance(refused, list)
    reason = refused[0]["reason"]
    assert reason.startswith("its input is not valid under the newest plan: customerId")
    assert failed.world.task("ord-2").state == "Archived"


def test_no_other_plan_can_be_asked_for() -> None:
    typed = ("resubmit", "ord-1", "--plan", "older", "--reason", "routine")
    result = CliRunner().invoke(app, typed)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--plan must be newest" in result.stderr


@pytest.mark.exhaustive
def test_a_workflow_that_was_removed_is_a_sentence(
    failed: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = {name: workflow for name, workflow in WORKFLOWS.items() if workflow is not OLD}
    other = replace(OLD, name="another", steps=(replace(OLD.steps[0], name="greet"),))
    monkeypatch.setattr("workflows.registry.WORKFLOWS", {**others, "another": other})
    failed.world.redeploy()
    result = failed.asks("resubmit", "ord-1", "--plan", "newest")
    assert result.exit_code == 1
    assert "The deployed application has no workflow order_fulfilment" in result.stderr


@pytest.mark.exhaustive
def test_a_function_that_does_not_know_the_question_is_a_sentence(
    failed: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failed.world, "invoke", lambda *_: {"batchItemFailures": []})
    result = failed.asks("resubmit", "ord-1", "--plan", "newest")
    assert result.exit_code == 1
    assert "did not answer which plan is its newest: it is of an older version" in result.stderr


@pytest.mark.exhaustive
def test_a_function_that_fails_is_a_sentence(
    failed: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> object:
        raise ImportError("no module")

    monkeypatch.setattr(failed.world, "invoke", fails)
    result = failed.asks("resubmit", "ord-1", "--plan", "newest")
    assert result.exit_code == 1
    assert "failed, so its newest plan is not known. Read its log" in result.stderr


# --- An open order -----------------------------------------------------------------------------


def test_an_open_order_moves_to_the_plan_that_is_deployed(
    operator: Operator, deploy: Deploy
) -> None:
    in_retry(operator)
    deploy(FIXED)
    old, new = plan_of(OLD).hash, plan_of(FIXED).hash
    result = operator.asks("move", "ord-1")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-2:] == [
        f"Done: move by ops: routine; its plan changes from {old[:12]} to {new[:12]}.",
        "ord-1 is Retry. Follow it with: roundsman show ord-1",
    ]
    operator.world.pass_time(660)
    operator.world.run()
    task = operator.world.task("ord-1")
    assert (task.state, task.plan) == ("Completed", new)


def test_what_a_move_would_change_is_shown_and_nothing_is_sent(
    operator: Operator, deploy: Deploy
) -> None:
    in_retry(operator)
    deploy(FIXED)
    printed = document(operator.asks("move", "ord-1", "--dry-run", "--json"))
    assert_schema("move", printed)
    assert printed["sentence"] == "move of ord-1 is possible; nothing was sent."
    assert operator.world.task("ord-1").plan == plan_of(OLD).hash


def test_a_move_is_refused_if_a_step_that_was_sent_differs(
    operator: Operator, deploy: Deploy
) -> None:
    in_retry(operator)
    deploy(with_step("charge_card", reads=("lines",)))
    result = operator.asks("move", "ord-1")
    assert result.exit_code == 1
    assert "charge_card was sent to its agent, but in that plan its list of fields" in result.stderr


def test_a_bulk_run_shows_first_which_open_orders_it_would_move(
    operator: Operator, deploy: Deploy
) -> None:
    in_retry(operator)
    deploy(FIXED)
    found = ("--workflow", "order_fulfilment", "--state", "Retry")
    tried = document(operator.asks("move", *found, "--json"))
    assert tried["eligible"] == {"orders": 1, "samples": ["ord-1"]}
    deploy(with_step("charge_card", reads=("lines",)))
    tried = document(operator.asks("move", *found, "--json"))
    assert tried["eligible"] == {"orders": 0, "samples": []}


def with_a_kept_signal(operator: Operator, deploy: Deploy) -> None:
    """An open order with an unread signal, and a deployed plan without the step that reads it."""
    paid = Signal("paid", within=timedelta(hours=1), after=("charge_card",))
    steps = with_step("charge_card").steps
    deploy(replace(OLD, steps=(*steps, paid)))
    in_retry(operator)
    operator.types("signal", "ord-1", "paid", "--id", "pay-7")
    operator.world.run()
    assert [one.id for one in operator.world.task("ord-1").signals] == ["pay-7"]
    deploy(OLD)


def test_the_dry_run_of_a_move_names_the_signals_that_no_step_reads_then(
    operator: Operator, deploy: Deploy
) -> None:
    with_a_kept_signal(operator, deploy)
    one = document(operator.asks("move", "ord-1", "--dry-run", "--json"))
    lost = "step is left then that reads the signal paid"
    assert str(one["sentence"]).endswith(f"nothing was sent. No {lost} (pay-7): rejected.")
    typed = ("move", "--workflow", "order_fulfilment", "--state", "Retry")
    many = document(operator.asks(*typed, "--json"))
    reason = f"no {lost}: rejected"
    assert many["lostSignals"] == [{"reason": reason, "orders": 1, "samples": ["ord-1"]}]
    assert many["eligible"] == {"orders": 1, "samples": ["ord-1"]}
    assert f"loses signals  1  ord-1: {reason}" in operator.asks(*typed).stdout
    session = BrowserSession(PORT)
    inspector = Inspector(find_stack(None, application_events()))
    with TestClient(application(inspector, session), base_url=session.address) as client:
        client.get(session.link_to())
        browser = Browser(client, session, operator, inspector)
        shown = browser.sends(
            "move-all", workflow="order_fulfilment", state="Retry", reason="routine"
        )
    assert f"1 order ord-1 loses signals {reason} yes" in shown
    assert [one.id for one in operator.world.task("ord-1").signals] == ["pay-7"]
