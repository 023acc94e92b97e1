"""What the test kit finds wrong with the steps that were added to a task."""

from dataclasses import replace

from roundsman.model.task import AddedStep
from roundsman_testing.invariants.added import Added
from tests.support.machine_world import World, plan, step


def test_added_steps_that_form_a_cycle_are_found() -> None:
    world = World(plan(step("a"), may_add=(step("leg"),)))
    before = world.task
    for other, found in (("a", False), ("leg[y]", True)):
        added = {"leg[x]": AddedStep("a", (other,)), "leg[y]": AddedStep("a", ("leg[x]",))}
        broken = Added().of_change(world.plan, before, replace(before, added=added))
        sentence = "leg[x] is added, and the steps form a cycle"
        assert (sentence in [one.what for one in broken]) is found
