"""`roundsman_console.inspector.Inspector`: what the command line does, from Python."""

import ast
import math
import re
from dataclasses import replace

import pytest
from botocore.exceptions import NoCredentialsError

from roundsman.errors import TryAgain
from roundsman_console.acts.hold.wake import Woken, wake_released
from roundsman_console.acts.set_aside.again import SendOptions, SendResult, send_all
from roundsman_console.facts.set_aside.messages import rejected_queue
from roundsman_console.inspector import (
    CommandOutcome,
    CommandResult,
    Inspector,
    InspectorError,
    Interrupted,
    InvalidArgument,
    NotFound,
    Selection,
    TaskState,
    sentence_of,
)
from tests.console.operators import (
    DECLINED,
    Operator,
    at_each_call,
    in_retry,
    let_go_is_seen_at_once,
)
from tests.moto.orders import order
from tests.support.console_rooms import LIBRARY, MODULES, kind_of
from workflows.order_fulfilment import order_fulfilment


@pytest.fixture
def inspector(operator: Operator) -> Inspector:
    found = Inspector.of_stack("roundsman")
    assert found.stack.outputs == operator.world.stack.outputs
    return found


def undone(operator: Operator, order_id: str = "ord-1") -> None:
    operator.world.submit(order(order_id) | DECLINED)
    operator.world.run()


@pytest.mark.exhaustive
def test_tasks_are_found_explained_and_shown_as_the_command_line_shows_them(
    operator: Operator, inspector: Inspector
) -> None:
    undone(operator)
    (task,) = inspector.tasks(Selection(state=TaskState.UNDONE)).tasks
    assert task.task_id == "ord-1"
    assert inspector.tasks(Selection(state=TaskState.ARCHIVED)).tasks == ()
    assert inspector.why("ord-1").sentence == operator.reads("why", "ord-1")["sentence"]
    seen, plan, history = inspector.task("ord-1")
    assert (seen, plan is not None) == (task, True)
    shown = operator.reads("show", "ord-1")["history"]
    assert isinstance(shown, list)
    assert len(history) == len(shown)
    printed = operator.reads("timeline", "ord-1")["happened"]
    assert isinstance(printed, list)
    assert [one.what for one in inspector.timeline("ord-1")] == [one["what"] for one in printed]


@pytest.mark.exhaustive
def test_the_stack_is_read_as_the_command_line_reads_it(
    operator: Operator, inspector: Inspector
) -> None:
    undone(operator)
    assert inspector.stats().tasks.states[TaskState.UNDONE].count == 1
    (group,) = inspector.groups()
    found = inspector.group(group.id)
    assert found is not None
    assert [task.task_id for task in found.samples] == ["ord-1"]
    assert inspector.group("f-00000000") is None
    assert [agent.name for agent in inspector.agents()] == [
        "inventory",
        "mail",
        "payment",
        "shipping",
    ]
    assert "SubmissionQueue" in [queue.name for queue in inspector.queues()]
    assert inspector.alerts().unread == []
    assert inspector.dead_letters() == []
    assert inspector.check().looked.stack == "roundsman"
    assert inspector.audit().orders == inspector.audit(since=0, limit=10).orders > 0


def test_commands_are_sent_and_their_outcome_is_returned(
    operator: Operator, inspector: Inspector
) -> None:
    undone(operator)
    world = operator.world
    refused = inspector.resubmit("ord-1", by="amy", reason="try")
    assert (refused.outcome, refused.sent) == (CommandOutcome.REFUSED, False)
    again = inspector.resubmit("ord-1", by="amy", reason="a new card", again=True)
    assert (again.outcome, again.sent) == (CommandOutcome.DONE, True)
    world.run()
    assert world.task("ord-1").state is TaskState.UNDONE  # the card is still declined
    world.submit(order("ord-2", processIn=3600))
    world.run()
    assert inspector.run("ord-2", by="amy", reason="now").outcome is CommandOutcome.DONE
    assert world.task("ord-2").state is TaskState.COMPLETED
    world.submit(order("ord-3", processIn=3600))
    world.run()
    assert inspector.extend("ord-3", 60, by="amy", reason="slow").outcome is CommandOutcome.DONE
    cancelled = inspector.cancel("ord-3", by="amy", reason="ordered twice")
    assert cancelled.outcome is CommandOutcome.DONE
    assert world.task("ord-3").state is TaskState.CANCELLED
    assert inspector.run("ord-2", by="amy", reason="try").outcome is CommandOutcome.REFUSED
    sent = inspector.cancel("ord-3", by="amy", reason="twice", wait=0)
    assert sent.outcome is CommandOutcome.REFUSED


@pytest.mark.exhaustive
def test_the_outcome_of_a_step_is_recorded(operator: Operator, inspector: Inspector) -> None:
    in_retry(operator)
    result = inspector.resolve(
        "ord-1", "charge_card", by="amy", reason="seen", did=True, result={"chargeId": "ch_1"}
    )
    assert result.outcome is CommandOutcome.DONE, result.sentence
    assert operator.world.task("ord-1").step("charge_card").result == {"chargeId": "ch_1"}


