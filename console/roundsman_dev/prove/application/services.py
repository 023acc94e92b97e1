"""The services of a proof, in the process of the agent that calls them.

Each is its part of the ledger, and fails as the order's treatment says. A call that fails here
fails for the agent as a call over the network would.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache

import boto3

from roundsman import DidNotHappen, Happened, Json, PermanentError, StepRequest, TransientError
from roundsman_dev.prove.application.ledger import Call, EffectLedger, Fenced
from roundsman_dev.prove.application.orders import MARKER, STEPS, Treatment, order_of
from roundsman_dev.prove.application.workflows import ATTEMPT

SLOW = 1.5
"""How long, in seconds, a slow service takes."""

HANGS = (ATTEMPT + timedelta(seconds=4)).total_seconds()
"""How long, in seconds, a service hangs: until the agent's attempt is over."""

LATE = (3 * ATTEMPT + timedelta(seconds=5)).total_seconds()
"""How long, in seconds, until an effect comes that is too late: the step was performed by another
attempt and undone before, and the function still runs."""

RUNS_OUT = 60.0
"""Longer, in seconds, than a function of an agent may run."""

BUSY_CALLS = 2
"""How many calls of a busy service fail."""

EXIT_STATUS = 1


@dataclass(frozen=True)
class ProofServices:
    """The services that one agent calls. Time passes by `sleep` (seconds), a process by `leave`."""

    ledger: EffectLedger
    agent: str
    sleep: Callable[[float], None] = time.sleep
    leave: Callable[[int], object] = os._exit

    def perform(self, request: StepRequest) -> Json:
        """Let the effect of a step come about, once for its key."""
        order = order_of(request.task_id)
        if order is None:
            raise PermanentError("NotOfAProof", "the id of the order has no number")
        key, at = request.idempotency_key, request.clock()
        calls = self.ledger.note(
            Call(
                key=key,
                agent=self.agent,
                digest=digest(request),
                at=at,
                is_late=at > request.complete_by,
            )
        )
        refusal = order.refusal(request.step, self.agent)
        if refusal is not None:
            raise PermanentError(refusal, "as the treatment of the order says")
        struck = order.treatment if request.step == order.struck else Treatment.ANSWERED
        if calls == 1:
            self._before(struck)
        elif struck is Treatment.BUSY and calls <= BUSY_CALLS:
            raise TransientError("the service is busy", cause="answered 503")
        try:
            self.ledger.take_effect(key, request.clock())
        except Fenced as error:
            raise PermanentError("Undone", "the key was undone") from error
        if calls == 1:
            self._after(struck)
        return _result(key)

    def _before(self, treatment: Treatment) -> None:
        match treatment:
            case Treatment.SLOW:
                self.sleep(SLOW)
            case Treatment.HANGS:
                self.sleep(HANGS)
            case Treatment.REFUSED_LATE:
                self.sleep(LATE)
            case Treatment.RUNS_OUT:
                self.sleep(RUNS_OUT)
            case Treatment.BUSY:
                raise TransientError("the service is busy", cause="answered 503")
            case _:
                return

    def _after(self, treatment: Treatment) -> None:
        if treatment is Treatment.LOST:
            raise TransientError("the answer was lost", cause="no answer")
        if treatment is Treatment.EXITS:
            self.leave(EXIT_STATUS)

    def undo(self, request: StepRequest) -> None:
        """Undo the effect of a step, if it came about, and refuse its key from now on."""
        calls = self.ledger.undo(request.perform_key, request.clock())
        order = order_of(request.task_id)
        if order is None or order.treatment is not Treatment.REFUSED or calls > 1:
            return
        if request.step == STEPS[order.workflow][0]:
            raise TransientError("the answer was lost", cause="no answer")

    def probe(self, request: StepRequest) -> Happened | DidNotHappen:
        """Look up whether the effect of the perform stands."""
        key = request.perform_key
        return Happened(_result(key)) if self.ledger.stands(key) else DidNotHappen()


def _result(key: str) -> dict[str, Json]:
    return {"id": key, "receipt": MARKER}


def digest(request: StepRequest) -> str:
    """Return a hash of what a request asks for."""
    asked = {
        "input": dict(request.input),
        "item": request.item,
        "results": dict(request.results),
    }
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def services(agent: str) -> ProofServices:
    """Return the services of an agent, whose address ends with the name of the ledger."""
    table = os.environ["SERVICE_URL"].rpartition("/")[2]
    return ProofServices(EffectLedger(boto3.client("dynamodb"), table), agent)
