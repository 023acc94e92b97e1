"""Answers from outside, given by hand: by the token of a callback, and by the step's name."""

from dataclasses import replace
from datetime import timedelta

import pytest
from typer.testing import CliRunner

from roundsman.agents.callbacks import callback_token
from roundsman.aws.dynamodb.control import DynamoPlans
from roundsman.client import Client, InvalidCall
from roundsman.definition.plan import Plan, plan_of
from roundsman.definition.workflow import Workflow
from roundsman.engine.due import with_due_entry
from roundsman.engine.history import ANSWERED
from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.errors import PermanentError
from roundsman.model.events import CommandSource, Outcome
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepRecord, Termination
from roundsman.ports import OrderRow
from roundsman.wire.messages import Reply, read_request
from roundsman_console.acts.order.sent import CommandResult
from roundsman_console.base.result import CommandOutcome
from roundsman_console.faces.cli.act import print_result
from roundsman_console.main import app
from roundsman_testing.stack import MORNING
from tests.console.operators import Operator, document
from tests.console.schemas import assert_schema
from tests.console.step_samples import PICK
from tests.moto.orders import MOTO_SENDER, order
from tests.support.steps import changed_step, step_record

IN_AN_HOUR = MORNING + 3_600_000


def waits_for_approval(operator: Operator, remind_every: int | None = None) -> str:
    """An order whose charge waits for an answer from outside; the token of its callback."""
    world = operator.world
    world.submit(order("ord-1"))
    for queue in (
        "SubmissionQueue",
        "SchedulerQueue",
        "InventoryRequestQueue",
        "InventoryReplyQueue",
    ):
        world.run_one_batch(queue)
    (body,) = world.bodies(world.url("PaymentRequestQueue"))
    asked = read_request(body)
    waiting = Reply(
        task_id=asked.task_id,
        step=asked.step,
        operation=asked.operation,
        lock=asked.lock,
        idempotency_key=asked.idempotency_key,
        outcome=Outcome.WAITING,
        agent="payment",
        finished_at=world.clock(),
        until=IN_AN_HOUR,
        remind_every=remind_every,
    )
    world.send("PaymentReplyQueue", waiting.body())
    world.run()
    return callback_token(asked, "payment")


def answers(token: str) -> tuple[str, ...]:
    return ("answer", token, "--result", '{"chargeId": "ch_7"}')


def test_an_answer_by_its_token_ends_the_step_and_the_task_goes_on(operator: Operator) -> None:
    token = waits_for_approval(operator)
    assert "charge_card: waits for a callback until 2027-01-15T09:00:00Z" in (
        operator.types("show", "ord-1").stdout
    )
    result = operator.types(*answers(token))
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "The scheduler accepted the answer to charge_card of ord-1; the step is "
        "Processed.\nord-1 is Completed.\n"
    )
    assert operator.world.task("ord-1").step("charge_card").result == {"chargeId": "ch_7"}
    again = operator.types(*answers(token), "--json")
    assert (again.exit_code, document(again)["outcome"]) == (1, "refused")
    assert_schema("answer", document(again))
    assert again.stderr == (
        "The answer to charge_card of ord-1 is not sent: no step waits for it; the step is "
        "Processed.\n"
    )


def test_an_answer_by_the_order_and_its_step_needs_no_token(operator: Operator) -> None:
    waits_for_approval(operator)
    result = operator.types("answer", "ord-1", "charge_card", "--result", "7")
    assert result.exit_code == 0, result.output
    assert operator.world.task("ord-1").state is TaskState.COMPLETED


