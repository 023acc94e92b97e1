"""What a view says of a task."""

from roundsman.model.instants import iso
from roundsman_console.order.view import erased_words
from tests.support.erased_stories import completed, erased


def test_the_words_of_an_erasure_say_when_by_whom_and_why() -> None:
    assert erased_words(completed().task) == ""
    world = erased(completed())
    assert erased_words(world.task) == f"erased on {iso(world.now)} by ann: request 17"
