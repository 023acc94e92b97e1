"""What would come of a message that is sent again: judged as the function behind its queue does."""

from dataclasses import replace

import pytest

from roundsman.model.events import Outcome
from roundsman.model.states import ProcessState
from roundsman.model.task import PERFORM, Effect, StepRecord, idempotency_key
from roundsman.wire.messages import AgentRequest, Reply
from roundsman_console.facts.set_aside.assess import (
    ResendVerdict,
    order_of,
    reply_matters,
    request_matters,
)
from tests.console.step_samples import AT, task
from tests.support.steps import changed_step, step_record

AT_WORK = step_record(process_state=ProcessState.PROCESSING, locked_by="lock-1")
KEY = idempotency_key("ord-1", "charge", PERFORM, AT_WORK)
REPLY = Reply(
    task_id="ord-1",
    step="charge",
    operation=PERFORM,
    lock="lock-1",
    idempotency_key=KEY,
    outcome=Outcome.SUCCEEDED,
    agent="payment",
    finished_at=AT,
)
REQUEST = AgentRequest(
    task_id="ord-1",
    workflow="story",
    step="charge",
    operation=PERFORM,
    lock="lock-1",
    idempotency_key=KEY,
    attempt=1,
    complete_by=AT + 1,
    input={},
    results={},
    sent_at=AT,
)


def test_a_reply_acts_while_its_step_waits_for_it() -> None:
    assert reply_matters(task({"charge": AT_WORK}), REPLY)[0] is ResendVerdict.ACTS
    late_success = replace(REPLY, lock="lock-0")
    assert reply_matters(task({"charge": AT_WORK}), late_success)[0] is ResendVerdict.ACTS


def test_a_success_of_a_step_that_has_failed_acts_until_its_effect_is_known_to_stand() -> None:
    failed = changed_step(AT_WORK, process_state=ProcessState.ERROR, locked_by=None)
    verdict, reason = reply_matters(task({"charge": failed}), REPLY)
    assert verdict is ResendVerdict.ACTS
    assert "its effect stands" in reason
    known = replace(failed, effect=Effect.STANDS)
    assert reply_matters(task({"charge": known}), REPLY)[0] is ResendVerdict.PASSED_OVER
    refused = replace(REPLY, outcome=Outcome.PERMANENT)
    assert reply_matters(task({"charge": failed}), refused)[0] is ResendVerdict.PASSED_OVER


@pytest.mark.parametrize(
    ("reply", "record", "why"),
    [
        (replace(REPLY, lock="lock-0", outcome=Outcome.PERMANENT), AT_WORK, "attempt"),
        (replace(REPLY, idempotency_key="other"), AT_WORK, "begun again since, under another key"),
        (replace(REPLY, operation="undo"), AT_WORK, "nothing waits for it"),
        (
            REPLY,
            changed_step(AT_WORK, process_state=ProcessState.PROCESSED),
            "nothing waits for it",
        ),
        (replace(REPLY, step="pick"), AT_WORK, "has not tried pick"),
    ],
)
def test_a_reply_that_nothing_waits_for_is_passed_over(
    reply: Reply, record: StepRecord, why: str
) -> None:
    verdict, reason = reply_matters(task({"charge": record}), reply)
    assert verdict is ResendVerdict.PASSED_OVER
    assert why in reason


def test_what_is_about_a_task_that_is_gone_is_passed_over() -> None:
    assert reply_matters(None, REPLY)[0] is ResendVerdict.PASSED_OVER
    assert request_matters(None, REQUEST, AT)[0] is ResendVerdict.PASSED_OVER


def test_a_request_acts_until_its_time_or_its_attempt_is_over() -> None:
    at_work = task({"charge": AT_WORK})
    assert request_matters(at_work, REQUEST, AT)[0] is ResendVerdict.ACTS
    late = request_matters(at_work, REQUEST, REQUEST.complete_by)
    assert late == (ResendVerdict.PASSED_OVER, "its complete-by has passed: the agent ignores it")
    over = request_matters(task({"charge": changed_step(AT_WORK, locked_by="lock-2")}), REQUEST, AT)
    assert over[0] is ResendVerdict.PASSED_OVER


@pytest.mark.parametrize(
    ("body", "order"),
    [
        ('{"orderId": "ord-1"}', "ord-1"),
        ('{"taskId": "ord-1"}', "ord-1"),
        ('{"orderId": "\\u001b[31m"}', None),
        ('{"orderId": 7}', None),
        ("[]", None),
        ("{not json", None),
    ],
)
def test_the_order_is_named_where_it_can_be_known(body: str, order: str | None) -> None:
    assert order_of(body) == order