def test_an_answer_that_is_longer_than_the_plan_allows_is_not_sent(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, world = waits_for_approval(operator), operator.world
    stored_plan = DynamoPlans.plan

    def older(plans: DynamoPlans, wanted: str) -> Plan | None:
        found = stored_plan(plans, wanted)
        if found is None:
            return None
        charge = replace(found.steps["charge_card"], result_limit=4_096)
        return replace(found, steps={**found.steps, "charge_card": charge})

    monkeypatch.setattr(DynamoPlans, "plan", older)
    why = "the result has 4097 bytes; the plan allows 4096"
    for named in (("ord-1", "charge_card"), (token,)):
        refused = operator.types("answer", *named, "--result", f'"{"x" * 4_095}"')
        assert refused.exit_code != 0
        assert why in refused.stderr
    with pytest.raises(InvalidCall, match=why):
        Client.of_stack("roundsman").answer(
            order_id="ord-1", step="charge_card", result="x" * 4_095
        )
    assert world.waiting("PaymentReplyQueue") == 0
    Client.of_stack("roundsman").answer(order_id="ord-1", step="charge_card", result="x" * 4_094)
    assert world.waiting("PaymentReplyQueue") == 1


def test_the_step_of_an_order_that_does_not_wait_is_not_answered(operator: Operator) -> None:
    waits_for_approval(operator)
    result = operator.types("answer", "ord-1", "reserve_stock", "--result", "7")
    assert result.exit_code == 2
    assert (
        result.stderr == "reserve_stock of ord-1 does not wait for a callback: it is Processed.\n"
    )
    assert operator.types("answer", "ord-2", "charge_card", "--result", "7").exit_code == 3


def test_a_yes_after_the_order_was_stopped_is_stored(operator: Operator) -> None:
    waits_for_approval(operator)
    stopped = operator.types("cancel", "ord-1", "--no-undo", "--reason", "wrong", "--yes")
    assert stopped.exit_code == 0, stopped.output
    operator.world.run()
    assert operator.world.task("ord-1").step("charge_card").wait_was_ended
    result = operator.types("answer", "ord-1", "charge_card", "--result", "7")
    assert result.exit_code == 0, result.output
    operator.world.run()
    charge = operator.world.task("ord-1").step("charge_card")
    assert (charge.process_state, charge.result) == (ProcessState.PROCESSED, 7)


def test_an_application_answers_by_the_order_and_its_step(operator: Operator) -> None:
    world, client = operator.world, Client.of_stack("roundsman")
    waits_for_approval(operator)
    assert client.answer(order_id="ord-1", step="charge_card", result={"chargeId": "ch_7"})
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert world.task("ord-1").step("charge_card").result == {"chargeId": "ch_7"}
    [answered] = [row for row in world.store.history("ord-1") if row.kind == ANSWERED]
    assert answered.sender is not None
    with pytest.raises(InvalidCall, match="it is Processed, as read just before sending"):
        client.answer(order_id="ord-1", step="charge_card")
    assert world.waiting("PaymentReplyQueue") == 0


def test_an_application_says_no_by_the_order_and_its_step(operator: Operator) -> None:
    world, client = operator.world, Client.of_stack("roundsman")
    waits_for_approval(operator)
    client.fail(order_id="ord-1", step="charge_card", error=PermanentError("Declined"))
    world.run()
    assert world.task("ord-1").state is TaskState.UNDONE


def test_an_application_learns_that_the_wait_had_ended(operator: Operator) -> None:
    world, client = operator.world, Client.of_stack("roundsman")
    waits_for_approval(operator)
    stopped = operator.types("cancel", "ord-1", "--no-undo", "--reason", "wrong", "--yes")
    assert stopped.exit_code == 0, stopped.output
    world.run()
    with pytest.raises(InvalidCall, match="was ended, as read just before sending"):
        client.fail(order_id="ord-1", step="charge_card", error=PermanentError("Declined"))
    assert world.waiting("PaymentReplyQueue") == 0
    assert client.answer(order_id="ord-1", step="charge_card", result=7) is False
    world.run()
    assert world.task("ord-1").step("charge_card").result == 7


def test_what_names_no_wait_is_refused(operator: Operator) -> None:
    client = Client.of_stack("roundsman")
    token = waits_for_approval(operator)
    assert client.answer(token) is None
    with pytest.raises(InvalidCall, match="There is no order ord-2"):
        client.answer(order_id="ord-2", step="charge_card")
    with pytest.raises(InvalidCall, match="a callback: there is no such step, as read"):
        client.answer(order_id="ord-1", step="wrap")
    with pytest.raises(InvalidCall, match="either a token, or an order id and a step"):
        client.answer(order_id="ord-1")  # type: ignore[call-overload]  # what a caller may write
    with pytest.raises(InvalidCall, match="either a token, or an order id and a step"):
        client.answer(token, step="charge_card")  # type: ignore[call-overload]  # as above
    with pytest.raises(TypeError, match="an error must be given"):
        client.fail(token)  # type: ignore[call-overload]  # as above


def test_a_command_that_undoes_an_order_says_what_the_undo_still_waits_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    waits = step_record(process_state=ProcessState.PROCESSING, waiting=True, complete_by=IN_AN_HOUR)
    made = plan_of(Workflow(name="picks", steps=(PICK,), complete_within=timedelta(hours=2)))
    task = replace(
        new_task(made, "ord-1", ProcessingOptions(), MORNING, shards=1),
        steps={"pick": waits},
        ending=Termination(TaskState.UNDONE, "undo requested", undo=True),
    )
    asked = CommandSource("c-1", "ann")
    result = CommandResult(CommandOutcome.DONE, "undo by ann.", "undo", asked, True, "ord-1", task)
    print_result(result, as_json=False)
    assert capsys.readouterr().out.splitlines()[-1] == (
        "pick waits for its callback until 2027-01-15T09:00:00Z, and its undo begins after that. "
        "If nobody outside will perform it: roundsman resolve ord-1 pick --did-not --reason '...'"
    )


def test_an_application_answers_with_the_client(operator: Operator) -> None:
    token = waits_for_approval(operator)
    client = Client.of_stack("roundsman")
    client.answer(token, {"chargeId": "ch_7"})
    operator.world.run()
    assert operator.world.task("ord-1").step("charge_card").result == {"chargeId": "ch_7"}
    assert operator.world.task("ord-1").state is TaskState.COMPLETED


@pytest.mark.exhaustive
def test_show_and_timeline_say_which_principal_answered(operator: Operator) -> None:
    token = waits_for_approval(operator)
    Client.of_stack("roundsman").answer(token, {"chargeId": "ch_7"})
    operator.world.run()
    [row] = operator.world.store.history("ord-1")
    assert (row.kind, row.step, row.attempt) == ("answered", "charge_card", 1)
    assert (row.by, row.sender) == (None, MOTO_SENDER)
    reason = "charge_card: its callback was answered: succeeded"
    history = operator.reads("show", "ord-1")["history"]
    assert isinstance(history, list)
    assert [(each["sender"], each["reason"]) for each in history] == [(MOTO_SENDER, reason)]
    happened = operator.reads("timeline", "ord-1")["happened"]
    assert isinstance(happened, list)
    of_step = [(one["what"], one["sender"]) for one in happened if one["step"] == "charge_card"]
    assert of_step[-2:] == [("finished", None), ("answered", MOTO_SENDER)]
    for verb in ("show", "timeline"):
        assert MOTO_SENDER in operator.types(verb, "ord-1").stdout.replace("\n", "")


@pytest.mark.exhaustive
def test_an_application_reports_a_failure_with_the_client(operator: Operator) -> None:
    token = waits_for_approval(operator)
    client = Client.of_stack("roundsman")
    with pytest.raises(InvalidCall, match="The result cannot be sent"):
        client.answer(token, "x" * 100_000)
    client.fail(token, PermanentError("Refused", "by the approver"))
    operator.world.run()
    status = client.status("ord-1")
    assert status is not None
    assert status.state is TaskState.UNDONE
    assert "Refused" in str(status.reason)


def test_an_answer_to_an_agent_that_the_stack_does_not_have_is_refused(operator: Operator) -> None:
    token = waits_for_approval(operator)
    outputs = dict(operator.world.stack.outputs)
    del outputs["PaymentReplyQueueUrl"]
    with pytest.raises(InvalidCall, match="no reply queue of the agent 'payment'"):
        Client(outputs).answer(token, {})


def test_an_answer_that_it_failed_ends_the_step_for_good(operator: Operator) -> None:
    token = waits_for_approval(operator)
    failed = ("answer", token, "--failed", "Refused", "--message", "by the approver")
    printed = document(operator.types(*failed, "--json"))
    assert (printed["outcome"], printed["orderId"], printed["state"]) == ("done", "ord-1", "Undone")
    assert "Refused: by the approver" in operator.types("show", "ord-1").stdout.replace("\n", " ")


@pytest.mark.exhaustive
def test_a_step_that_waits_for_a_callback_can_be_resolved(operator: Operator) -> None:
    waits_for_approval(operator)
    result = operator.asks("resolve", "ord-1", "charge_card", "--did", "--result", '"ch_8"')
    assert result.stdout == "Done: resolve by ops: routine.\nord-1 is Completed.\n"
    assert operator.world.task("ord-1").step("charge_card").result == "ch_8"


def asked_again(operator: Operator, **changes: object) -> str:
    """A later attempt waits; the token of the first one."""
    token = waits_for_approval(operator)
    task = operator.world.task("ord-1")
    record = changed_step(task.step("charge_card"), locked_by="another.7", **changes)
    steps = {**task.steps, "charge_card": record}
    operator.world.store.save(
        replace(task, version=task.version + 1, steps=steps), seen=task.version
    )
    return token


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (("--result", '{"chargeId": "ch_7"}'), "Completed"),
        pytest.param(("--failed", "Refused"), "Undone", marks=pytest.mark.exhaustive),
    ],
)
def test_an_answer_by_the_token_of_an_earlier_attempt_counts_be_it_yes_or_no(
    operator: Operator, answer: tuple[str, ...], state: str
) -> None:
    result = operator.types("answer", asked_again(operator), *answer, "--json")
    printed = document(result)
    assert (printed["outcome"], printed["state"]) == ("done", state), result.output


