"""Steps that are added as an order runs: stories with agents, failures, crashes and persons."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from roundsman import (
    Agent,
    Compensation,
    DidNotHappen,
    Done,
    Happened,
    Json,
    NamedStep,
    Retry,
    Step,
    StepRequest,
    Undo,
    Workflow,
)
from roundsman.engine.added_steps import WRONG_THEN
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import AddedStep
from roundsman_testing import Mishaps, World
from roundsman_testing.faults import Faults
from roundsman_testing.memory import TABLES
from roundsman_testing.world.crashes import crash_everywhere
from tests.world.at_every_call import Kinds, at_every_call

MINUTE = timedelta(minutes=1)
FENCED = Compensation(fences_late_performs=True)
ORDER: Mapping[str, Json] = {"orderId": "ord-1", "legs": 3}

book_leg = Step(name="book_leg", agent="carriers", complete_within=MINUTE, compensation=FENCED)
notify = Step(name="notify", agent="mail", complete_within=MINUTE)
search = Step(name="search", agent="carriers", complete_within=MINUTE, compensation=FENCED)
charge = Step(
    name="charge",
    agent="payment",
    complete_within=MINUTE,
    after=(search,),
    compensation=FENCED,
    retry=Retry(max_attempts=3),
)
trip = Workflow(
    name="trip",
    steps=(search, charge),
    may_add=(book_leg, notify),
    complete_within=timedelta(hours=4),
    on_failure=Undo(),
    point_of_no_return=charge,
    may_add_after_no_return=(notify,),
    retain_for=timedelta(days=1),
)
LEGS = ["book_leg[leg-1]", "book_leg[leg-2]", "book_leg[leg-3]"]


@dataclass
class Carriers:
    """Books leg after leg. `asked` has the legs that the service was asked for, in that order."""

    wrong: int = 0
    """How many replies of `search` add a step that cannot be added, before it is repaired."""
    asked: list[object] = field(default_factory=list)

    def agent(self) -> Agent:
        agent = Agent("carriers")

        @agent.performs(search)
        def find(request: StepRequest) -> Done:
            if self.wrong:
                self.wrong -= 1
                return Done(then=(charge.named("again"),))
            return Done("found", then=self.next_leg(request, 1))

        @agent.performs(book_leg)
        def book(request: StepRequest) -> Done:
            number = int(str(request.step_input))
            self.asked.append(number)
            return Done(f"booked {number}", then=self.next_leg(request, number + 1))

        @agent.probes(book_leg)
        def ask(request: StepRequest) -> Happened | DidNotHappen:
            number = int(str(request.step_input))
            if number not in self.asked:
                return DidNotHappen()
            return Happened(f"booked {number}", then=self.next_leg(request, number + 1))

        @agent.compensates(search)
        @agent.compensates(book_leg)
        def undo(_: StepRequest) -> None: ...

        return agent

    def next_leg(self, request: StepRequest, number: int) -> tuple[NamedStep, ...]:
        if number > int(str(request.input["legs"])):
            return ()
        return (book_leg.named(f"leg-{number}", input=number),)


def payment() -> Agent:
    agent = Agent("payment")

    @agent.performs(charge)
    def pay(request: StepRequest) -> Done:
        legs = [name for name in request.results if name.startswith("book_leg")]
        legs.sort(key=lambda name: (len(name), name))
        assert [request.results[name] for name in legs] == [
            f"booked {number + 1}" for number in range(len(legs))
        ]
        return Done("paid", then=(notify.named("receipt", input=len(legs)),))

    @agent.compensates(charge)
    def refund(_: StepRequest) -> None: ...

    return agent


def world_of(carriers: Carriers, faults: Faults | None = None, **options: Mishaps | int) -> World:
    agents = [carriers.agent(), payment()]
    return World(trip, agents=agents, faults=faults, **options)  # type: ignore[arg-type]


def completes(world: World) -> None:
    world.submit(ORDER)
    world.run()
    task = world.task("ord-1")
    assert task.state is TaskState.COMPLETED
    assert [*task.added] == [*LEGS, "notify[receipt]"]
    assert {one.process_state for one in task.steps.values()} == {ProcessState.PROCESSED}
    assert sorted(world.standing("ord-1")) == sorted(["search", *LEGS, "charge", "notify[receipt]"])


def is_undone(world: World) -> None:
    world.on("charge").refuses("CardDeclined")
    world.submit(ORDER)
    world.run()
    task = world.task("ord-1")
    assert task.state is TaskState.UNDONE
    assert {task.step(name).process_state for name in LEGS} == {ProcessState.UNDONE}
    assert world.standing("ord-1") == []


def test_legs_are_added_one_by_one_and_the_receipt_after_the_point_of_no_return() -> None:
    carriers = Carriers()
    completes(world_of(carriers))
    assert carriers.asked == [1, 2, 3]


def test_all_that_was_added_is_undone_the_last_one_first() -> None:
    world = world_of(Carriers())
    is_undone(world)
    undone = [row.step for row in world.history("ord-1") if row.kind == "undone"]
    assert undone == ["charge", *LEGS[::-1], "search"]


@at_every_call
@pytest.mark.parametrize("story", [completes, is_undone])
def test_whatever_call_fails_or_process_dies_the_order_ends_as_it_must(
    story: object, kinds: Kinds
) -> None:
    assert callable(story)
    assert crash_everywhere(story, lambda faults: world_of(Carriers(), faults), faults=kinds).runs


def test_an_answer_that_is_lost_is_found_by_the_probe_with_what_it_adds() -> None:
    carriers = Carriers()
    world = world_of(carriers)
    world.on("book_leg[leg-2]").loses_answer(times=1)
    completes(world)
    assert carriers.asked == [1, 2, 3], "no leg is booked twice"


def test_a_reply_that_adds_what_it_may_not_is_a_defect_until_it_is_repaired() -> None:
    carriers = Carriers(wrong=2)
    world = world_of(carriers)
    completes(world)
    failed = [row.reason for row in world.history("ord-1") if row.kind == "failed"]
    assert len(failed) == 2
    assert f"{WRONG_THEN}: search adds charge[again], but its workflow does not have" in failed[0]


def test_a_hold_parks_an_added_step_and_the_order_goes_on_after_it() -> None:
    world = world_of(Carriers())
    world.hold("carriers", timedelta(minutes=20))
    world.submit(ORDER)
    world.run(for_=timedelta(minutes=10))
    world.release("carriers")
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED


@pytest.mark.parametrize("seed", range(6))
def test_with_lost_and_repeated_messages_and_dying_functions_it_still_ends(seed: int) -> None:
    mishaps = Mishaps(crashes=0.01, losses=0.01, repeats=0.2, stale_reads=0.2)
    world = world_of(Carriers(), mishaps=mishaps, seed=seed)
    for number in range(4):
        world.submit({"orderId": f"o-{number}", "legs": number})
    world.run()
    assert {world.task(f"o-{number}").state for number in range(4)} == {TaskState.COMPLETED}


def test_a_person_undoes_an_order_while_a_leg_is_being_booked() -> None:
    world = world_of(Carriers())
    world.on("book_leg[leg-2]").takes(timedelta(seconds=20))
    world.submit(ORDER)
    world.run(for_=timedelta(seconds=5))
    world.operator.undo("ord-1")
    world.run()
    assert world.task("ord-1").state is TaskState.UNDONE
    assert world.standing("ord-1") == []


def test_an_order_that_begins_again_adds_the_same_steps_under_new_keys() -> None:
    world = world_of(Carriers())
    is_undone(world)
    world.on("charge").is_up()
    world.operator.resubmit("ord-1", again=True)
    world.run()
    task = world.task("ord-1")
    assert task.state is TaskState.COMPLETED
    assert {task.step(name).round for name in LEGS} == {2}


@pytest.mark.verify
def test_a_long_order_is_undone_and_begins_again_and_is_erased_with_what_is_in_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("roundsman.aws.dynamodb.settled.ROW_FROM", 200)
    world, legs = world_of(Carriers()), [f"book_leg[leg-{number}]" for number in range(1, 16)]
    world.on("charge").refuses("CardDeclined")
    world.submit({**ORDER, "legs": len(legs)})
    world.run()
    undone = [row.step for row in world.history("ord-1") if row.kind == "undone"]
    assert undone == ["charge", *legs[::-1], "search"]
    world.on("charge").is_up()
    world.operator.resubmit("ord-1", again=True)
    world.run()
    task = world.task("ord-1")
    assert [*task.added] == [*legs, "notify[receipt]"]
    assert {task.step(name).round for name in legs} == {2}
    assert any("#settled#" in key for key in stored(world))
    world.operator.erase("ord-1", "request 17")
    world.run()
    assert stored(world) == ["ord-1"]
    assert [*world.task("ord-1").added] == [*task.added]
    world.all_is_well()


def test_an_erased_order_keeps_nothing_of_what_was_added_but_the_names() -> None:
    world = world_of(Carriers())
    completes(world)
    world.operator.erase("ord-1", "request 17")
    world.run()
    task = world.task("ord-1")
    assert task.erased_at is not None
    assert task.added["book_leg[leg-2]"] == AddedStep("book_leg[leg-1]", place=1)
    assert stored(world) == ["ord-1"], "the row of inputs is removed"
    world.all_is_well()


def stored(world: World) -> list[str]:
    """The keys in the table of tasks."""
    return [item["TaskId"]["S"] for item in world.processes.tables.items(TABLES.tasks)]


def test_the_inputs_of_an_ended_order_are_kept_as_long_as_its_record() -> None:
    world = world_of(Carriers())
    completes(world)
    world.run(for_=timedelta(hours=23))
    world.processes.tables.expire()
    assert stored(world) == ["ord-1", "ord-1#added#0"]
    world.run(for_=timedelta(hours=2))
    world.processes.tables.expire()
    assert stored(world) == []


def test_an_order_that_is_not_retained_leaves_no_inputs() -> None:
    carriers = Carriers()
    agents = [carriers.agent(), payment()]
    world = World(replace(trip, retain_for=timedelta()), agents=agents)
    world.submit(ORDER)
    world.run()
    assert carriers.asked == [1, 2, 3]
    assert stored(world) == []


def restored(world: World, *, until: str) -> list[str]:
    """Run the order to its end, and restore the tables of when a step was sent.

    Returns what had an effect before the restore.
    """
    world.submit(ORDER)
    tasks = world.processes.watch.tasks
    world.run(until=lambda: "ord-1" in tasks and tasks["ord-1"].step(until).under_way)
    backup = world.backup()
    world.run(for_=timedelta(minutes=5))
    assert stored(world) == ["ord-1", "ord-1#added#0"]
    before = world.standing("ord-1")
    world.restore(backup)
    return before


def test_what_was_added_since_a_restored_instant_is_added_again_and_done_once() -> None:
    world = world_of(Carriers())
    before = restored(world, until="search")
    assert stored(world) == ["ord-1"], "nothing was added then"
    world.run(for_=timedelta(hours=1))
    task = world.task("ord-1")
    assert task.state is TaskState.COMPLETED
    assert [*task.added] == [*LEGS, "notify[receipt]"]
    assert world.standing("ord-1") == before
    assert set(world.services.ledger.count.values()) == {1}


def test_what_was_added_before_a_restored_instant_is_known_with_its_input_and_undone() -> None:
    world = world_of(Carriers())
    before = restored(world, until="book_leg[leg-3]")
    assert stored(world) == ["ord-1", "ord-1#added#0"]
    assert before == ["search", *LEGS, "charge", "notify[receipt]"]
    world.operator.undo("ord-1")
    world.run(for_=timedelta(minutes=30))
    task = world.task("ord-1")
    assert task.state is TaskState.UNDONE
    assert world.standing("ord-1") == ["notify[receipt]"], "which has no compensation"


def test_a_step_that_was_added_since_a_restored_instant_is_unknown_to_an_undo() -> None:
    """A person who undoes a restored order before it has gone on must know that."""
    world = world_of(Carriers())
    restored(world, until="search")
    world.operator.undo("ord-1")
    world.run(for_=timedelta(minutes=30))
    assert world.task("ord-1").state is TaskState.UNDONE
    assert world.standing("ord-1") == [*LEGS, "notify[receipt]"]


def test_what_cannot_be_undone_stands_from_each_run_of_an_order_that_begins_again() -> None:
    """A receipt is sent by each run that pays, and the run between them adds none."""
    carriers, agents = Carriers(), [payment()]
    refunded = replace(trip, point_of_no_return=None, may_add_after_no_return=())
    world = World(refunded, agents=[carriers.agent(), *agents])
    world.submit(ORDER)
    world.run()
    for declined in (True, False):
        world.operator.undo("ord-1")
        world.run()
        assert world.task("ord-1").state is TaskState.UNDONE
        if declined:
            world.on("charge").refuses("CardDeclined", times=1)
        world.operator.resubmit("ord-1", again=True)
        world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert [*world.standing("ord-1")].count("notify[receipt]") == 2
    world.all_is_well()
