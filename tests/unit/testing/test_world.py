"""A world as its first user meets it: its clock, its queues, its people, and what it refuses."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman import Agent, Callback, PermanentError, StepRequest, Workflow
from roundsman.model.holds import BREAKER
from roundsman.model.instants import milliseconds
from roundsman.model.json import canonical_json
from roundsman.model.task import Effect, StepError
from roundsman_testing import FOR_EVER, Fault, Faults, Mishaps, ProcessingOptions, TaskState, World
from roundsman_testing.world.queues import MOST_RECEIVES, ORDERS, REQUESTS
from roundsman_testing.world.world import MORNING
from tests.unit.testing.samples import PICKING, SHOP, charge, mail, pick, reserve

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
SECONDS = timedelta(seconds=1)
REPLY_TO = "https://queue.example/replies"


def asking_payment() -> Agent:
    """Charges are approved by somebody outside."""
    agent = Agent("payment")
    agent.performs(charge)(lambda request: Callback(within=timedelta(minutes=10)))
    agent.compensates(charge)(lambda request: None)
    return agent


def waits_long() -> World:
    slow = Workflow(
        name="slow", steps=(reserve, charge), complete_within=DAY, retain_for=timedelta(days=1)
    )
    world = World(slow, agents=(asking_payment(),))
    world.submit()
    return world.run(until=lambda: world.waits_for_answer("ord-1", "charge"))


# --- The clock ----------------------------------------------------------------------------------


def test_a_plain_order_takes_as_many_events_as_it_has_messages() -> None:
    world = World(SHOP)
    order_id = world.submit()
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED
    assert world.events == 8, "the order, its start, and a request and a reply for each step"
    assert world.now - MORNING == 8 * 5


@pytest.mark.parametrize(
    ("tolerate", "state", "message"),
    [
        (1, TaskState.COMPLETED, "left out (1 of 1 that may fail)"),
        (0.4, TaskState.COMPLETED, "left out (1 of 1 that may fail)"),
        (0.3, TaskState.UNDONE, "CardDeclined"),
        (0, TaskState.UNDONE, "CardDeclined"),
    ],
)
def test_a_number_or_a_share_of_the_items_may_fail_and_the_history_says_so(
    tolerate: float, state: TaskState, message: str
) -> None:
    world = World(replace(PICKING, steps=(reserve, charge, replace(pick, tolerate=tolerate))))
    world.on("pick[1]").refuses("CardDeclined")
    order_id = world.submit({"lines": [{"sku": "a"}, {"sku": "b"}, {"sku": "c"}]})
    world.run()
    assert world.task(order_id).state is state
    (row,) = [row for row in world.history(order_id) if row.kind == "failed"]
    assert message in row.reason
    assert ("left out" in row.reason) == (state is TaskState.COMPLETED)


def test_a_month_is_skipped() -> None:
    world = World(SHOP)
    options = ProcessingOptions(start_at=world.now + milliseconds(30 * DAY))
    order_id = world.submit(options=options)
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED
    assert world.now - MORNING > milliseconds(30 * DAY)
    assert world.events < 15


def test_a_run_for_some_time_ends_then_and_goes_on() -> None:
    world = World(SHOP)
    world.submit(options=ProcessingOptions(start_at=world.now + milliseconds(DAY)))
    world.run(for_=timedelta(hours=1))
    assert world.now - MORNING == milliseconds(timedelta(hours=1))
    assert world.task("ord-1").state is TaskState.SCHEDULED
    assert world.run().task("ord-1").state is TaskState.COMPLETED


# --- Queues and faults --------------------------------------------------------------------------


def test_a_message_whose_handler_died_is_hidden_first_and_comes_again() -> None:
    world = World(SHOP, faults=Faults().on("send_requests", Fault.CRASH_BEFORE, nth=1))
    world.submit()
    world.run()
    assert world.now - MORNING > 60_000, "the visibility time-out of the scheduler's queue"
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert world.faults.happened == [(9, "send_requests", Fault.CRASH_BEFORE)]
    assert "call 9, send_requests: the process dies before the call" in str(world.trace)


def test_a_message_that_kills_its_handler_each_time_is_dead_until_it_is_put_back() -> None:
    faults = Faults().on("put_plan", Fault.CRASH_BEFORE)
    world = World(SHOP, faults=faults)
    world.submit()
    world.run()
    assert [letter.queue for letter in world.queues.dead] == ["orders"]
    assert faults.calls.count("put_plan") == MOST_RECEIVES[ORDERS]
    with pytest.raises(LookupError, match="ord-1 was never taken"):
        world.task("ord-1")
    world.all_is_well()
    assert world.redrive() == 1
    assert world.run().task("ord-1").state is TaskState.COMPLETED


def test_a_fault_of_a_name_hits_each_call_of_it() -> None:
    faults = Faults().on("send_status", Fault.NOT_DONE)
    world = World(SHOP, faults=faults)
    world.submit(options=ProcessingOptions(reply_to=REPLY_TO))
    world.run(for_=10 * MINUTE)
    assert world.statuses("ord-1") == []
    assert world.standing("ord-1") == ["reserve", "charge", "mail"], "statuses hold up nothing"
    faults.stop()
    world.run()
    assert [status.name for status in world.statuses("ord-1")][-1] == "completed"


@pytest.mark.exhaustive
def test_messages_that_are_late_twice_and_out_of_order_do_no_harm() -> None:
    mishaps = Mishaps(repeats=0.5, delays=0.5, overtakes=0.5, longest_delay=10 * SECONDS)
    for seed in range(20):
        world = World(SHOP, seed=seed, mishaps=mishaps)
        ids = [world.submit() for _ in range(3)]
        world.run()
        assert {world.task(order_id).state for order_id in ids} == {TaskState.COMPLETED}
        assert set(world.services.ledger.count.values()) == {1}


def test_several_supervisors_share_the_work() -> None:
    names = set()
    for seed in range(10):
        world = World(SHOP, supervisors=3, seed=seed)
        world.on("charge").hangs(2)
        world.submit()
        assert world.run().task("ord-1").state is TaskState.COMPLETED
        names |= {line.split()[2] for line in world.trace.lines() if "makes a pass" in line}
    assert names == {"1", "2", "3"}


def test_clocks_that_differ_are_given_by_part() -> None:
    for part in ("submission", "scheduler", "supervisor"):
        for ahead in (timedelta(seconds=3), timedelta(seconds=-3)):
            world = World(SHOP, skew={part: ahead})
            world.on("charge").hangs()
            world.submit()
            assert world.run().task("ord-1").state is TaskState.COMPLETED


# --- People -------------------------------------------------------------------------------------


def test_an_order_is_taken_back() -> None:
    world = World(SHOP)
    world.on("mail").hangs(FOR_EVER)
    world.submit(options=ProcessingOptions(reply_to=REPLY_TO))
    world.run(until=lambda: len(world.standing("ord-1")) == 2)
    world.cancel("ord-1")
    world.run()
    assert world.task("ord-1").state is TaskState.CANCELLED
    assert world.standing("ord-1") == []


def test_a_callback_is_answered_from_outside() -> None:
    world = waits_long()
    world.answer("ord-1", "charge", {"approvedBy": "ann"})
    world.run()
    assert world.task("ord-1").results()["charge"] == {"approvedBy": "ann"}
    assert world.standing("ord-1") == ["reserve", "charge"]


def test_a_callback_may_be_a_refusal_or_never_come() -> None:
    world = waits_long()
    world.answer("ord-1", "charge", error=PermanentError("Rejected", "by ann"))
    assert world.run().task("ord-1").state is TaskState.ARCHIVED
    world = waits_long().run()
    assert world.task("ord-1").state is TaskState.ARCHIVED
    assert world.task("ord-1").step("charge").failure_count == 3


def test_nobody_answers_what_was_not_asked() -> None:
    world = World(SHOP)
    world.submit()
    world.run()
    with pytest.raises(ValueError, match="charge of ord-1 has returned no Callback so far"):
        world.answer("ord-1", "charge")


@pytest.mark.parametrize("kind", [BREAKER, "operator"])
def test_an_agent_that_is_held_takes_no_work_until_it_is_released(kind: str) -> None:
    world = World(SHOP)
    world.hold("payment", DAY, "the bank is closed", kind)
    world.submit()
    world.run(for_=20 * MINUTE)
    assert world.standing("ord-1") == ["reserve"]
    assert world.task("ord-1").state is TaskState.RETRY
    world.release("payment", kind)
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert world.now - MORNING < milliseconds(DAY)
    assert world.task("ord-1").step("charge").failure_count == 0


def test_an_operator_asks_and_the_history_says_what_was_refused() -> None:
    world = World(SHOP)
    world.on("mail").refuses()
    world.submit()
    world.run()
    world.operator.resubmit("ord-1")
    world.run()
    assert world.task("ord-1").state is TaskState.UNDONE
    assert "set `again`" in world.history("ord-1")[-1].reason
    world.on("mail").is_up()
    world.operator.resubmit("ord-1", again=True)
    assert world.run().task("ord-1").state is TaskState.COMPLETED


# --- What is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda world: world.on("chrage"), "has a step 'chrage'; there are reserve, charge, mail"),
        (lambda world: world.on("charge", "do"), "undo, probe or remind, not 'do'"),
        (lambda world: world.on("mail", "undo"), "'mail' has no compensation: it is never undone"),
        (lambda world: world.on("mail[0]"), "'mail' has no for_each, so there is no 'mail[0]'"),
        (lambda world: world.submit(workflow="shoop"), "no workflow 'shoop'; it has shop"),
        (lambda world: world.submit({"orderId": 7}), "orderId must be a text, not 7"),
        (lambda world: world.hold("bank", DAY), "no agent 'bank'; there are stock, payment, post"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(call: object, why: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the words are compared below
        call(World(SHOP))
    assert why in str(caught.value)


def test_a_world_needs_workflows_of_different_names() -> None:
    with pytest.raises(ValueError, match="a world needs a workflow"):
        World()
    with pytest.raises(ValueError, match="two workflows have one name"):
        World(SHOP, SHOP)


def test_faults_of_calls_are_chosen_or_left_to_chance() -> None:
    with pytest.raises(ValueError, match="give either"):
        World(SHOP, faults=Faults(), mishaps=Mishaps(crashes=0.1))
    World(SHOP, faults=Faults(), mishaps=Mishaps(repeats=0.1, meetings=0.1))


def test_workflows_may_share_a_step() -> None:
    world = World(SHOP, PICKING)
    one, two = world.submit(), world.submit({"lines": ["pen"]}, workflow="picking")
    world.run()
    assert world.standing(one) == ["reserve", "charge", "mail"]
    assert world.standing(two) == ["reserve", "charge", "pick[0]"]


def test_one_id_sent_twice_is_one_order_and_other_content_is_put_aside() -> None:
    world = World(SHOP)
    for total in ("39.80", "39.80", "12.00"):
        world.submit({"orderId": "ord-1", "total": total})
    world.run()
    assert world.standing("ord-1") == ["reserve", "charge", "mail"]
    assert [str(found) for found in world.post.put_aside] == [
        "a message of orders, orderId: already used: "
        "an order with this id and different content exists"
    ]


def test_an_agent_is_given_what_the_steps_before_it_answered() -> None:
    seen: list[StepRequest] = []
    post = Agent("post")
    post.performs(mail)(seen.append)
    world = World(SHOP, agents=(post,))
    world.submit({"to": "ann"})
    world.run()
    assert canonical_json(dict(seen[0].results)) == (
        '{"charge":{"done":"charge"},"reserve":{"done":"reserve"}}'
    )
    assert seen[0].input["to"] == "ann"
    assert [mail.queue for mail in world.queues.waiting if mail.queue == REQUESTS] == []


def test_agents_of_one_step_prove_that_a_refused_one_had_no_effect() -> None:
    either = replace(charge, agent="", agents=("payment", "spare"), after=())
    world = World(Workflow(name="either", steps=(either,), complete_within=DAY, retain_for=DAY))
    world.on("charge").refuses("CardDeclined")
    order_id = world.submit()
    world.run()
    assert world.task(order_id).steps["charge"].effect is Effect.NONE
    assert world.faults.calls.count("note_call") == world.faults.calls.count("close_key") == 1


def test_a_lost_note_of_a_call_is_no_proof_and_stops_no_call() -> None:
    either = replace(charge, agent="", agents=("payment", "spare"), after=())
    faults = Faults().on("note_call", Fault.ANSWER_LOST)
    either_way = Workflow(name="either", steps=(either,), complete_within=DAY, retain_for=DAY)
    world = World(either_way, faults=faults)
    world.on("charge").refuses("CardDeclined")
    order_id = world.submit()
    world.run()
    record = world.task(order_id).steps["charge"]
    assert (record.error, record.effect) == (StepError("CardDeclined", ""), None)
    assert "close_key" not in world.faults.calls


def test_a_world_refuses_what_is_not_held_no_share_and_no_workflow() -> None:
    world = World(SHOP)
    with pytest.raises(ValueError, match="everything is not held"):
        world.release_all()
    with pytest.raises(ValueError, match="no workflow 'ghost'; there are shop"):
        world.hold_workflow("ghost", timedelta(hours=3))
    world.hold_all(timedelta(hours=3))
    for share in (0, 101):
        with pytest.raises(ValueError, match="a share is 1 to 100 percent"):
            world.release_all(share)
    with pytest.raises(ValueError, match="workflow shop is not held"):
        world.release_workflow("shop")