@pytest.mark.parametrize(
    "answer",
    [("--result", "{}"), pytest.param(("--failed", "Refused"), marks=pytest.mark.exhaustive)],
)
def test_an_answer_by_an_earlier_token_to_an_order_that_ends_and_does_not_wait_is_not_sent(
    operator: Operator, answer: tuple[str, ...]
) -> None:
    token = asked_again(operator, waiting=False)
    operator.asks("cancel", "ord-1", "--no-wait")
    operator.world.run()
    refused = operator.types("answer", token, *answer)
    assert refused.exit_code == 1
    assert "its attempt has ended, and so does the task" in refused.stderr
    assert operator.world.waiting("PaymentReplyQueue") == 0


@pytest.mark.exhaustive
def test_show_why_and_timeline_say_when_the_next_reminder_is_due(operator: Operator) -> None:
    waits_for_approval(operator, remind_every=20 * 60_000)
    operator.world.pass_time(21 * 60)
    words = "until 2027-01-15T09:00:00Z; reminded once, next at 2027-01-15T08:4"
    shown, why, timeline = (
        " ".join(operator.types(command, "ord-1").stdout.split())
        for command in ("show", "why", "timeline")
    )
    assert words in shown
    assert "reminded once, next at 2027-01-15T08:4" in why
    assert "reminder 1 sent; the next at" in timeline
    steps = document(operator.types("show", "ord-1", "--json"))["steps"]
    assert isinstance(steps, list)
    assert [step["reminders"] for step in steps if step["name"] == "charge_card"] == [1]


def test_an_answer_that_nobody_takes_in_time_is_unconfirmed(operator: Operator) -> None:
    token = waits_for_approval(operator)
    operator.patience.sleeping = lambda: None
    result = operator.types(*answers(token), "--wait", "1")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "is sent, but the scheduler has not handled it within 1 s" in result.stderr
    result = operator.types(*answers(token), "--no-wait")
    assert result.exit_code == 0
    assert "The answer to charge_card of ord-1 is sent." in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("t", "--result", "1", "--failed", "x"), "Give either --result or --failed"),
        (("t",), "Give either --result or --failed"),
        (("t", "--failed", "the limit is exceeded"), "write the sentence in --message."),
        (("t", "--result", "1", "--message", "x"), "--message requires --failed."),
        (("t", "--failed", " "), "--failed is empty."),
        (("t", "--result", "oops"), "--result is not JSON"),
        (("not-a-token", "--result", "1"), "This is not a callback token"),
        (("\udcff", "--result", "1"), "This is not a callback token"),
        (("", "--failed", "x"), "This is not a callback token"),
    ],
)
def test_an_answer_that_makes_no_sense_is_one_sentence(
    arguments: tuple[str, ...], message: str
) -> None:
    result = CliRunner().invoke(app, ["answer", *arguments])
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_ctrl_c_during_the_wait_for_an_answer_is_unconfirmed(operator: Operator) -> None:
    token = waits_for_approval(operator)

    def ctrl_c() -> None:
        raise KeyboardInterrupt

    operator.patience.sleeping = ctrl_c
    result = operator.types(*answers(token), "--json")
    assert (result.exit_code, document(result)["outcome"]) == (4, "unconfirmed")
    assert "is sent, but the wait for its outcome was interrupted." in result.stderr


@pytest.mark.exhaustive
def test_an_item_of_a_fan_out_is_shown_and_resolved_by_its_name(operator: Operator) -> None:
    world, at = operator.world, operator.world.clock()
    pick = replace(PICK, agent="inventory")
    hour = timedelta(hours=1)
    plan = plan_of(Workflow(name="picking", steps=(pick,), complete_within=hour, retain_for=hour))
    steps = {f"pick[{place}]": done(at) for place in range(4)}
    steps["pick[3]"] = changed_step(done(at), process_state=ProcessState.ERROR)
    task = replace(
        new_task(plan, "ord-1", ProcessingOptions(), at, shards=16),
        state=TaskState.ARCHIVED,
        ending=Termination(TaskState.ARCHIVED, "pick[3]: failed for good", "pick[3]"),
        ended_at=at,
        fan_outs={"pick": 4},
        steps=steps,
    )
    world.plans.put_plan(plan)
    content = {"lines": [1, 2, 3, 4]}
    world.store.create(OrderRow("ord-1", content, "hash", at), with_due_entry(task, at))
    shown = [line.split() for line in operator.types("show", "ord-1").stdout.splitlines()]
    assert ["pick[0-2]", "Processed", "0"] in shown
    assert ["pick[3]", "Error", "0"] in shown
    refused = operator.asks("resolve", "ord-1", "pick[4]", "--did")
    assert "The workflow has no step pick[4]; it has pick[0-3]." in refused.stderr
    result = operator.asks("resolve", "ord-1", "pick[3]", "--did", "--result", '"p"')
    assert result.stdout == "Done: resolve by ops: routine.\nord-1 is Completed.\n"


def done(at: int) -> StepRecord:
    return step_record(process_state=ProcessState.PROCESSED, started_at=at, finished_at=at)
