"""What a view says of a task."""

from dataclasses import replace

from roundsman.model.instants import iso
from roundsman_console.facts.order.effects import erased_words, may_stand, nothing_undoes
from tests.support.erased_stories import completed, erased
from tests.support.operator_stories import undone


def test_the_words_of_an_erasure_say_when_by_whom_and_why() -> None:
    assert erased_words(completed().task) == ""
    world = erased(completed())
    assert erased_words(world.task) == f"erased on {iso(world.now)} by ann: request 17"


def test_what_stands_from_before_a_task_began_again_is_shown_with_what_stands_now() -> None:
    world = undone()
    task = replace(world.task, used_rounds={"mail": 1})
    assert (may_stand(world.task, world.plan), nothing_undoes(world.task, world.plan)) == ([], [])
    assert (may_stand(task, world.plan), nothing_undoes(task, world.plan)) == (["mail"], ["mail"])
    assert may_stand(task) == []  # without the plan nobody knows what it undid
