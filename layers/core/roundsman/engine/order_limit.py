"""Orders that wait for their turn, because the limit of their workflow lets no more be under way.

Each step of such an order that could begin is parked until then, as by a hold: it waits without a
lock, and the order's time stands still. The end of another order wakes it
(`roundsman.scheduler.order_limits`). In case that is lost, it looks again itself, after one to two
hours and later each day. Undos do not wait.
"""

import hmac
from collections.abc import Callable
from dataclasses import replace

from roundsman.definition.expressions import evaluate
from roundsman.definition.plan import LimitPlan, StepPlan
from roundsman.engine.agent_holds import next_check
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.step_values import step_values
from roundsman.engine.transitions import StepEvent
from roundsman.model.events import InspectAt, StartTask, WakeOrder
from roundsman.model.instants import second
from roundsman.model.json import Json, canonical_json
from roundsman.model.order_limit import LOOKS_AGAIN_IN, waits_for_turn
from roundsman.model.search import value_text
from roundsman.model.situations import TURN, Parked

KEY_DIGITS = 32
"""The hexadecimal digits of a key: two values of one stack do not have the same."""


def limit_key(
    workflow: str, limit: LimitPlan, content: Json, secret: Callable[[], bytes]
) -> str | None:
    """Return the key under which the limit counts an order with this content.

    It is a hash under the secret of the stack. None if the order has no value: null, or an empty
    text. Such an order is not limited. Raises ValueError if the expression cannot be evaluated.
    """
    value = evaluate("the limit's by", limit.by, {"input": content})
    text = value_text(value) or (canonical_json(value) if value not in (None, "") else "")
    if not text:
        return None
    named = canonical_json([workflow, limit.by, text]).encode()
    return hmac.digest(secret(), named, "sha256").hex()[:KEY_DIGITS]


def begin_turn(context: DecisionContext) -> None:
    """Let the steps that wait for the turn begin, if it is the order's turn or needs none."""
    decision, turn = context.decision, context.turn
    if decision.ending is not None:
        return
    if turn is not None and turn.wakes is not None:
        decision.action(WakeOrder(turn.wakes))
    if context.is_limited:
        if turn is None or not turn.free:
            return
        decision.task = replace(decision.task, has_turn=True)
        decision.note(turn.why)
    for name, record in list(decision.steps.items()):
        if waits_for_turn(record):
            decision.requeue(name, StepEvent.RETRY_DUE)


def await_turn(context: DecisionContext, step: StepPlan) -> None:
    """Park a step that could begin until it is the order's turn.

    If nobody has looked whether it is, a Start is asked for, which does.
    """
    turn = context.turn
    if turn is None:
        context.decision.action(StartTask())
    again_in = LOOKS_AGAIN_IN if turn is None else turn.again_in
    _park(context, step, "waits for its turn" if turn is None else turn.why, again_in)


def look_for_turn(context: DecisionContext, step: StepPlan, wait: Parked) -> None:
    """Ask for a Start, which begins the step if it is the order's turn."""
    context.decision.action(StartTask())
    if wait.not_before <= context.now:
        _park(context, step, "looks whether it is its turn", None)


def _park(context: DecisionContext, step: StepPlan, why: str, again_in: int | None) -> None:
    decision, now = context.decision, context.now
    record = decision.step(step.name)
    since = now if record.held_since is None else record.held_since
    at = next_check(context, step, now)
    if again_in is not None:
        at = min(at, now + again_in)
    decision.move(
        step.name,
        StepEvent.HELD,
        Parked(not_before=at, claim_by=decision.start_by(at), since=since, held_for=TURN),
        step_values(acts_until=decision.acts_until(step.name), uncounted_timeouts=0),
    )
    decision.action(InspectAt(at))
    decision.note(f"{step.name}: {why}; checked again at {second(at)}")
