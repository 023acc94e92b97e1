"""A remote service on loopback, the agent that calls it, and the task whose step it does.

What the agent answers is given to the machine, so that a test sees the step's record as a person
would. All time is the task's own clock: the agent's, its waits', and the client's.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from roundsman import Agent, Compensation, DidNotHappen, Happened, Json, PermanentError, Retry, Step
from roundsman.agents.agent import Answer, StepRequest
from roundsman.agents.guard import Guard, NoGuard
from roundsman.agents.http import RemoteService
from roundsman.engine.requests import request_for
from roundsman.model.events import Decision
from roundsman.model.states import ProcessState
from roundsman.model.task import StepError, StepRecord
from roundsman.wire.messages import AgentRequest, Reply, read_reply
from tests.support.machine_world import World, plan
from tests.support.remote_server import PLENTY, SECRET

charge_card = Step(
    name="charge_card",
    agent="payment",
    complete_within=PLENTY,
    retry=Retry(max_attempts=5, first_delay=timedelta(seconds=2)),
    compensation=Compensation(fences_late_performs=True),
)
ORDER: Json = {"orderId": "ord-1", "total": "39.80", "paymentToken": SECRET}
STEP = "charge_card"


@dataclass
class Partner:
    """One step of one task, at the service at `url`; `probed` binds a probe as well.

    `afterwards` is called when a charge was answered, before its function returns.
    """

    url: str
    probed: bool = False
    afterwards: Callable[[], object] = lambda: None
    guard: Guard = field(default_factory=NoGuard)
    world: World = field(default_factory=lambda: World(plan(charge_card), order=ORDER))
    slept: list[float] = field(default_factory=list)
    performs: int = 0
    agent: Agent = field(init=False)
    service: RemoteService = field(init=False)

    def __post_init__(self) -> None:
        self.service = RemoteService(
            self.url,
            now=lambda: datetime.fromtimestamp(self.world.now / 1_000, UTC),
            monotonic=lambda: self.world.now / 1_000,
        )
        self.agent = Agent("payment")
        self.agent.performs(charge_card)(self.charge)
        self.agent.compensates(charge_card)(self.refund)
        if self.probed:
            self.agent.probes(charge_card)(self.find)

    # --- the agent's functions ---------------------------------------------------------------

    def charge(self, request: StepRequest) -> Json:
        self.performs += 1
        found = self.post_charge(request.idempotency_key, "39.80", request.time_left())
        self.afterwards()
        return found

    def post_charge(self, key: str, amount: str, time_left: timedelta = PLENTY) -> dict[str, Json]:
        return self.service.call(
            "POST",
            "charges",
            key=key,
            body={"orderId": "ord-1", "amount": amount, "currency": "EUR", "token": SECRET},
            time_left=time_left,
            returns=("chargeId",),
        )

    def refund(self, request: StepRequest) -> None:
        self.service.call(
            "POST",
            "refunds",
            key=request.idempotency_key,
            body={"chargeKey": request.perform_key},
            time_left=request.time_left(),
        )

    def find(self, request: StepRequest) -> Happened | DidNotHappen:
        try:
            found = self.service.call(
                "GET",
                "charges",
                request.perform_key,
                key=request.idempotency_key,
                time_left=request.time_left(),
                ok=(200,),
                returns=("chargeId",),
            )
        except PermanentError as error:
            if error.error_type == "NotCharged":
                return DidNotHappen()
            raise
        return Happened(found)

    # --- attempts ----------------------------------------------------------------------------

    def request(self) -> AgentRequest:
        """The request of the step's next claim."""
        self.world.start()
        return request_for(self.world.plan, self.world.task, STEP, ORDER, self.world.now)

    def answer(self, request: AgentRequest) -> Answer:
        """What the agent says, in a function that lives as long as it must."""
        return self.agent.answer(
            request,
            clock=lambda: self.world.now,
            function_ends_at=request.complete_by + 10_000,
            guard=self.guard,
            sleep=self._sleep,
            jitter=lambda: 0.5,
        )

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.world.wait(seconds)

    def hear(self, answer: Answer) -> Decision:
        """Give the machine the agent's reply, as its reader sees it."""
        assert isinstance(answer, Reply)
        return self.world.apply(read_reply(answer.body()).event(self.world.claimant()))

    def attempt(self) -> Decision:
        """One attempt, from its claim to what the machine makes of its answer."""
        return self.hear(self.answer(self.request()))

    def record(self) -> StepRecord:
        return self.world.record(STEP)

    # --- what is seen of it ------------------------------------------------------------------

    def fails(self, sentence: str, kind: str = "TransientError", wait: float | None = None) -> None:
        """The attempt fails for now, for this reason, and is made again: after `wait` seconds,
        where the service asked for that."""
        decision = self.attempt()
        record = self.record()
        assert record.error == StepError(kind, sentence)
        assert (record.process_state, record.failure_count) == (ProcessState.PENDING, 1)
        assert record.outcome_unknown
        assert f"charge_card: attempt 1 of 5 failed: {kind}: {sentence}; retried at" in (
            decision.reason
        )
        assert SECRET not in decision.reason
        assert record.not_before is not None
        if wait is not None:
            assert record.not_before == self.world.now + round(wait * 1_000)

    def fails_for_now(self, kind: str, sentence: str) -> None:
        """As `fails`, by an error that a person must repair."""
        decision = self.attempt()
        record = self.record()
        assert record.error == StepError(kind, sentence, unexpected=True)
        assert (record.process_state, record.failure_count) == (ProcessState.PENDING, 1)
        assert record.outcome_unknown
        assert SECRET not in decision.reason

    def fails_for_good(self, kind: str, sentence: str) -> None:
        """The step is given up at once, and undone as its plan says or kept for a person."""
        decision = self.attempt()
        record = self.record()
        assert record.error == StepError(kind, sentence)
        assert record.process_state is ProcessState.ERROR
        assert f"charge_card: failed for good: {kind}: {sentence}" in decision.reason
        assert SECRET not in decision.reason

    def succeeds(self) -> None:
        decision = self.attempt()
        assert decision.reason == "charge_card: processed"
        assert self.record().process_state is ProcessState.PROCESSED
        assert self.record().error is None
