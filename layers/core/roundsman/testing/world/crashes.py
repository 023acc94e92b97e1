"""Every call that a story makes, crashed and failed in each way there is: all, not a sample.

    def declined(world: World) -> None:
        world.on("charge_card").refuses("CardDeclined")
        order_id = world.submit({"total": "39.80"})
        world.run()
        assert world.task(order_id).state is TaskState.UNDONE

    crash_everywhere(declined, lambda faults: World(order_fulfilment, faults=faults))

A story sends its orders, lets them run and says what must be so at the end. It is told once
without faults, which counts the calls to AWS; then once more for each call and each fault that
passes: the process dies before or after it, the call fails with or without effect, its answer or
its message is lost.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from roundsman.testing.faults import ABLE, CALLS, READS, Fault, Faults
from roundsman.testing.world.trace import InvariantBroken
from roundsman.testing.world.world import World

Story = Callable[[World], object]
"""What happens in a world, and what must be so then: it raises AssertionError where it is not."""

PASSING = frozenset(Fault) - {Fault.REFUSED}
"""The faults that pass. What AWS refuses for good is for people to mend, who are alerted."""


NEVER_HIT = "no call was hit; has `make` given the faults to its World?"


@dataclass(frozen=True, slots=True)
class CrashReport:
    """How much was tried: the calls of the run without faults, by name, and the runs with them."""

    calls: tuple[str, ...]
    runs: int


class StoryBroken(AssertionError):
    """A story ends otherwise than without faults. `call` was hit by `fault`; `world` is its end."""

    def __init__(self, world: World, hit: str, faults: str, error: Exception) -> None:
        self.world = world
        what = (
            str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        )
        trace = "" if isinstance(error, InvariantBroken) else f"\n\nWhat happened:\n{world.trace}"
        super().__init__(f"{hit}; faults={faults} repeats it\n\n{what}{trace}")


def crash_everywhere(
    story: Story,
    make: Callable[[Faults], World],
    *,
    faults: Collection[Fault] = PASSING,
    then: Sequence[int] = (),
) -> CrashReport:
    """Tell the story with each call failing in each of these ways, and let it come to its end.

    With `then`, the process crashes once more after so many further calls, for each number in
    turn: the recovery is hit as well. `make` makes the world, with the faults that it is given.
    Raises what the story raises without faults; ValueError where no call can have one of these
    faults; and StoryBroken with the call, the fault and the trace where the story fails with one,
    an invariant is broken, an order has not ended or a message is dead.
    """
    world = make(Faults())
    _tell(story, world)
    calls, runs = tuple(world.faults.calls), 0
    if not (hits := list(_hits(calls, faults))):
        raise ValueError(
            f"no fault can be tried: of {len(calls)} calls none has one of these faults"
        )
    for number, fault in hits:
        for later in then or (0,):
            chosen = Faults().at(number, fault)
            said = f"Faults().at({number}, Fault.{fault.name})"
            if later:
                chosen.at(number + later, Fault.CRASH_AFTER)
                said += f".at({number + later}, Fault.CRASH_AFTER)"
            _tell_hit(story, make(chosen), calls[number - 1], said, fault)
            runs += 1
    return CrashReport(calls, runs)


def applies(fault: Fault, call: str) -> bool:
    """Whether a call of that name can fail in that way."""
    if fault is Fault.UNKNOWN and call in READS:
        return False  # without an effect it is NOT_DONE
    return call in ABLE.get(fault, CALLS)


def _hits(calls: Sequence[str], faults: Collection[Fault]) -> Iterator[tuple[int, Fault]]:
    for number, call in enumerate(calls, start=1):
        for fault in Fault:
            if fault in faults and applies(fault, call):
                yield number, fault


def _tell_hit(story: Story, world: World, call: str, faults: str, fault: Fault) -> None:
    hit = f"At the call {call!r}, {fault}"
    try:
        _tell(story, world)
    except Exception as error:
        raise StoryBroken(world, hit, faults, error) from error
    happened = [hit.name for hit in world.faults.happened[:1]]
    if happened != [call]:
        what = f"hit was {happened}, not {call}" if happened else NEVER_HIT
        other = AssertionError(f"the story is not the same twice: {what}")
        raise StoryBroken(world, hit, faults, other)


def _tell(story: Story, world: World) -> None:
    story(world)
    world.run()
    world.check_all_ended()
    if world.queues.dead:
        raise AssertionError(f"dead letters: {', '.join(map(str, world.queues.dead))}")
