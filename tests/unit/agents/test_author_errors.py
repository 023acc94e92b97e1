"""Errors of functions that make calls side by side, and calls that Roundsman itself refuses."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from itertools import permutations
from typing import TypeVar

import pytest

from roundsman import (
    Agent,
    Busy,
    Callback,
    CredentialRefused,
    DidNotHappen,
    Done,
    Happened,
    NotYet,
    PermanentError,
    Step,
    StepRequest,
    TransientError,
)
from roundsman.agents.author_errors import raised_by
from roundsman.agents.callbacks import failed_reply, succeeded_reply
from roundsman.agents.http import RemoteService
from roundsman.definition.input_types import read_input
from roundsman.model.events import Outcome
from roundsman.model.record_limits import LONGEST_MESSAGE
from roundsman.wire.messages import Reply
from tests.support.agent_samples import Clock, ask, charge_card, raising, reply, request
from tests.support.guards import FakeGuard, Terms

T = TypeVar("T")

DECLINED = PermanentError("CardDeclined", "insufficient funds")
DOWN = TransientError("answered 503")
NOTHING = TransientError("was not sent", no_effect=True)
BUSY = Busy("answered 429", retry_after=timedelta(seconds=5))
RESET = ConnectionResetError("by tok_visa")
BUG = KeyError("tok_visa")
NO_FILE = FileNotFoundError("tok_visa")
REFUSED = CredentialRefused("answered 401")
SEE_LOG = "unexpected error; see the log of the payment agent"


def group(*errors: Exception) -> ExceptionGroup[Exception]:
    return ExceptionGroup("of calls", errors)


def ended(function: Callable[[StepRequest], object], clock: Clock, **changes: object) -> Reply:
    payment = Agent("payment")
    payment.performs(charge_card)(function)
    payment.compensates(charge_card)(function)
    return reply(payment, clock, request(**changes))


def told(answer: Reply) -> tuple[Outcome, str, str, bool]:
    assert answer.error is not None
    return answer.outcome, answer.error.type, answer.error.message, answer.error.unexpected


# --- Calls side by side ---------------------------------------------------------------------------


@pytest.mark.parametrize("error", [DECLINED, DOWN, BUSY, RESET, BUG, NO_FILE, REFUSED])
def test_the_only_error_of_a_group_ends_the_attempt_as_that_error_does(
    clock: Clock, error: Exception
) -> None:
    alone, grouped = (ended(raising(e), clock) for e in (error, group(group(error))))
    assert told(grouped) == told(alone)
    assert grouped.retry_after == alone.retry_after


def test_a_refusal_in_a_task_group_is_a_refusal(clock: Clock) -> None:
    async def perform(_: StepRequest) -> None:
        async def refused() -> None:
            raise DECLINED

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.sleep(0))
            tasks.create_task(refused())

    assert told(ended(perform, clock))[:2] == (Outcome.PERMANENT, "CardDeclined")


@pytest.mark.parametrize(
    ("errors", "outcome", "error_type", "message", "unexpected"),
    [
        (
            (DOWN, DECLINED, BUG),
            Outcome.PERMANENT,
            "CardDeclined",
            f"insufficient funds; also failed: KeyError: {SEE_LOG}, TransientError: answered 503",
            False,
        ),
        (
            (PermanentError("B"), PermanentError("A")),
            Outcome.PERMANENT,
            "A",
            "also failed: B",
            False,
        ),
        (
            (DOWN, RESET, BUG),
            Outcome.TRANSIENT,
            "KeyError",
            f"{SEE_LOG}; also failed: ConnectionResetError: {SEE_LOG}, TransientError: "
            "answered 503",
            True,
        ),
        (
            (DOWN, NO_FILE),
            Outcome.TRANSIENT,
            "FileNotFoundError",
            f"{SEE_LOG}; also failed: TransientError: answered 503 (3 tries)",
            True,
        ),
        (
            (BUG, REFUSED),
            Outcome.TRANSIENT,
            "KeyError",
            f"{SEE_LOG}; also failed: CredentialRefused: answered 401",
            True,
        ),
        (
            (DOWN, REFUSED, RESET),
            Outcome.TRANSIENT,
            "CredentialRefused",
            f"answered 401; also failed: ConnectionResetError: {SEE_LOG}, TransientError: "
            "answered 503 (3 tries)",
            True,
        ),
        (
            (BUSY, DOWN, BUSY),
            Outcome.TRANSIENT,
            "TransientError",
            "answered 503; also failed: Busy: answered 429 (2 times)",
            False,
        ),
        (
            (BUSY, RESET),
            Outcome.TRANSIENT,
            "ConnectionResetError",
            f"{SEE_LOG}; also failed: Busy: answered 429",
            False,
        ),
    ],
    ids=lambda value: value.value if isinstance(value, Outcome) else None,
)
def test_of_several_errors_one_decides_and_all_are_named(
    clock: Clock,
    errors: tuple[Exception, ...],
    outcome: Outcome,
    error_type: str,
    message: str,
    *,
    unexpected: bool,
) -> None:
    for raised in (group(*errors), group(errors[-1], group(*errors[:-1]))):
        answer = ended(raising(raised), clock)
        assert told(answer) == (outcome, error_type, message, unexpected)
        assert "tok_visa" not in answer.body()


def test_many_errors_are_named_by_their_types_if_their_texts_do_not_fit(clock: Clock) -> None:
    errors = [TransientError("x" * 90 + str(number)) for number in range(20)]
    assert told(ended(raising(group(DECLINED, *errors)), clock))[2] == (
        "insufficient funds; also failed: TransientError (20 times)"
    )
    ten = told(ended(raising(group(DECLINED, *errors[:8])), clock))[2]
    assert ten.count("TransientError: x") == 8
    assert len(ten) <= LONGEST_MESSAGE


def test_errors_of_one_type_are_named_in_one_order_however_their_calls_end(clock: Clock) -> None:
    late, early = TransientError("b"), TransientError("a")
    found = [
        told(ended(raising(group(DECLINED, *two)), clock))[2] for two in permutations((late, early))
    ]
    assert found == ["insufficient funds; also failed: TransientError: a, TransientError: b"] * 2


@pytest.mark.parametrize("error", [DECLINED, DOWN, BUG])
def test_a_refusal_in_a_group_leaves_the_outcome_unknown(clock: Clock, error: Exception) -> None:
    """A call that is not in the group may have succeeded."""
    answer = ended(raising(group(DECLINED, error)), clock)
    assert (answer.outcome, answer.outcome_unknown) == (Outcome.PERMANENT, True)
    assert ended(raising(group(DECLINED)), clock).outcome_unknown
    assert not ended(raising(DECLINED), clock).outcome_unknown


def test_the_longest_wait_that_a_service_asks_for_is_kept(clock: Clock) -> None:
    later = TransientError("later", retry_after=timedelta(seconds=7))
    assert ended(raising(group(DOWN, BUSY)), clock).retry_after == 5_000
    assert ended(raising(group(BUSY, later, DOWN)), clock).retry_after == 7_000
    assert ended(raising(group(DOWN, RESET)), clock).retry_after is None
    assert not clock.slept[2:], "a long wait gives the step back"


def test_each_unexpected_error_of_a_group_is_reported_and_no_other(clock: Clock) -> None:
    payment, reported = Agent("payment"), list[Exception]()
    payment.performs(charge_card)(raising(group(BUG, DECLINED, group(NO_FILE, DOWN))))
    reply(payment, clock, report=reported.append)
    assert reported == [NO_FILE, BUG]


def test_a_group_is_tried_again_in_the_attempt_if_each_error_may_pass(clock: Clock) -> None:
    calls: list[bool] = []

    def perform(asked: StepRequest) -> str:
        calls.append(asked.outcome_unknown)
        if len(calls) < 2:
            raise group(NOTHING, RESET if len(calls) == 1 else NOTHING)
        return "done"

    assert ended(perform, clock, outcome_unknown=False).outcome is Outcome.SUCCEEDED
    assert calls == [False, True], "one of the two did not promise that it had no effect"


def test_a_group_whose_errors_all_promise_no_effect_leaves_the_outcome_known(clock: Clock) -> None:
    calls: list[bool] = []

    def perform(asked: StepRequest) -> str:
        calls.append(asked.outcome_unknown)
        if len(calls) < 2:
            raise group(NOTHING, group(NOTHING))
        return "done"

    ended(perform, clock, outcome_unknown=False)
    assert calls == [False, False]


@dataclass
class Watching(FakeGuard):
    """Keeps what it saw the calls raise, as the circuit breaker does."""

    seen: list[BaseException]

    def around(self, function: Callable[[], T], terms: Terms) -> T:
        try:
            return function()
        except BaseException as error:
            self.seen.append(error)
            raise


@pytest.mark.parametrize("errors", [(DOWN, DECLINED), (BUSY, DOWN), (BUG, DOWN), (BUSY,)])
def test_the_guard_sees_the_error_that_decides(clock: Clock, errors: tuple[Exception, ...]) -> None:
    payment, guard = Agent("payment"), Watching([])
    payment.performs(charge_card)(raising(group(*errors)))
    reply(payment, clock, guard=guard)
    assert set(guard.seen) == {raised_by(group(*errors)).errors[0]}
    assert all(error.__context__ is None for error in guard.seen), "a context would be logged"


@pytest.mark.parametrize("end", [KeyboardInterrupt(), SystemExit(1)])
def test_a_group_with_what_ends_the_process_passes_through(
    clock: Clock, end: BaseException
) -> None:
    payment = Agent("payment")
    payment.performs(charge_card)(raising(BaseExceptionGroup("of calls", [DECLINED, end])))
    with pytest.raises(BaseExceptionGroup):
        ask(payment, clock)


def test_a_probe_that_raises_a_group_proves_nothing(clock: Clock) -> None:
    payment, performed = Agent("payment"), list[StepRequest]()
    payment.performs(charge_card)(performed.append)
    payment.probes(charge_card)(raising(group(DECLINED, DOWN)))
    answer = reply(payment, clock)
    assert told(answer)[:3] == (
        Outcome.TRANSIENT,
        "CardDeclined",
        "the probe of charge_card: insufficient funds; also failed: TransientError: answered 503",
    )
    assert not performed


def test_an_undo_that_raises_a_group_fails_as_the_error_that_decides(clock: Clock) -> None:
    answer = ended(raising(group(DOWN, DECLINED)), clock, operation="undo")
    assert told(answer)[:2] == (Outcome.PERMANENT, "CardDeclined")


# --- What Roundsman refuses -----------------------------------------------------------------------

leg = Step(name="leg", agent="payment", complete_within=timedelta(seconds=30))
DAY = timedelta(days=1)


class Charge:
    """As the type of an input."""

    amount: str


def service() -> RemoteService:
    return RemoteService("https://payments.example.com")


def posted(**fields: object) -> object:
    return service().call("POST", "a", key="k", time_left=DAY, body=fields)  # type: ignore[arg-type]


REFUSALS: list[tuple[Callable[[], object], str, str]] = [
    (
        lambda: leg.named("KB 101"),
        "ValueError",
        "the name of an added step must be 1 to 40 characters of A-Z, a-z, 0-9, '.', '_' and '-', "
        "beginning with a letter; character 3 of this one is ' '",
    ),
    (lambda: leg.named("1a"), "ValueError", "beginning with a letter; character 1 of this one"),
    (lambda: leg.named("Zürich"), "ValueError", "character 2 of this one is 'ü'"),
    (lambda: leg.named("x" * 41), "ValueError", "character 41 of this one is 'x'"),
    (lambda: leg.named(""), "ValueError", "beginning with a letter; this one is empty"),
    (lambda: leg.named(12), "TypeError", "must be a text, not an int"),  # type: ignore[arg-type]
    (lambda: leg.named("a", after=(12,)), "TypeError", "after of leg[a] must have"),  # type: ignore[arg-type]
    (lambda: Done(1, then=[leg.named("a")]), "TypeError", "then must be a tuple"),  # type: ignore[arg-type]
    (lambda: Happened(1, then=("a",)), "TypeError", "then must be a tuple"),  # type: ignore[arg-type]
    (lambda: Callback(within=730 * DAY), "ValueError", "within must be from 1 s to 365 days"),
    (lambda: Callback(within="tok_visa"), "TypeError", "within must be a timedelta, not a str"),  # type: ignore[arg-type]
    (
        lambda: Callback(within=DAY, remind_every="tok_visa"),  # type: ignore[arg-type]
        "TypeError",
        "remind_every must be a timedelta, not a str",
    ),
    (lambda: Callback(within=DAY, remind_every=DAY), "ValueError", "less than within"),
    (lambda: NotYet(again_in=2 * DAY, within=DAY), "ValueError", "again_in must be from 1 s to"),
    (lambda: NotYet(again_in=3, within=DAY), "TypeError", "again_in must be a timedelta, not an"),  # type: ignore[arg-type]
    (
        lambda: TransientError("503", retry_after="tok_visa"),  # type: ignore[arg-type]
        "TypeError",
        "retry_after must be a timedelta, not a str",
    ),
    (
        lambda: TransientError("503", no_effect="tok_visa"),  # type: ignore[arg-type]
        "TypeError",
        "no_effect must be True or False, not a str",
    ),
    (lambda: succeeded_reply("tok_visa"), "InvalidToken", "this is not a callback token"),
    (lambda: succeeded_reply("tok_visa", {1, 2}), "ValueError", "result is a set, which is not"),
    (
        lambda: failed_reply("tok_visa", ValueError("tok_visa")),  # type: ignore[arg-type]
        "TypeError",
        "must be a PermanentError or a TransientError, not a ValueError",
    ),
    (
        lambda: RemoteService("http://example.com"),
        "DefinitionError",
        "the service's address must begin with https://",
    ),
    (
        lambda: service().call("GET", 12, key="k", time_left=DAY),  # type: ignore[arg-type]
        "TypeError",
        "a part of the path must be text, not an int",
    ),
    (
        lambda: posted(rows=[{"amount": Decimal("39.80")}]),
        "TypeError",
        "body.rows[0].amount is a Decimal, which is not JSON; return",
    ),
    (lambda: posted(amount=float("nan")), "TypeError", "body.amount is nan, which is not JSON"),
    (
        lambda: service().call("GET", "a", key="k", time_left=DAY, no_effect_on=(200,)),
        "DefinitionError",
        "no_effect_on has 200",
    ),
    (lambda: read_input(int, {}), "DefinitionError", "is not a TypedDict"),
]


@pytest.mark.parametrize(("call", "error_type", "sentence"), REFUSALS)
def test_a_call_that_roundsman_refuses_says_what_is_wrong_and_where(
    clock: Clock, call: Callable[[], object], error_type: str, sentence: str
) -> None:
    answer = ended(lambda _: call(), clock)
    caller = posted if "posted" in call.__code__.co_names else call
    assert told(answer)[:2] == (Outcome.TRANSIENT, error_type)
    assert told(answer)[3], "it is a defect, so the step is retried as after one"
    place, _, message = told(answer)[2].partition(": ")
    file, _, line = place.partition(", line ")
    lines = [at for *_, at in caller.__code__.co_lines() if at]
    assert (file, int(line) in lines) == ("test_author_errors.py", True)
    assert sentence in message
    assert "tok_visa" not in answer.body()


def test_a_refused_call_is_reported_as_any_unexpected_error(clock: Clock) -> None:
    payment, reported = Agent("payment"), list[Exception]()
    payment.performs(charge_card)(lambda _: leg.named("KB 101"))
    reply(payment, clock, report=reported.append)
    assert [type(error) for error in reported] == [ValueError]


def test_a_call_that_a_thread_makes_for_a_function_has_the_place_of_the_function(
    clock: Clock,
) -> None:
    def perform(_: StepRequest) -> object:
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(leg.named, "KB 101").result()

    line = perform.__code__.co_firstlineno + 2
    assert told(ended(perform, clock))[2].startswith(f"test_author_errors.py, line {line}: the na")


def test_a_refused_call_in_a_group_has_its_sentence_and_its_place(clock: Clock) -> None:
    async def perform(_: StepRequest) -> None:
        async def wrong() -> None:
            leg.named("KB 101")

        async def down() -> None:
            raise DOWN

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(wrong())
            tasks.create_task(down())

    message = told(ended(perform, clock))[2]
    assert message.startswith("test_author_errors.py, line ")
    assert message.endswith("is ' '; also failed: TransientError: answered 503")


def test_a_stored_input_of_another_type_names_the_place_that_reads_it(clock: Clock) -> None:
    def perform(asked: StepRequest) -> None:
        asked.step_input_as(Charge)

    answer = told(ended(perform, clock))
    line = perform.__code__.co_firstlineno + 1
    assert answer[1:] == (
        "InvalidInput",
        f"test_author_errors.py, line {line}: the stored input does not have the type that the "
        "code reads: the step has no step input that is an object",
        True,
    )


def test_an_error_of_the_authors_own_code_below_roundsman_keeps_its_text(clock: Clock) -> None:
    def perform(asked: StepRequest) -> None:
        def show(_: str) -> None:
            raise ValueError("tok_visa")

        object.__setattr__(asked, "show_progress", show)
        asked.progress("page 1")

    assert told(ended(perform, clock))[2] == SEE_LOG


@pytest.mark.parametrize("wrong", [lambda: int("tok_visa"), lambda: dict[str, int]()["tok_visa"]])
def test_the_text_of_any_other_error_stays_in_the_log(
    clock: Clock, wrong: Callable[[], object]
) -> None:
    assert told(ended(lambda _: wrong(), clock))[2] == SEE_LOG


def test_the_text_of_an_error_that_a_function_raises_again_stays_in_the_log(clock: Clock) -> None:
    """The first attempt has raised it out of its group, below what calls the function."""
    wrong = group(ValueError("tok_visa"))
    for _ in range(2):
        assert told(ended(raising(wrong), clock))[2] == SEE_LOG


def test_an_error_that_was_never_raised_has_no_place() -> None:
    assert raised_by(ValueError("within must be a timedelta")).places == (None,)


def test_the_text_of_an_error_of_the_network_stays_in_the_log(clock: Clock) -> None:
    async def perform(_: StepRequest) -> None:
        await asyncio.sleep(0)
        raise RESET

    assert told(ended(perform, clock))[2].startswith(SEE_LOG)


def test_a_probe_that_makes_a_wrong_call_says_so(clock: Clock) -> None:
    payment = Agent("payment")
    payment.performs(charge_card)(lambda _: None)

    @payment.probes(charge_card)
    def find(_: StepRequest) -> Happened | DidNotHappen:
        return Happened(None, then=("leg",))  # type: ignore[arg-type]

    message = told(reply(payment, clock))[2]
    assert message.startswith("the probe of charge_card: test_author_errors.py, line ")
