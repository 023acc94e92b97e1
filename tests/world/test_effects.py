"""Money is taken and given back: whatever is late, lost, refused or repeated on the way."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.agents.agent import Agent
from roundsman.agents.http import RemoteService
from roundsman.agents.outcomes import DidNotHappen, Happened
from roundsman.agents.request import StepRequest
from roundsman.definition.workflow import Archive, Retry
from roundsman.errors import CredentialRefused, PermanentError, TransientError
from roundsman.model.json import Json
from roundsman.model.states import ProcessState, TaskState
from roundsman_testing import Fault, World
from roundsman_testing.world.queues import REPLIES, REQUESTS
from roundsman_testing.world.services import CallEnd
from tests.support.remote_server import answer, calls, running
from tests.world.shop import (
    FENCED,
    MINUTE,
    MONEY,
    ONCE,
    a_step,
    a_workflow,
    deliver,
    since_morning,
    waiting,
)

SECONDS = timedelta(seconds=1)
LATER = TransientError("no answer", retry_after=10 * MINUTE)
TIMED_OUT = CallEnd(done=False, error=LATER, lands_in=50_000)
"""The agent gives its call up, and it is done 50 s later all the same."""


def test_a_charge_that_lands_late_is_refunded_though_a_parallel_step_failed_at_once() -> None:
    charge = a_step("charge", compensation=MONEY)
    world = World(a_workflow(charge, a_step("reserve", retry=ONCE)))
    world.on("charge").add(TIMED_OUT)
    world.on("reserve").refuses("OutOfStock")
    order = world.submit()
    world.run(for_=51 * SECONDS)
    assert world.standing(order) == ["charge"], "the money is taken when nobody listens any more"
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    assert world.standing(order) == []


def test_a_charge_that_lands_late_is_refunded_though_an_operator_asked_for_undo_before() -> None:
    world = World(a_workflow(a_step("charge", compensation=MONEY)))
    world.on("charge").add(TIMED_OUT)
    order = world.submit()
    world.run(for_=10 * SECONDS)
    world.operator.undo(order)
    world.run(for_=41 * SECONDS)
    assert world.standing(order) == ["charge"]
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    assert world.standing(order) == []
    assert since_morning(world) > 65 * SECONDS, "its request could act for a minute, clocks apart"


def test_where_the_service_fences_the_refund_is_sent_at_once_and_the_late_charge_is_refused() -> (
    None
):
    world = World(a_workflow(a_step("charge", compensation=FENCED, retry=ONCE)))
    world.on("charge").add(TIMED_OUT)
    order = world.submit()
    world.run(for_=SECONDS)
    assert world.task(order).state is TaskState.UNDONE
    world.run()
    assert since_morning(world) > 50 * SECONDS
    assert world.standing(order) == []
    assert "comes too late: spent" in str(world.trace)


@pytest.mark.parametrize("state", [ProcessState.PENDING, ProcessState.ERROR])
def test_a_charge_whose_answer_was_lost_is_refunded_be_it_requeued_or_given_up(
    state: ProcessState,
) -> None:
    attempts = 1 if state is ProcessState.ERROR else 2
    charge = a_step("charge", compensation=MONEY, retry=Retry(max_attempts=attempts))
    world = World(a_workflow(charge, on_failure=Archive()))
    world.on("charge").loses_answer()
    order = world.submit()
    world.run(for_=MINUTE / 2)
    world.hold("charge", MINUTE, "so that a requeued charge stays where it is")
    world.run(until=lambda: world.task(order).step("charge").process_state is state)
    assert world.standing(order) == ["charge"]
    world.operator.undo(order)
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    assert world.standing(order) == []


@pytest.mark.parametrize("compensation", [MONEY, FENCED], ids=["forgetful", "fenced"])
def test_a_refusal_is_no_proof_since_a_second_copy_of_the_request_may_find_funds(
    compensation: object,
) -> None:
    world = World(a_workflow(a_step("charge", compensation=compensation)))
    world.mail("requests", '"step":"charge"').comes_twice(after=20 * SECONDS)
    world.on("charge").refuses("CardDeclined", times=1)
    order = world.submit()
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    assert world.standing(order) == []
    taken = world.services.ledger.count.get(f"{order}/charge/perform", 0)
    assert taken == (1 if compensation is MONEY else 0), "the second copy would have succeeded"


@pytest.mark.parametrize("seconds", [30, 70], ids=["before its undo may begin", "after its undo"])
def test_a_perform_that_is_delivered_again_after_its_step_is_done_takes_no_money_that_stays(
    seconds: int,
) -> None:
    charge = a_step("charge", compensation=MONEY)
    world = World(a_workflow(charge, a_step("ship", charge)))
    world.mail("requests", '"operation":"perform"').comes_twice(after=seconds * SECONDS)
    world.on("ship").refuses("AddressUndeliverable")
    order = world.submit()
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    assert world.standing(order) == [], "the service has forgotten the key, and does it anew"


class Bank:
    """A service that answers a key that it knows as it did before, refunded or not."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}
        self.taken: dict[str, str] = {}
        self.asked_to_refund: list[str] = []
        self.agent = Agent("charge")
        self.step = a_step("charge", compensation=FENCED)
        self.agent.performs(self.step)(self.charge)
        self.agent.compensates(self.step)(self.refund)

    def charge(self, request: StepRequest) -> Json:
        key = request.idempotency_key
        if key not in self.answers:
            self.answers[key] = self.taken[key] = f"charge {len(self.answers) + 1}"
        return {"chargeId": self.answers[key]}

    def refund(self, request: StepRequest) -> None:
        self.asked_to_refund.append(request.perform_key)
        self.taken.pop(request.perform_key, None)


