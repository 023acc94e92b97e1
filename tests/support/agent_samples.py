"""A request to an agent, a clock moved by hand, and ways in which a function can end."""

from collections.abc import Callable
from datetime import timedelta

from roundsman import Agent, Compensation, Step
from roundsman.agents.agent import Answer, StepRequest
from roundsman.agents.attempt import Report
from roundsman.agents.guard import Guard, NoGuard
from roundsman.agents.heartbeat import SendNow
from roundsman.wire.messages import AgentRequest, Reply, read_reply

NOW = 1_800_000_000_000

charge_card = Step(
    name="charge_card",
    agent="payment",
    complete_within=timedelta(seconds=60),
    compensation=Compensation(),
)


class Clock:
    """The present, moved by hand, and by what sleeps."""

    def __init__(self) -> None:
        self.now = NOW
        self.slept: list[float] = []

    def __call__(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += round(seconds * 1_000)


def request(**changes: object) -> AgentRequest:
    fields: dict[str, object] = {
        "task_id": "ord-1",
        "workflow": "order_fulfilment",
        "step": "charge_card",
        "operation": "perform",
        "lock": "7f3a-0c1d.2",
        "idempotency_key": "ord-1/charge_card/perform",
        "attempt": 2,
        "complete_by": NOW + 60_000,
        "input": {"orderId": "ord-1", "total": "39.80"},
        "results": {"reserve_stock": {"reservationId": "r-1"}},
        "sent_at": NOW - 100,
        "outcome_unknown": True,
    }
    return AgentRequest(**{**fields, **changes})  # type: ignore[arg-type]  # as the caller means it


def ask(
    agent: Agent,
    clock: Clock,
    asked: AgentRequest | None = None,
    *,
    function_ends_at: int = NOW + 300_000,
    guard: Guard | None = None,
    report: Report = lambda _: None,
    send_now: SendNow = lambda _: None,
    jitter: float = 0.5,
) -> Answer:
    return agent.answer(
        asked or request(),
        clock=clock,
        function_ends_at=function_ends_at,
        guard=guard or NoGuard(),
        report=report,
        send_now=send_now,
        sleep=clock.sleep,
        jitter=lambda: jitter,
    )


def reply(
    agent: Agent,
    clock: Clock,
    asked: AgentRequest | None = None,
    *,
    function_ends_at: int = NOW + 300_000,
    guard: Guard | None = None,
    report: Report = lambda _: None,
    jitter: float = 0.5,
) -> Reply:
    """The reply, as its reader sees it."""
    answer = ask(
        agent,
        clock,
        asked,
        function_ends_at=function_ends_at,
        guard=guard,
        report=report,
        jitter=jitter,
    )
    assert isinstance(answer, Reply)
    return read_reply(answer.body())


def returning(value: object) -> Callable[[StepRequest], object]:
    return lambda _: value


def raising(error: BaseException) -> Callable[[StepRequest], object]:
    def function(_: StepRequest) -> object:
        raise error

    return function
