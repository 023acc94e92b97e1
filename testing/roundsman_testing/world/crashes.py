"""Exhaustive fault tests: each call of a scenario fails in each possible way, one per run.

    def declined(world: World) -> None:
        world.on("charge_card").refuses("CardDeclined")
        order_id = world.submit({"total": "39.80"})
        world.run()
        assert world.task(order_id).state is TaskState.UNDONE

    crash_everywhere(declined, lambda faults: World(order_fulfilment, faults=faults))

A story is a scenario: a function that sends orders, runs the world and asserts the result. It runs
once without faults, which counts the calls to AWS, and then once for each call and each temporary
fault: the process dies before or after the call, the call fails with or without effect, its answer
or its message is lost, a table is throttled, in conflict, or answers with what was there before.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from roundsman_testing.faults import ABLE, CALLS, READS, TABLE_CALLS, Fault, Faults
from roundsman_testing.world.trace import InvariantBroken
from roundsman_testing.world.world import World

Story = Callable[[World], object]
"""A scenario in a world. It raises AssertionError if the result is wrong."""

PASSING = frozenset(Fault) - {Fault.REFUSED}
"""The temporary faults. A call that AWS refuses permanently needs a person, who is alerted."""


NEVER_HIT = "no call was hit; has `make` given the faults to its World?"


@dataclass(frozen=True, slots=True)
class CrashReport:
    """How much `crash_everywhere` tried."""

    calls: tuple[str, ...]
    """The names of the calls in the run without faults, in order."""
    runs: int
    """The number of runs with faults."""


class StoryBroken(AssertionError):
    """A story failed in a run with a fault, although it passes without faults.

    The message has the call, the fault, the `Faults` that repeat the run, and the end of the run,
    with a file that has the trace. `world` is the world at the end of the run.
    """

    def __init__(self, world: World, hit: str, faults: str, error: Exception) -> None:
        self.world = world
        what = (
            str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        )
        if not isinstance(error, InvariantBroken):
            what = world.failed(what)
        super().__init__(f"{hit}; faults={faults} repeats it\n{what}")


def crash_everywhere(
    story: Story,
    make: Callable[[Faults], World],
    *,
    faults: Collection[Fault] = PASSING,
    then: Sequence[int] = (),
) -> CrashReport:
    """Run the story once for each call and each of these faults that can hit it, to its end.

    `make` creates the world and must pass on the faults that it is given. With `then`, there is one
    such run for each number in it, and the process crashes a second time that many calls later, so
    that the recovery is tested as well.

    Raises what the story raises without faults, and ValueError if no call can have one of these
    faults. Raises StoryBroken if, with a fault, the story fails, an invariant is broken, an order
    does not end or a message becomes a dead letter.
    """
    world = make(Faults())
    _run(story, world)
    calls, runs = tuple(world.faults.calls), 0
    if not (hits := list(_hits(calls, faults))):
        raise ValueError(
            f"no fault can be tried: of {len(calls)} calls none has one of these faults"
        )
    for number, fault in hits:
        for later in then or (0,):
            chosen = Faults().at(number, fault)
            expression = f"Faults().at({number}, Fault.{fault.name})"
            if later:
                chosen.at(number + later, Fault.CRASH_AFTER)
                expression += f".at({number + later}, Fault.CRASH_AFTER)"
            _run_with_fault(story, make(chosen), calls[number - 1], expression, fault)
            runs += 1
    return CrashReport(calls, runs)


def applies(fault: Fault, call: str) -> bool:
    """Whether a call of that name can fail in that way."""
    if fault is Fault.UNKNOWN and call in READS:
        return False  # a read has no effect, so this is the same as NOT_DONE
    if fault is Fault.NOT_DONE and call in TABLE_CALLS:
        return False  # THROTTLED is the same, by the adapter that runs on AWS
    if fault is Fault.LEFT_OUT:
        return False  # nearly every load reads one record
    return call in ABLE.get(fault, CALLS)


def _hits(calls: Sequence[str], faults: Collection[Fault]) -> Iterator[tuple[int, Fault]]:
    for number, call in enumerate(calls, start=1):
        for fault in Fault:
            if fault in faults and applies(fault, call):
                yield number, fault


def _run_with_fault(story: Story, world: World, call: str, faults: str, fault: Fault) -> None:
    hit = f"At the call {call!r}, {fault}"
    try:
        _run(story, world)
    except Exception as error:
        raise StoryBroken(world, hit, faults, error) from error
    happened = [hit.name for hit in world.faults.happened[:1]]
    if happened != [call]:
        what = f"hit was {happened}, not {call}" if happened else NEVER_HIT
        other = AssertionError(f"the story is not the same twice: {what}")
        raise StoryBroken(world, hit, faults, other)


def _run(story: Story, world: World) -> None:
    story(world)
    world.run()
    world.check_all_ended()
    if world.queues.dead:
        raise AssertionError(f"dead letters: {', '.join(map(str, world.queues.dead))}")