def test_an_agent_is_held_and_released(inspector: Inspector) -> None:
    held = inspector.hold("payment", 60, by="amy", reason="maintenance")
    assert (held.hold.by, held.not_alerted) == ("amy", None)
    (alert,) = inspector.alerts().standing
    assert "payment" in alert.sentence
    (agent,) = [one for one in inspector.agents() if one.name == "payment"]
    assert agent.hold("operator") is not None
    released = inspector.release("payment", by="amy")
    assert (released.by, released.not_alerted) == ("amy", None)
    with pytest.raises(InspectorError, match="payment is not held by an operator"):
        inspector.release("payment", by="amy")


def test_what_does_not_exist_or_cannot_be_meant_is_an_error_of_its_own(
    inspector: Inspector,
) -> None:
    for call in (inspector.task, inspector.timeline, inspector.why):
        with pytest.raises(NotFound, match="There is no order ord-1 in roundsman"):
            call("ord-1")
    with pytest.raises(NotFound, match="No agent 'nobody'"):
        inspector.hold("nobody", 60, by="amy", reason="try")
    with pytest.raises(InvalidArgument, match="cursor"):
        inspector.tasks(after="no cursor")
    with pytest.raises(InspectorError, match="There is no stack elsewhere"):
        Inspector.of_stack("elsewhere")


def test_every_error_has_a_sentence() -> None:
    assert sentence_of(NotFound("There is no order.")) == "There is no order."
    assert sentence_of(TryAgain("reading tasks: Throttling")) == "reading tasks: Throttling."
    assert sentence_of(NoCredentialsError()).startswith("No AWS credentials are set")
    caused = TryAgain("reading tasks: NoCredentialsError")
    caused.__cause__ = NoCredentialsError()
    assert sentence_of(caused).startswith("No AWS credentials are set")
    assert sentence_of(caused).endswith("(reading tasks: NoCredentialsError).")


def test_orders_are_held_and_go_on_in_shares(inspector: Inspector) -> None:
    held = inspector.hold_orders(60, by="amy", reason="wrong prices")
    assert (held.hold.target, held.replaced, held.unknown) == ("everything", None, False)
    part = inspector.release_orders(share=10, by="amy")
    assert part.after == replace(held.hold, released=10)
    assert inspector.release_orders(by="ben").share == 100
    with pytest.raises(InspectorError, match="Everything is not held"):
        inspector.release_orders(by="ben")
    of_one = inspector.hold_orders(60, workflow="sale", undos=True, by="amy", reason="recall")
    assert (of_one.hold.workflow, of_one.hold.undos) == ("sale", True)
    with pytest.raises(InvalidArgument, match="A share is 1 to 100 percent, not 0"):
        inspector.release_orders(workflow="sale", share=0, by="amy")
    with pytest.raises(InvalidArgument, match="A hold lasts 10 to 604800 seconds"):
        inspector.hold_orders(9, by="amy", reason="try")
    with pytest.raises(InvalidArgument, match="is not the name of a workflow"):
        inspector.hold_orders(60, workflow="No Name", by="amy", reason="try")


@pytest.mark.parametrize("seconds", [-1, 0, 9, 7 * 24 * 3600 + 1, 1_800_000])
def test_a_hold_outside_its_limits_is_refused(inspector: Inspector, seconds: int) -> None:
    with pytest.raises(InvalidArgument, match="A hold lasts 10 to 604800 seconds"):
        inspector.hold("payment", seconds, by="amy", reason="try")
    assert not any(agent.holds for agent in inspector.agents())


