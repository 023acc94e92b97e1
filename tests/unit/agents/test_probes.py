"""Probes: "did it happen?" is asked before anything is repeated or undone that may have."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeVar

import pytest

from roundsman import (
    Agent,
    Busy,
    Compensation,
    CredentialRefused,
    DefinitionError,
    DidNotHappen,
    Happened,
    PermanentError,
    StepRequest,
    TransientError,
    WrongAddress,
)
from roundsman.agents.agent import UNGUARDED
from roundsman.agents.guard import Guard
from roundsman.model.events import Outcome
from roundsman.model.task import Effect
from roundsman.wire.messages import AgentRequest, Reply
from tests.support.agent_samples import Clock, charge_card, raising, reply, request, returning
from tests.support.guards import FakeGuard, Terms

T = TypeVar("T")
KEY = "ord-1/charge_card/perform"
FENCED = replace(charge_card, compensation=Compensation(fences_late_performs=True))
UNDO = request(
    operation="undo", idempotency_key="ord-1/charge_card/undo", perform_key=KEY, results={}
)

YES, NO = Happened({"chargeId": "c-1"}), DidNotHappen()


class Payment:
    """An agent with a perform, a compensation and a probe; notes what was called, with what."""

    def __init__(self, clock: Clock, probe: object, perform: object = "done") -> None:
        self.clock = clock
        self.called: list[tuple[str, StepRequest]] = []
        self.ends: dict[str, list[object]] = {
            "probe": _listed(probe),
            "perform": _listed(perform),
            "undo": ["undone"],
        }

    def bound(self, name: str) -> Callable[[StepRequest], object]:
        def function(asked: StepRequest) -> object:
            self.called.append((name, asked))
            ends = self.ends[name]
            end = ends.pop(0) if len(ends) > 1 else ends[0]
            if isinstance(end, BaseException):
                raise end
            return end

        return function

    def says(
        self,
        asked: AgentRequest,
        *,
        fenced: bool = False,
        report: Callable[[Exception], None] = lambda _: None,
        guard: Guard = UNGUARDED,
    ) -> Reply:
        agent, step = Agent("payment"), FENCED if fenced else charge_card
        agent.performs(step)(self.bound("perform"))
        agent.compensates(step)(self.bound("undo"))
        agent.probes(step)(self.bound("probe"))
        return reply(agent, self.clock, asked, report=report, guard=guard)

    @property
    def order(self) -> list[str]:
        return [name for name, _ in self.called]


def _listed(ends: object) -> list[object]:
    return ends if isinstance(ends, list) else [ends]


def test_a_first_attempt_is_not_probed(clock: Clock) -> None:
    payment = Payment(clock, YES)
    assert payment.says(request(outcome_unknown=False)).result == "done"
    assert payment.order == ["perform"]


def test_a_perform_that_happened_before_is_not_repeated_and_its_result_is_the_probes(
    clock: Clock,
) -> None:
    payment = Payment(clock, YES)
    answer = payment.says(request())
    assert (answer.outcome, answer.result) == (Outcome.SUCCEEDED, {"chargeId": "c-1"})
    assert payment.order == ["probe"]
    assert payment.called[0][1].perform_key == KEY


def test_a_perform_that_did_not_happen_is_done_and_does_not_count_as_a_repeat(
    clock: Clock,
) -> None:
    payment = Payment(clock, NO)
    assert payment.says(request()).result == "done"
    assert payment.order == ["probe", "perform"]
    assert not payment.called[1][1].outcome_unknown


# The service may have forgotten the key: only the probe is asked.


def test_a_probe_that_outlives_the_key_decides_that_it_happened(clock: Clock) -> None:
    payment = Payment(clock, YES)
    answer = payment.says(request(probe_only=True))
    assert (answer.outcome, answer.result) == (Outcome.SUCCEEDED, {"chargeId": "c-1"})
    assert payment.order == ["probe"]


@pytest.mark.parametrize("unknown", [True, False])
def test_what_did_not_happen_is_not_performed_under_a_key_that_may_be_forgotten(
    clock: Clock, unknown: bool
) -> None:
    payment = Payment(clock, NO)
    answer = payment.says(request(probe_only=True, outcome_unknown=unknown))
    assert (answer.outcome, answer.effect) == (Outcome.HELD, Effect.NONE)
    assert (answer.retry_after, answer.outcome_unknown) == (0, False)
    assert payment.order == ["probe"]


def test_a_probe_that_fails_lets_nothing_be_performed_under_a_forgotten_key(clock: Clock) -> None:
    payment = Payment(clock, [TransientError("503"), TransientError("503"), NO])
    answer = payment.says(request(probe_only=True))
    assert (answer.outcome, answer.effect) == (Outcome.HELD, Effect.NONE)
    payment = Payment(clock, TransientError("503"))
    assert payment.says(request(probe_only=True)).outcome is Outcome.TRANSIENT
    assert payment.order == ["probe"] * 3


def test_code_without_the_probe_does_nothing_under_a_forgotten_key(clock: Clock) -> None:
    agent = Agent("payment")
    agent.performs(charge_card)(returning("done"))
    answer = reply(agent, clock, request(probe_only=True))
    assert answer.error is not None
    assert (answer.outcome, answer.error.type) == (Outcome.TRANSIENT, "NoHandler")
    assert answer.error.unexpected


def test_a_probe_that_is_declared_to_outlive_the_key_must_be_bound() -> None:
    declared = replace(
        charge_card, key_lifetime=timedelta(days=1), probe_outlives_key=True, compensation=None
    )
    agent = Agent("payment")
    agent.performs(declared)(returning("done"))
    with pytest.raises(DefinitionError, match="finds the effect without the key, but has no probe"):
        agent.check_functions()
    agent.probes(declared)(returning(NO))
    agent.check_functions()


def test_a_try_that_may_have_happened_is_probed_before_the_next(clock: Clock) -> None:
    payment = Payment(clock, YES, TransientError("the answer was lost"))
    answer = payment.says(request(outcome_unknown=False))
    assert (answer.outcome, answer.result) == (Outcome.SUCCEEDED, {"chargeId": "c-1"})
    assert payment.order == ["perform", "probe"]


def test_each_failed_try_is_probed_anew(clock: Clock) -> None:
    payment = Payment(clock, [NO, NO, YES], TransientError("the answer was lost"))
    assert payment.says(request()).result == {"chargeId": "c-1"}
    assert payment.order == ["probe", "perform", "probe", "perform", "probe"]


def test_a_busy_service_did_nothing_and_is_not_probed(clock: Clock) -> None:
    payment = Payment(clock, YES, [Busy("429"), "done"])
    assert payment.says(request(outcome_unknown=False)).result == "done"
    assert payment.order == ["perform", "perform"]


def test_a_probe_that_fails_is_tried_again_and_then_the_reason_says_that_it_was_the_probe(
    clock: Clock,
) -> None:
    payment = Payment(clock, [TransientError("503"), NO])
    assert payment.says(request()).result == "done"
    assert payment.order == ["probe", "probe", "perform"]
    payment = Payment(clock, TransientError("503"))
    answer = payment.says(request())
    assert answer.outcome is Outcome.TRANSIENT
    assert answer.error is not None
    assert answer.error.type == "TransientError"
    assert answer.error.message == "the probe of charge_card: 503 (3 tries)"
    assert payment.order == ["probe"] * 3


def test_a_probe_that_asks_for_a_long_wait_gives_the_step_back(clock: Clock) -> None:
    payment = Payment(clock, Busy("429", retry_after=timedelta(seconds=30)))
    assert payment.says(request()).retry_after == 30_000
    assert payment.order == ["probe"]


@pytest.mark.parametrize("operation", ["perform", "undo"])
@pytest.mark.parametrize(
    ("answer", "error_type", "words"),
    [
        (PermanentError("Forbidden", "403"), "Forbidden", "the probe of charge_card: 403"),
        (
            ValueError("tok_visa"),
            "ValueError",
            "the probe of charge_card: unexpected error; see the log of the payment agent",
        ),
        (
            None,
            "ProbeUnclear",
            "the probe of charge_card returned a NoneType; it must return Happened(result) or "
            "DidNotHappen()",
        ),
        (
            True,
            "ProbeUnclear",
            "the probe of charge_card returned a bool; it must return Happened(result) or "
            "DidNotHappen()",
        ),
        (
            Happened(object()),  # type: ignore[arg-type]  # the mistake that is meant
            "ResultNotJson",
            "the probe of charge_card: result is an object, which is not JSON; return text, finite "
            "numbers, true, false, None, lists, dicts",
        ),
    ],
    ids=["refused", "unexpected", "none", "bool", "not JSON"],
)
def test_a_probe_that_cannot_know_proves_nothing_so_nothing_is_done_and_nothing_given_up(
    clock: Clock, operation: str, answer: object, error_type: str, words: str
) -> None:
    payment = Payment(clock, answer)
    outcome = payment.says(
        replace(UNDO if operation == "undo" else request(), outcome_unknown=True)
    )
    assert outcome.outcome is Outcome.TRANSIENT
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.message) == (error_type, words)
    assert payment.order == ["probe"]


CANNOT_SAY = {
    "405": PermanentError("Http405", "GET answered 405"),
    "no such path": WrongAddress("the address answers 405 to GET without the service's error"),
    "a credential without the right to read": CredentialRefused("403"),
    "a defect": KeyError("chargeId"),
    "neither answer": True,
    "a result that is not JSON": Happened(object()),  # type: ignore[arg-type]  # the mistake meant
}


@pytest.mark.parametrize("why", CANNOT_SAY)
def test_a_probe_that_cannot_be_asked_strands_no_undo_of_a_service_that_fences(
    clock: Clock, why: str
) -> None:
    reported: list[Exception] = []
    payment = Payment(clock, CANNOT_SAY[why])
    answer = payment.says(UNDO, fenced=True, report=reported.append)
    assert answer.outcome is Outcome.SUCCEEDED
    assert payment.order == ["probe", "undo"]
    asked = payment.called[1][1]
    assert asked.outcome_unknown
    assert asked.results == {}
    assert len(reported) == 1, "whoever wrote the probe finds it in the log"


def test_a_probe_that_could_not_be_asked_is_not_asked_again_within_the_attempt(
    clock: Clock,
) -> None:
    payment = Payment(clock, PermanentError("Http405"))
    payment.ends["undo"] = [TransientError("503"), None]
    assert payment.says(UNDO, fenced=True).outcome is Outcome.SUCCEEDED
    assert payment.order == ["probe", "undo", "undo"]
    again = payment.says(UNDO, fenced=True)
    assert again.outcome is Outcome.SUCCEEDED
    assert payment.order[3:] == ["probe", "undo"], "the next attempt asks"


def test_the_failure_of_such_an_undo_is_not_reported_as_the_probes(clock: Clock) -> None:
    payment = Payment(clock, PermanentError("Http405"))
    payment.ends["undo"] = [PermanentError("Refused", "no such charge")]
    answer = payment.says(UNDO, fenced=True)
    assert answer.outcome is Outcome.PERMANENT
    assert answer.error is not None
    assert answer.error.message == "no such charge"


@pytest.mark.parametrize(
    "weather",
    [TransientError("503"), OSError("reset"), Busy("429", retry_after=timedelta(hours=1))],
)
def test_while_a_probe_fails_for_now_the_undo_of_a_service_that_fences_waits_for_its_word(
    clock: Clock, weather: Exception
) -> None:
    payment = Payment(clock, weather)
    answer = payment.says(UNDO, fenced=True)
    assert answer.outcome is Outcome.TRANSIENT
    assert set(payment.order) == {"probe"}


def test_a_perform_of_a_service_that_fences_waits_for_its_probe_all_the_same(
    clock: Clock,
) -> None:
    payment = Payment(clock, PermanentError("Http405"))
    answer = payment.says(replace(request(), outcome_unknown=True), fenced=True)
    assert answer.outcome is Outcome.TRANSIENT
    assert payment.order == ["probe"]


@pytest.mark.parametrize("error", [WrongAddress("404"), CredentialRefused("401")])
def test_a_perform_whose_probe_is_not_served_is_not_repeated_and_a_person_gets_an_alert(
    clock: Clock, error: TransientError
) -> None:
    payment = Payment(clock, error)
    answer = payment.says(replace(request(), outcome_unknown=True), fenced=True)
    assert answer.outcome is Outcome.TRANSIENT
    assert answer.error is not None
    assert answer.error.unexpected
    assert answer.error.message == f"the probe of charge_card: {error} (3 tries)"
    assert set(payment.order) == {"probe"}


@dataclass
class Counting(FakeGuard):
    """A guard that notes the errors of the calls that it sees."""

    errors: list[Exception] = field(default_factory=list)

    def around(self, function: Callable[[], T], terms: Terms) -> T:
        try:
            return function()
        except Exception as error:
            self.errors.append(error)
            raise


def test_a_probe_that_an_undo_does_not_need_is_no_failure_for_the_breaker(clock: Clock) -> None:
    """Else each undo would open a half-open circuit again before it calls the service."""
    guard = Counting()
    payment = Payment(clock, CredentialRefused("403"))
    answer = payment.says(UNDO, fenced=True, guard=guard)
    assert answer.outcome is Outcome.SUCCEEDED
    assert guard.errors == []
    payment.says(UNDO, guard=guard)
    assert [type(error) for error in guard.errors] == [CredentialRefused] * 3


def test_an_undo_of_what_is_known_is_not_probed(clock: Clock) -> None:
    payment = Payment(clock, NO)
    payment.says(replace(UNDO, outcome_unknown=False))
    assert payment.order == ["undo"]


@pytest.mark.parametrize("fenced", [True, False])
def test_an_undo_of_what_happened_is_given_its_result(clock: Clock, fenced: bool) -> None:
    payment = Payment(clock, YES)
    answer = payment.says(UNDO, fenced=fenced)
    assert answer.outcome is Outcome.SUCCEEDED
    assert payment.order == ["probe", "undo"]
    given = payment.called[1][1]
    assert not given.outcome_unknown
    assert given.results == {"charge_card": {"chargeId": "c-1"}}
    assert (given.idempotency_key, given.perform_key) == ("ord-1/charge_card/undo", KEY)


def test_where_nothing_happened_and_nothing_is_fenced_there_is_nothing_to_undo(
    clock: Clock,
) -> None:
    payment = Payment(clock, NO)
    assert payment.says(UNDO).outcome is Outcome.SUCCEEDED
    assert payment.order == ["probe"]


def test_where_nothing_happened_the_undo_of_a_fencing_service_still_spends_the_key(
    clock: Clock,
) -> None:
    payment = Payment(clock, NO)
    assert payment.says(UNDO, fenced=True).outcome is Outcome.SUCCEEDED
    assert payment.order == ["probe", "undo"]
    assert payment.called[1][1].outcome_unknown  # a perform may still be on its way


@pytest.mark.parametrize("answer", [YES, NO], ids=["happened", "did not"])
def test_an_undo_that_is_tried_again_is_not_probed_again(clock: Clock, answer: object) -> None:
    payment = Payment(clock, answer)
    payment.ends["undo"] = [TransientError("503"), None]
    assert payment.says(UNDO, fenced=True).outcome is Outcome.SUCCEEDED
    assert payment.order == ["probe", "undo", "undo"]
    first, second = (asked.outcome_unknown for name, asked in payment.called if name == "undo")
    assert first is second is (answer is NO)


def test_without_a_probe_a_repeat_is_called_and_knows_that_it_is_one(clock: Clock) -> None:
    agent, seen = Agent("payment"), list[bool]()
    agent.performs(charge_card)(lambda asked: seen.append(asked.outcome_unknown))
    reply(agent, clock, request())
    assert seen == [True]


def test_a_probe_is_bound_like_every_other_function() -> None:
    agent = Agent("payment")
    agent.probes(charge_card)(returning(NO))
    with pytest.raises(DefinitionError, match="step 'charge_card' has two functions for probe"):
        agent.probes(charge_card)(returning(NO))
    with pytest.raises(DefinitionError, match="belongs to agent payment; bind it there"):
        Agent("inventory").probes(charge_card)
    with pytest.raises(DefinitionError, match="must be a Step"):
        agent.probes("charge_card")  # type: ignore[arg-type]  # the mistake that is meant


def test_an_agent_with_a_probe_and_nothing_else_says_that_a_function_is_missing(
    clock: Clock,
) -> None:
    agent = Agent("payment")
    agent.probes(charge_card)(raising(AssertionError()))
    answer = reply(agent, clock)
    assert answer.error is not None
    assert answer.error.type == "NoHandler"


# --- Verified undo -----------------------------------------------------------------------------

VERIFIED = replace(charge_card, compensation=Compensation(verify=True))
KNOWN_UNDO = replace(UNDO, outcome_unknown=False)


def verified(payment: Payment, asked: AgentRequest = KNOWN_UNDO) -> Reply:
    agent = Agent("payment")
    agent.performs(VERIFIED)(payment.bound("perform"))
    agent.compensates(VERIFIED)(payment.bound("undo"))
    agent.probes(VERIFIED)(payment.bound("probe"))
    return reply(agent, payment.clock, asked, report=lambda _: None, guard=UNGUARDED)


def test_a_verified_undo_is_done_when_the_probe_says_that_nothing_stands(clock: Clock) -> None:
    payment = Payment(clock, NO)
    assert verified(payment).outcome is Outcome.SUCCEEDED
    assert payment.order == ["undo", "probe"]


def test_an_undo_after_which_the_effect_stands_has_failed_with_that_reason(clock: Clock) -> None:
    payment = Payment(clock, YES)
    answer = verified(payment)
    assert answer.outcome is Outcome.TRANSIENT
    assert answer.error is not None
    assert answer.error.type == "StillStands"
    assert "the probe of charge_card does not say that nothing stands" in answer.error.message
    assert payment.order == ["undo", "probe"] * 3, "the undo is tried again under its key"


def test_an_effect_that_is_gone_a_moment_later_is_undone(clock: Clock) -> None:
    payment = Payment(clock, [YES, NO])
    assert verified(payment).outcome is Outcome.SUCCEEDED
    assert payment.order == ["undo", "probe"] * 2


@pytest.mark.parametrize("end", [TransientError("503"), PermanentError("Http405"), "yes"])
def test_while_the_probe_cannot_say_the_undo_is_not_done(clock: Clock, end: object) -> None:
    payment = Payment(clock, end)
    assert verified(payment).outcome is Outcome.TRANSIENT
    assert payment.order[:2] == ["undo", "probe"]


def test_an_undo_that_is_refused_after_its_probe_has_failed_is_no_failure_of_the_probe(
    clock: Clock,
) -> None:
    payment = Payment(clock, TransientError("503"))
    payment.ends["undo"] = ["undone", PermanentError("TooLate", "the batch is closed")]
    answer = verified(payment)
    assert answer.outcome is Outcome.PERMANENT
    assert answer.error is not None
    assert answer.error.message == "the batch is closed (2 tries)"
    assert payment.order == ["undo", "probe", "undo"]


def test_a_perform_is_not_verified_and_neither_is_an_undo_without_it(clock: Clock) -> None:
    payment = Payment(clock, YES)
    assert verified(payment, request(outcome_unknown=False)).outcome is Outcome.SUCCEEDED
    assert payment.says(KNOWN_UNDO).outcome is Outcome.SUCCEEDED
    assert payment.order == ["perform", "undo"]


def test_an_unknown_outcome_is_probed_before_and_after(clock: Clock) -> None:
    payment = Payment(clock, [YES, NO])
    assert verified(payment, UNDO).outcome is Outcome.SUCCEEDED
    assert payment.order == ["probe", "undo", "probe"]


def test_a_compensation_that_is_verified_needs_a_probe() -> None:
    agent = Agent("payment")
    agent.performs(VERIFIED)(returning(None))
    agent.compensates(VERIFIED)(returning(None))
    with pytest.raises(DefinitionError, match="is verified, but no probe"):
        agent.check_functions()


@pytest.mark.parametrize(("no_effect", "probed"), [(True, 0), (False, 1)])
def test_a_try_that_did_nothing_is_repeated_without_a_probe(
    clock: Clock, *, no_effect: bool, probed: int
) -> None:
    agent, called = Agent("payment"), list[str]()

    @agent.performs(charge_card)
    def charge(_: StepRequest) -> None:
        called.append("charge")
        if called.count("charge") == 1:
            raise TransientError("503", no_effect=no_effect)

    @agent.probes(charge_card)
    def find(_: StepRequest) -> DidNotHappen:
        called.append("find")
        return NO

    assert reply(agent, clock, request(outcome_unknown=False)).outcome is Outcome.SUCCEEDED
    assert (called.count("charge"), called.count("find")) == (2, probed)