def test_an_order_that_is_begun_again_after_its_undo_is_charged_under_a_key_of_its_own() -> None:
    bank = Bank()
    world = World(a_workflow(bank.step, a_step("ship", bank.step)), agents=[bank.agent])
    world.on("ship").refuses("AddressUndeliverable", times=1)
    order = world.submit()
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    assert not bank.taken
    world.operator.resubmit(order)
    world.run()
    assert "set `again`" in world.history(order)[-1].reason
    world.operator.resubmit(order, again=True)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert bank.taken == {f"{order}/charge/perform/2": "charge 2"}, "and not the old answer again"


def test_an_undo_is_given_the_key_of_the_perform_in_the_first_round_and_in_the_second() -> None:
    bank = Bank()
    world = World(a_workflow(bank.step, a_step("ship", bank.step)), agents=[bank.agent])
    world.on("ship").refuses("AddressUndeliverable")
    order = world.submit()
    world.run()
    assert not bank.taken
    world.operator.resubmit(order, again=True)
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    assert not bank.taken
    first = f"{order}/charge/perform"
    assert bank.asked_to_refund == [first, f"{first}/2"]


def test_a_resubmission_that_is_delivered_again_after_a_second_failure_does_nothing() -> None:
    world = World(a_workflow(a_step("charge", compensation=MONEY), on_failure=Archive()))
    calls = world.on("charge").refuses("CardDeclined", times=2)
    order = world.submit()
    world.run()
    world.mail("commands", '"kind":"resubmit"').comes_twice(after=10 * MINUTE)
    world.operator.resubmit(order)
    world.run(for_=MINUTE)
    assert world.task(order).state is TaskState.ARCHIVED
    failed_at = world.task(order).version
    world.run()
    assert since_morning(world) > 10 * MINUTE, "the copy has come"
    assert world.task(order).version == failed_at
    assert world.standing(order) == [], "a third call would have found funds"
    assert calls.next().error is None


def test_a_request_that_was_given_back_and_comes_once_more_charges_nobody_a_second_time() -> None:
    charge = a_step("charge", agents=("payment", "backup"), agent="", compensation=MONEY)
    world = World(a_workflow(charge))
    order = world.submit()
    world.run(until=lambda: bool(waiting(world, REQUESTS)))
    [request] = waiting(world, REQUESTS)
    world.hold("payment", MINUTE)
    world.run(until=lambda: bool(waiting(world, REPLIES)))
    world.release("payment")
    world.processes.forget("payment")  # the copy is read by another instance
    world.queues.send(REQUESTS, request.body, to=request.to)
    world.faults.on("reply", Fault.SWALLOWED, nth=1)
    [copy] = waiting(world, REQUESTS)
    deliver(world, copy)
    world.hold("payment", 60 * MINUTE)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert [effect.key for effect in world.services.ledger.standing(order)] == [
        f"{order}/charge/perform/backup"
    ]
    assert since_morning(world) < SECONDS, "what is proven need not be waited for"