@pytest.mark.parametrize(
    ("by", "reason", "message"),
    [
        ("", "try", "by is empty"),
        ("amy", " ", "reason is empty"),
        ("a" * 101, "try", "by has 101 characters"),
        ("amy", "x" * 501, "reason has 501 characters"),
    ],
)
def test_a_command_needs_a_sender_and_a_reason(
    inspector: Inspector, by: str, reason: str, message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        inspector.undo("ord-1", by=by, reason=reason)
    with pytest.raises(InvalidArgument, match=message):
        inspector.hold("payment", 60, by=by, reason=reason)


@pytest.mark.parametrize(
    ("by", "reason", "message"),
    [("", "", "by is empty"), ("amy", "x" * 501, "reason has 501 characters")],
)
def test_a_release_needs_a_sender_and_no_reason(
    inspector: Inspector, by: str, reason: str, message: str
) -> None:
    inspector.hold("payment", 60, by="amy", reason="try")
    with pytest.raises(InvalidArgument, match=message):
        inspector.release("payment", by=by, reason=reason)
    assert inspector.release("payment", by="amy").reason == ""


@pytest.mark.parametrize("seconds", [-1, 0, 30 * 24 * 3600 + 1])
def test_an_extension_outside_its_limits_is_refused_before_any_call(
    inspector: Inspector, seconds: int
) -> None:
    with pytest.raises(InvalidArgument, match=r"The command is invalid: .*seconds: must be 1 to"):
        inspector.extend("ord-1", seconds, by="amy", reason="try")


def test_arguments_that_no_message_can_carry_are_refused_before_any_call(
    inspector: Inspector,
) -> None:
    with pytest.raises(InvalidArgument, match="freshKey: a step that happened keeps its key"):
        inspector.resolve("ord-1", "a", by="amy", reason="try", did=True, fresh_key=True)
    with pytest.raises(InvalidArgument, match="The command is invalid: step"):
        inspector.resolve("ord-1", "", by="amy", reason="try", did=True)
    with pytest.raises(InvalidArgument, match="The command is invalid: "):
        inspector.resolve("ord-1", "a", by="amy", reason="try", did=True, result=math.nan)
    with pytest.raises(InvalidArgument, match=r"The command has \d+ bytes; SQS accepts 1048576"):
        inspector.resolve("ord-1", "a", by="amy", reason="try", did=True, result="x" * 1_048_576)


@pytest.mark.exhaustive
def test_no_error_of_the_library_names_an_option_of_the_command_line() -> None:
    # A verb and a ConsoleError are about what a person typed, on the command line or in a form.
    raised = [
        (module, text.value)
        for module, file in MODULES.items()
        if kind_of(module) == LIBRARY and module.startswith("roundsman_console.")
        if module.rpartition(".")[2] not in {"typed_inputs", "verbs"}
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Raise) and node.exc is not None
        if "ConsoleError" not in ast.unparse(node.exc)
        for text in ast.walk(node)
        if isinstance(text, ast.Constant) and isinstance(text.value, str)
    ]
    assert len(raised) > 50
    assert [message for message in raised if re.search(r"--[a-z]", message[1])] == []


def interrupt(**_: object) -> None:
    """Press Ctrl-C."""
    raise KeyboardInterrupt


def test_ctrl_c_during_the_wait_raises_what_was_sent(
    operator: Operator, inspector: Inspector
) -> None:
    in_retry(operator)
    operator.patience.sleeping = interrupt
    with pytest.raises(Interrupted, match="run of ord-1 is sent, but the wait") as caught:
        inspector.run("ord-1", by="amy", reason="try")
    result = caught.value.result
    assert isinstance(result, CommandResult)
    assert (result.outcome, result.sent) == (CommandOutcome.UNCONFIRMED, True)
    assert result.sentence == str(caught.value)


@pytest.mark.exhaustive
def test_ctrl_c_while_tasks_are_woken_leaves_the_rest_to_the_supervisor(
    operator: Operator, inspector: Inspector
) -> None:
    in_retry(operator)
    inspector.hold("payment", 60, by="amy", reason="maintenance")
    release = inspector.release("payment", by="amy")
    with at_each_call("dynamodb.Query", interrupt):
        stack = Inspector.of_stack("roundsman").stack  # only new clients are interrupted
        with pytest.raises(Interrupted, match="Interrupted as the first tasks") as caught:
            wake_released(stack, release)
    assert caught.value.result == Woken(more=True)
    assert not any(agent.holds for agent in inspector.agents())


def test_ctrl_c_while_rejected_messages_are_sent_raises_what_was_sent(operator: Operator) -> None:
    world = operator.world
    world.send("SubmissionQueue", '{"orderId": "ord-1"}')
    world.run()
    any_order = replace(order_fulfilment, input=None)
    stack = Inspector.of_stack("roundsman", workflows={any_order.name: any_order}).stack
    with (
        let_go_is_seen_at_once(world),
        pytest.raises(Interrupted, match=r"Interrupted after 0\. The others") as caught,
        at_each_call("sqs.SendMessage", interrupt),
    ):
        send_all(rejected_queue(stack), SendOptions(10), lambda _: True)
    result = caught.value.result
    assert isinstance(result, SendResult)
    assert (len(result.assessed), result.sent, result.error) == (1, [], caught.value)


def test_without_the_workflows_no_rejected_event_is_sent_again(operator: Operator) -> None:
    world = operator.world
    world.send("SubmissionQueue", '{"orderId": "ord-1"}')
    world.run()
    stack = Inspector.of_stack("roundsman").stack
    with let_go_is_seen_at_once(world):
        result = send_all(rejected_queue(stack), SendOptions(10), lambda _: True)
    assert (len(result.assessed), result.going, result.sent, result.left) == (1, [], [], 1)
    with let_go_is_seen_at_once(world):
        refused = operator.types("rejected", "resend", "--all", "--yes")
    assert refused.exit_code == 0
    assert "0 sent, 1 left" in refused.stdout
