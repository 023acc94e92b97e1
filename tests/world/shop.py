"""Short workflows for the stories, and the moments at which messages meet."""

import json
from collections.abc import Callable
from datetime import timedelta

from roundsman.definition.workflow import Compensation, Retry, Step, Strategy, Undo, Workflow
from roundsman_testing import World
from roundsman_testing.world.capacity import SimulatedInvocation, reader_of
from roundsman_testing.world.queues import A_FUNCTION, REQUESTS, QueuedMessage
from roundsman_testing.world.world import MORNING

MINUTE = timedelta(minutes=1)
ONCE = Retry(max_attempts=1)
THRICE = Retry(max_attempts=3)
MONEY = Compensation(retry=Retry(max_attempts=8))
"""A compensation of a service that does not fence: it does a perform whose key was undone."""
FENCED = Compensation(fences_late_performs=True, retry=Retry(max_attempts=8))


def a_step(name: str, *after: Step, **more: object) -> Step:
    """A step at an agent of its own name, with three attempts of a minute each."""
    fields = {"agent": name, "complete_within": MINUTE, "after": after, "retry": THRICE, **more}
    return Step(name=name, **fields)  # type: ignore[arg-type]  # a test's own shorthand


def a_workflow(*steps: Step, on_failure: Strategy | None = None, **more: object) -> Workflow:
    """Two hours for all of it, and undone when it fails."""
    fields = {"complete_within": timedelta(hours=2), "retain_for": timedelta(days=7), **more}
    return Workflow(
        name="story",
        steps=steps,
        on_failure=on_failure or Undo(),
        **fields,  # type: ignore[arg-type]  # a test's own shorthand
    )


def since_morning(world: World) -> timedelta:
    """How long the world has been going on."""
    return timedelta(milliseconds=world.now - MORNING)


def meanwhile(world: World, call: str, act: Callable[[], object]) -> list[str]:
    """Let another process act just before the next call of that name: the two race.

    What is returned is empty until then.
    """
    done: list[str] = []

    def meet(name: str) -> None:
        if name == call and not done:
            done.append(name)
            act()

    world.faults.before_each(meet)
    return done


def deliver(world: World, mail: QueuedMessage) -> None:
    """Have a message handled now, by a process of its own."""
    run = SimulatedInvocation(reader_of(mail), [mail], world.versions.newest)
    world.processes.handle(mail, world.post, run)
    world.queues.delete(mail)


def waiting(world: World, queue: str) -> list[QueuedMessage]:
    """The messages that are in a queue, hidden ones included."""
    return [mail for mail in world.queues.waiting if mail.queue == queue]


def requests_sent(world: World) -> list[str]:
    """From now on: the steps for which requests are sent, each time that one is."""
    sent: list[str] = []
    put = world.post.post

    def post(
        queue: str, body: str, delay: int, to: str, sender: str | None = A_FUNCTION, /
    ) -> None:
        if queue == REQUESTS:
            sent.append(str(json.loads(body)["step"]))
        put(queue, body, delay, to, sender)

    world.post.post = post
    return sent
