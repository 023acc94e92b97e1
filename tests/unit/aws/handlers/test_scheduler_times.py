"""The time of an attempt is measured once: at the reply that ends it."""

from roundsman.aws.handlers import scheduler
from tests.support.shell_world import Shells
from tests.support.supervision_world import LINE


def test_a_success_that_comes_twice_is_measured_once() -> None:
    shells = Shells(LINE)
    shells.submit()
    shells.start()
    reply = shells.reply_to("first")
    shells.wait(2)
    first = shells.scheduler().reply(reply, "m-1")
    again = shells.scheduler().reply(reply, "m-2")
    assert scheduler._times(reply, first, shells.now) == {"ms": 2_000}
    assert scheduler._times(reply, again, shells.now) == {}