def test_a_charge_that_a_copy_has_made_stays_at_its_agent_though_that_gives_it_back() -> None:
    charge = a_step("charge", agents=("payment", "backup"), agent="", compensation=MONEY)
    world = World(a_workflow(charge))
    order = world.submit()
    world.run(until=lambda: bool(waiting(world, REQUESTS)))
    [request] = waiting(world, REQUESTS)
    # An instance of an agent knows of a hold within five seconds.
    world.queues.send(REQUESTS, request.body, to=request.to, delay=6_000)
    world.faults.on("reply", Fault.SWALLOWED, nth=1)
    deliver(world, request)
    world.hold("payment", 10 * MINUTE)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert [effect.key for effect in world.services.ledger.standing(order)] == [
        f"{order}/charge/perform"
    ]
    assert since_morning(world) > 10 * MINUTE


@pytest.mark.parametrize(("no_effect", "charged"), [(True, "/backup"), (False, "")])
def test_a_charge_whose_service_says_that_it_did_nothing_is_made_at_the_next_agent(
    *, no_effect: bool, charged: str
) -> None:
    """The three tries of one attempt are answered with 503; without the promise nobody knows."""
    charge = a_step("charge", agents=("payment", "backup"), agent="", compensation=MONEY)
    world = World(a_workflow(charge))
    world.on("charge").fails(3, TransientError("POST answered 503", no_effect=no_effect))
    order = world.submit()
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert [effect.key for effect in world.services.ledger.standing(order)] == [
        f"{order}/charge/perform{charged}"
    ]
    assert not any(row.kind == "undo" for row in world.history(order))


def test_a_job_that_was_begun_is_begun_nowhere_else_once_its_note_has_expired() -> None:
    agents = ("payment", "backup")
    charge = a_step("charge", agents=agents, agent="", compensation=FENCED, retry=Retry())
    days = timedelta(days=1)
    world = World(a_workflow(charge, complete_within=200 * days))
    world.on("charge").is_not_done(35 * days, 150 * days)
    world.on("charge").fails(times=3, error=TransientError("503", no_effect=True))
    order = world.submit()
    world.run(for_=34 * days)
    world.processes.tables.expire()
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert [one.key for one in world.services.ledger.standing(order)] == [f"{order}/charge/perform"]
    assert any("so it stays at payment" in row.reason for row in world.history(order))


def test_a_service_that_answers_no_probe_and_fences_is_refunded_after_a_lost_answer() -> None:
    bank = Bank()

    @bank.agent.probes(bank.step)
    def find(request: StepRequest) -> Happened | DidNotHappen:
        raise PermanentError("Http405", f"GET {request.perform_key} answered 405")

    world = World(a_workflow(bank.step), agents=[bank.agent])
    world.on("charge").loses_answer()
    order = world.submit()
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    assert bank.asked_to_refund == [f"{order}/charge/perform"]
    assert not bank.taken


def test_a_service_that_answers_405_to_its_probe_strands_no_undo() -> None:
    bank = Bank()
    with running() as server:
        server.always = answer("405 Method Not Allowed")
        service = RemoteService(server.url)

        @bank.agent.probes(bank.step)
        def find(request: StepRequest) -> Happened | DidNotHappen:
            return Happened(
                service.call(
                    "GET",
                    "charges",
                    request.perform_key,
                    key=request.idempotency_key,
                    time_left=request.time_left(),
                    ok=(200,),
                    returns=("chargeId",),
                )
            )

        world = World(a_workflow(bank.step), agents=[bank.agent])
        world.on("charge").loses_answer()
        order = world.submit()
        world.run()
        assert len(calls(server)) > 1, "the performs, and the undo, asked first"
    assert world.task(order).state is TaskState.UNDONE
    assert bank.asked_to_refund == [f"{order}/charge/perform"]
    assert not bank.taken


@pytest.mark.verify
def test_while_a_credential_is_refused_no_order_fails() -> None:
    bank = Bank()
    step = replace(bank.step, retry=Retry())
    agent = Agent("charge")

    @agent.performs(step)
    def charge(request: StepRequest) -> Json:
        if since_morning(world) < 50 * MINUTE:
            raise CredentialRefused("the service refused the credential (401)")
        return bank.charge(request)

    agent.compensates(step)(bank.refund)
    world = World(a_workflow(step), agents=[agent])
    order = world.submit()
    world.run(for_=30 * MINUTE)
    alerts = {alert.attributes["kind"]: alert.subject for alert in world.post.alerts}
    assert alerts.keys() == {"unexpected_error", "breaker_opened"}
    assert "CredentialRefused" in alerts["unexpected_error"]
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert not bank.asked_to_refund
