"""What an agent notes of its calls of a step with several agents, and what it can prove by it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeVar

import pytest

from roundsman import Agent, Callback, Compensation, PermanentError, StepRequest, TransientError
from roundsman.agents.agent import Answer, answer_again
from roundsman.agents.call_notes import NO_NOTES, Begun, CallNotes
from roundsman.agents.guard import CallHeld, Guard, NoGuard
from roundsman.errors import Busy, CallRefused, TryAgain
from roundsman.model.events import Outcome
from roundsman.model.instants import SECOND
from roundsman.model.task import Effect
from roundsman.wire.messages import AgentRequest, Reply, read_reply
from roundsman_testing.memory import MemoryCallNotes
from tests.support.agent_samples import (
    NOW,
    Clock,
    charge_card,
    raising,
    request,
    returning,
)
from tests.support.guards import FakeGuard, HeldGuard, Terms

T = TypeVar("T")

charge = replace(charge_card, agent="", agents=("payment", "payment_backup"))
CLAIM = 5
NEVER_MADE = request(outcome_unknown=False, lock=f"7f3a-0c1d.1.{CLAIM}")
LATER = replace(NEVER_MADE, lock=f"7f3a-0c1d.1.{CLAIM + 2}")
DECLINED = PermanentError("CardDeclined", "no funds")


@dataclass
class Notes:
    """Notes in memory that list what they were asked, and accept or fail as the test sets."""

    inner: CallNotes = field(default_factory=MemoryCallNotes)
    asked: list[str] = field(default_factory=list)
    fails: dict[str, Exception] = field(default_factory=dict)
    before: Callable[[str], object] = lambda _: None

    def begin(self, key: str, claim: int) -> Begun:
        self._ask("begin")
        return self.inner.begin(key, claim)

    def close(self, key: str, claim: int, *, begun: bool) -> bool:
        self._ask("close")
        return self.inner.close(key, claim, begun=begun)

    def _ask(self, name: str) -> None:
        self.asked.append(name)
        self.before(name)
        if name in self.fails:
            raise self.fails[name]


HELD = HeldGuard("payment is on hold", NOW + 60_000)


@pytest.fixture
def notes() -> Notes:
    return Notes()


def payment(function: Callable[[StepRequest], object]) -> Agent:
    agent = Agent("payment")
    agent.performs(charge)(function)
    agent.compensates(charge)(returning(None))
    return agent


def reply_of(
    agent: Agent,
    clock: Clock,
    notes: CallNotes,
    asked: AgentRequest = NEVER_MADE,
    *,
    guard: Guard | None = None,
    redelivered: bool = False,
    report: Callable[[Exception], None] = lambda _: None,
) -> Reply:
    def attempt(asked: AgentRequest) -> Answer:
        return agent.answer(
            asked,
            clock=clock,
            function_ends_at=NOW + 300_000,
            guard=guard or NoGuard(),
            report=report,
            sleep=clock.sleep,
            jitter=lambda: 0.5,
            call_notes=notes,
        )

    answer = answer_again(asked, attempt) if redelivered else attempt(asked)
    assert isinstance(answer, Reply)
    return read_reply(answer.body())


# --- Given back -----------------------------------------------------------------------------------


def test_a_request_that_is_given_back_uncalled_says_that_there_is_no_effect(
    clock: Clock, notes: Notes
) -> None:
    called: list[object] = []
    reply = reply_of(payment(called.append), clock, notes, guard=HELD)
    assert (reply.outcome, reply.effect) == (Outcome.HELD, Effect.NONE)
    assert notes.asked == ["close"]


def test_a_copy_of_a_request_that_was_given_back_so_is_not_called_any_more(
    clock: Clock, notes: Notes
) -> None:
    called: list[object] = []
    agent = payment(called.append)
    reply_of(agent, clock, notes, guard=HELD)
    reply = reply_of(agent, clock, notes)
    assert not called
    assert (reply.outcome, reply.effect) == (Outcome.HELD, Effect.NONE)
    assert not reply.outcome_unknown
    again = reply_of(agent, clock, notes, redelivered=True)
    assert not called
    assert (again.outcome, again.effect) == (Outcome.HELD, Effect.NONE)


def test_what_was_read_before_is_given_back_with_a_proof_unless_its_reader_had_noted_a_call(
    clock: Clock, notes: Notes
) -> None:
    agent = payment(returning(None))
    reply = reply_of(agent, clock, notes, guard=HELD, redelivered=True)
    assert (reply.outcome, reply.effect, reply.outcome_unknown) == (
        Outcome.HELD,
        Effect.NONE,
        False,
    )
    notes.inner.begin(LATER.idempotency_key, CLAIM + 2)
    reply = reply_of(agent, clock, notes, LATER, guard=HELD, redelivered=True)
    assert (reply.outcome, reply.effect, reply.outcome_unknown) == (Outcome.HELD, None, True)


def test_a_request_is_given_back_without_a_proof_where_a_copy_of_it_was_called(
    clock: Clock, notes: Notes
) -> None:
    agent = payment(returning(None))
    assert reply_of(agent, clock, notes).outcome is Outcome.SUCCEEDED
    reply = reply_of(agent, clock, notes, guard=HELD)
    assert (reply.outcome, reply.effect) == (Outcome.HELD, None)


def test_the_next_request_under_the_key_is_called_all_the_same(clock: Clock, notes: Notes) -> None:
    agent = payment(returning(None))
    reply_of(agent, clock, notes, guard=HELD)
    assert reply_of(agent, clock, notes, LATER).outcome is Outcome.SUCCEEDED


def test_a_request_that_is_sent_twice_for_one_claim_is_closed_with_the_other(
    clock: Clock, notes: Notes
) -> None:
    called: list[object] = []
    agent = payment(called.append)
    reply_of(agent, clock, notes, guard=HELD)
    sent_again = replace(NEVER_MADE, sent_at=NEVER_MADE.sent_at + 50)
    assert reply_of(agent, clock, notes, sent_again).outcome is Outcome.HELD
    assert not called


def test_a_claim_without_a_number_is_called_and_proves_nothing(clock: Clock, notes: Notes) -> None:
    agent = payment(returning(None))
    numberless = replace(NEVER_MADE, lock="7f3a-0c1d.1")
    reply = reply_of(agent, clock, notes, numberless, guard=HELD)
    assert (reply.outcome, reply.effect) == (Outcome.HELD, None)
    assert reply_of(agent, clock, notes, numberless).outcome is Outcome.SUCCEEDED
    assert reply_of(agent, clock, notes, guard=HELD).effect is None


def test_what_was_read_too_late_to_be_begun_is_given_back_with_a_proof(
    clock: Clock, notes: Notes
) -> None:
    called: list[object] = []
    clock.now = NOW + 50_000
    reply = reply_of(payment(called.append), clock, notes)
    assert (reply.outcome, reply.effect, called) == (Outcome.HELD, Effect.NONE, [])


def test_no_time_is_taken_for_a_proof_once_the_attempt_is_over(clock: Clock, notes: Notes) -> None:
    class HeldLate(HeldGuard):
        def around(self, function: Callable[[], T], terms: Terms) -> T:
            clock.now = terms.ends_at
            return super().around(function, terms)

    held = HeldLate("payment is on hold", NOW + 60_000)
    reply = reply_of(payment(returning(None)), clock, notes, guard=held)
    assert (reply.outcome, reply.effect, notes.asked) == (Outcome.HELD, None, [])


def test_a_call_after_which_the_service_is_held_is_no_proof(clock: Clock, notes: Notes) -> None:
    class GoesDown(FakeGuard):
        def around(self, function: Callable[[], T], terms: Terms) -> T:
            function()
            raise CallHeld("payment's circuit is open", until=NOW + 60_000, called=True)

    reply = reply_of(payment(returning(None)), clock, notes, guard=GoesDown())
    assert (reply.outcome, reply.outcome_unknown, reply.effect) == (Outcome.HELD, True, None)
    assert notes.asked == ["begin"]


# --- Refused --------------------------------------------------------------------------------------


def test_a_refusal_of_the_first_and_only_call_says_that_there_is_no_effect(
    clock: Clock, notes: Notes
) -> None:
    agent = payment(raising(DECLINED))
    reply = reply_of(agent, clock, notes)
    assert (reply.outcome, reply.effect) == (Outcome.PERMANENT, Effect.NONE)
    assert notes.asked == ["begin", "close"]
    assert reply_of(agent, clock, notes).outcome is Outcome.HELD, "a copy is not called any more"


@pytest.mark.parametrize("first", [TransientError("503"), Busy("429"), OSError("reset")], ids=str)
def test_a_refusal_after_another_try_of_the_attempt_is_no_proof(
    clock: Clock, notes: Notes, first: Exception
) -> None:
    ends = iter((first, DECLINED))

    def function(_: StepRequest) -> object:
        raise next(ends)

    reply = reply_of(payment(function), clock, notes)
    assert (reply.outcome, reply.effect) == (Outcome.PERMANENT, None)
    assert notes.asked == ["begin"], "one note is enough for an attempt"


def test_a_refusal_is_no_proof_where_another_copy_was_called_before(
    clock: Clock, notes: Notes
) -> None:
    notes.inner.begin(NEVER_MADE.idempotency_key, CLAIM)
    reply = reply_of(payment(raising(DECLINED)), clock, notes)
    assert (reply.outcome, reply.effect) == (Outcome.PERMANENT, None)
    assert notes.asked == ["begin"]


def test_a_refusal_is_no_proof_where_another_copy_is_called_before_the_key_is_closed(
    clock: Clock, notes: Notes
) -> None:
    def copy_comes(name: str) -> None:
        if name == "close":
            notes.inner.begin(NEVER_MADE.idempotency_key, CLAIM)

    notes.before = copy_comes
    reply = reply_of(payment(raising(DECLINED)), clock, notes)
    assert (reply.outcome, reply.effect) == (Outcome.PERMANENT, None)


@pytest.mark.parametrize("guard", [NoGuard(), HELD], ids=["refused", "held"])
def test_a_request_that_may_have_had_its_effect_before_proves_nothing(
    clock: Clock, notes: Notes, guard: Guard
) -> None:
    asked = replace(NEVER_MADE, outcome_unknown=True)
    reply = reply_of(payment(raising(DECLINED)), clock, notes, asked, guard=guard)
    assert reply.effect is None
    assert "close" not in notes.asked


def test_a_refusal_of_what_was_read_before_is_no_proof(clock: Clock, notes: Notes) -> None:
    reply = reply_of(payment(raising(DECLINED)), clock, notes, redelivered=True)
    assert (reply.outcome, reply.effect) == (Outcome.PERMANENT, None)
    assert notes.asked == ["begin"]


@pytest.mark.parametrize(
    "function",
    [
        raising(TransientError("503", retry_after=timedelta(minutes=5))),
        raising(KeyError("x")),
        returning(None),
        returning(Callback(within=timedelta(hours=1))),
    ],
    ids=["transient", "unforeseen", "done", "waits"],
)
def test_no_other_end_of_a_call_proves_anything(
    clock: Clock, notes: Notes, function: Callable[[StepRequest], object]
) -> None:
    assert reply_of(payment(function), clock, notes).effect is None
    assert notes.asked == ["begin"]


# --- Failed without an effect ---------------------------------------------------------------------

DID_NOTHING = TransientError("503", retry_after=timedelta(minutes=5), no_effect=True)


@pytest.mark.parametrize(
    "error", [DID_NOTHING, Busy("429", retry_after=timedelta(minutes=5), no_effect=True)], ids=str
)
def test_a_failure_that_promises_it_says_that_there_is_no_effect(
    clock: Clock, notes: Notes, error: Exception
) -> None:
    reply = reply_of(payment(raising(error)), clock, notes)
    assert (reply.outcome, reply.effect) == (Outcome.TRANSIENT, Effect.NONE)
    assert notes.asked == ["begin", "close"]
    assert reply_of(payment(raising(error)), clock, notes).outcome is Outcome.HELD, "a copy"
    assert reply_of(payment(returning(None)), clock, notes, LATER).outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("ends", [[True, False], [False, True]], ids=["last", "first"])
def test_one_try_without_the_promise_takes_the_proof_away(
    clock: Clock, notes: Notes, ends: list[bool]
) -> None:
    said = iter([*ends, True])

    def function(_: StepRequest) -> object:
        raise TransientError("503", no_effect=next(said))

    reply = reply_of(payment(function), clock, notes)
    assert (reply.outcome, reply.effect) == (Outcome.TRANSIENT, None)


def test_a_refusal_after_a_try_that_did_nothing_is_that_of_the_only_call(
    clock: Clock, notes: Notes
) -> None:
    ends = iter((TransientError("503", no_effect=True), DECLINED))

    def function(_: StepRequest) -> object:
        raise next(ends)

    reply = reply_of(payment(function), clock, notes)
    assert (reply.outcome, reply.effect) == (Outcome.PERMANENT, Effect.NONE)


@pytest.mark.parametrize(
    ("errors", "outcome", "effect"),
    [
        ((DID_NOTHING, DID_NOTHING), Outcome.TRANSIENT, Effect.NONE),
        ((DID_NOTHING,), Outcome.TRANSIENT, Effect.NONE),
        ((DID_NOTHING, Busy("429")), Outcome.TRANSIENT, None),
        ((DID_NOTHING, DECLINED), Outcome.PERMANENT, None),
        ((DECLINED,), Outcome.PERMANENT, None),
    ],
    ids=str,
)
def test_calls_side_by_side_had_no_effect_only_if_each_that_failed_says_so(
    clock: Clock,
    notes: Notes,
    errors: tuple[Exception, ...],
    outcome: Outcome,
    effect: Effect | None,
) -> None:
    reply = reply_of(payment(raising(ExceptionGroup("of calls", errors))), clock, notes)
    assert (reply.outcome, reply.effect) == (outcome, effect)


def test_the_promise_proves_nothing_for_what_was_read_before_or_may_have_happened(
    clock: Clock, notes: Notes
) -> None:
    agent = payment(raising(DID_NOTHING))
    assert reply_of(agent, clock, notes, redelivered=True).effect is None
    unknown = replace(NEVER_MADE, outcome_unknown=True)
    assert reply_of(agent, clock, Notes(), unknown).effect is None


def test_a_circuit_that_opens_by_a_call_that_did_nothing_is_no_call(
    clock: Clock, notes: Notes
) -> None:
    class Opens(FakeGuard):
        def around(self, function: Callable[[], T], terms: Terms) -> T:
            try:
                return function()
            except TransientError as error:
                raise CallHeld("its circuit opens", until=NOW + 60_000, called=True) from error

    reply = reply_of(payment(raising(DID_NOTHING)), clock, notes, guard=Opens())
    assert (reply.outcome, reply.outcome_unknown) == (Outcome.HELD, False)
    assert reply.effect is Effect.NONE


def test_the_promise_is_true_or_false() -> None:
    with pytest.raises(TypeError, match="no_effect must be True or False, not an int"):
        TransientError("503", no_effect=503)  # type: ignore[arg-type]  # as a mistake


# --- Notes that fail ------------------------------------------------------------------------------


def test_a_call_that_cannot_be_noted_for_now_is_not_made(clock: Clock, notes: Notes) -> None:
    called: list[object] = []
    notes.fails = {"begin": TryAgain("throttled"), "close": TryAgain("throttled")}
    reply = reply_of(payment(called.append), clock, notes)
    assert not called
    assert (reply.outcome, reply.retry_after, reply.effect) == (Outcome.HELD, SECOND, None)
    assert reply.error is not None
    assert reply.error.message == "the note of the call could not be written; not attempted"
    assert notes.asked == ["begin", "close"]
    assert clock.slept == []


def test_a_call_that_may_not_be_noted_is_not_made_and_the_attempt_counts(
    clock: Clock, notes: Notes
) -> None:
    called: list[object] = []
    reported: list[Exception] = []
    refused = CallRefused("noting a call: AccessDenied", "AccessDenied")
    notes.fails = {"begin": refused}
    reply = reply_of(payment(called.append), clock, notes, report=reported.append)
    assert not called
    assert (reply.outcome, reply.effect) == (Outcome.TRANSIENT, None)
    assert reply.error is not None
    assert reply.error.type == "CallRefused"
    assert reply.error.message == "unexpected error; see the log of the payment agent"
    assert reported == [refused]


@pytest.mark.parametrize("failure", [TryAgain("throttled"), CallRefused("denied")], ids=repr)
@pytest.mark.parametrize("guard", [NoGuard(), HELD], ids=["refused", "held"])
def test_a_key_that_cannot_be_closed_is_no_proof(
    clock: Clock, notes: Notes, failure: Exception, guard: Guard
) -> None:
    notes.fails = {"close": failure}
    reply = reply_of(payment(raising(DECLINED)), clock, notes, guard=guard)
    assert reply.effect is None
    assert reply.outcome in (Outcome.PERMANENT, Outcome.HELD)


def test_a_note_that_takes_the_time_of_the_call_leaves_it_unmade(
    clock: Clock, notes: Notes
) -> None:
    called: list[object] = []

    def takes_long(_: str) -> None:
        clock.now += 59_000

    notes.before = takes_long
    reply = reply_of(payment(called.append), clock, notes)
    assert (called, reply.outcome, reply.effect) == ([], Outcome.HELD, None)


# --- Who notes nothing ----------------------------------------------------------------------------


@pytest.mark.parametrize("guard", [NoGuard(), HELD], ids=["called", "held"])
def test_a_step_with_one_agent_is_noted_nowhere(clock: Clock, notes: Notes, guard: Guard) -> None:
    agent = Agent("payment")
    agent.performs(charge_card)(raising(DECLINED))
    assert reply_of(agent, clock, notes, guard=guard).effect is None
    assert notes.asked == []


@pytest.mark.parametrize("guard", [NoGuard(), HELD], ids=["called", "held"])
def test_an_undo_is_noted_nowhere(clock: Clock, notes: Notes, guard: Guard) -> None:
    asked = replace(
        NEVER_MADE,
        operation="undo",
        idempotency_key="ord-1/charge_card/undo",
        perform_key="ord-1/charge_card/perform",
    )
    assert reply_of(payment(returning(None)), clock, notes, asked, guard=guard).effect is None
    assert notes.asked == []


@pytest.mark.parametrize("guard", [NoGuard(), HELD], ids=["refused", "held"])
def test_without_notes_an_agent_works_and_proves_nothing(clock: Clock, guard: Guard) -> None:
    reply = reply_of(payment(raising(DECLINED)), clock, NO_NOTES, guard=guard)
    assert reply.effect is None


# --- Effects that stand ---------------------------------------------------------------------------


@pytest.mark.parametrize("step", [charge, charge_card], ids=["several agents", "one agent"])
def test_a_result_that_is_no_json_says_that_the_effect_stands(
    clock: Clock, notes: Notes, step: object
) -> None:
    agent = Agent("payment")
    agent.performs(charge if step is charge else charge_card)(returning(object()))
    reply = reply_of(agent, clock, notes)
    assert (reply.outcome, reply.effect) == (Outcome.TRANSIENT, Effect.STANDS)
    assert "close" not in notes.asked


def test_an_undo_whose_result_cannot_be_kept_says_nothing_of_the_effect(
    clock: Clock, notes: Notes
) -> None:
    agent = Agent("payment")
    undone = replace(charge_card, compensation=Compensation())
    agent.compensates(undone)(returning(object()))
    asked = replace(NEVER_MADE, operation="undo", idempotency_key="ord-1/charge_card/undo")
    reply = reply_of(agent, clock, notes, asked)
    assert (reply.outcome, reply.effect) == (Outcome.TRANSIENT, None)


def test_a_function_can_be_called_by_something_else_that_gets_its_name(clock: Clock) -> None:
    seen: list[str] = []

    def call(operation: str, function: Callable[[StepRequest], object], asked: StepRequest) -> str:
        seen.append(operation)
        return f"{function(asked)} by another"

    agent = payment(returning("done")).called_by(call)
    assert reply_of(agent, clock, NO_NOTES).result == "done by another"
    assert seen == ["perform"]
