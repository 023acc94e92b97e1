"""A task that is begun again, over what an earlier round of it has left."""

from datetime import timedelta

from roundsman import Step, Undo, Workflow
from roundsman.model.states import TaskState
from roundsman_testing import World

note = Step(name="note", agent="clerk", complete_within=timedelta(seconds=30))
pay = Step(name="pay", agent="bank", after=(note,), complete_within=timedelta(seconds=30))
WORKFLOW = Workflow(
    name="rounds",
    steps=(note, pay),
    complete_within=timedelta(hours=1),
    on_failure=Undo(),
    retain_for=timedelta(days=1),
)


def test_what_nothing_undoes_stands_on_while_its_new_round_waits() -> None:
    world = World(WORKFLOW)
    world.on("pay").refuses(times=1)
    order_id = world.submit()
    world.run()
    assert world.task(order_id).state is TaskState.UNDONE
    assert world.standing(order_id) == ["note"], "it has no compensation"
    world.hold("clerk", timedelta(minutes=5), "stocktaking")
    world.operator.resubmit(order_id, again=True)
    world.run(for_=timedelta(minutes=1))
    assert world.task(order_id).step("note").started_at is None
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED


def test_so_do_items_of_which_the_new_round_does_not_know_yet() -> None:
    sign = Step(name="sign", agent="bank", complete_within=timedelta(seconds=30))
    note_all = Step(
        name="note",
        agent="clerk",
        after=(sign,),
        for_each="input.lines",
        complete_within=timedelta(seconds=30),
    )
    book = Step(name="book", agent="bank", after=(note_all,), complete_within=timedelta(seconds=30))
    world = World(
        Workflow(
            name="items",
            steps=(sign, note_all, book),
            complete_within=timedelta(hours=1),
            on_failure=Undo(),
            retain_for=timedelta(days=1),
        )
    )
    world.on("book").refuses(times=1)
    order_id = world.submit({"lines": ["a", "b"]})
    world.run()
    world.hold("bank", timedelta(minutes=5), "stocktaking")
    world.operator.resubmit(order_id, again=True)
    world.run(for_=timedelta(minutes=1))
    assert {"note[0]", "note[1]"} <= set(world.standing(order_id))
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED
