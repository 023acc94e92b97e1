"""A task that was submitted, one that was started, and a pass over them."""

from datetime import timedelta

from roundsman.engine.due import shard_of
from roundsman.model.instants import MINUTE
from roundsman.supervisor.supervisor import PassReport
from roundsman_testing.faults import Faults
from tests.support.machine_world import T0, plan, step
from tests.support.shell_world import SHARDS, Shells

first = step("first")
second = step("second", first, complete_within=timedelta(seconds=5))
LINE = plan(first, second)
LATER = T0 + 60 * MINUTE

HEAD = next(f"head-{n}" for n in range(99) if shard_of(f"head-{n}", SHARDS) == 0)
BESIDE = [f"beside-{n}" for n in range(99) if shard_of(f"beside-{n}", SHARDS) == 0][:5]


def submitted(made: Shells) -> Shells:
    made.submit()
    made.outbox.sent.clear()
    return made


def started() -> Shells:
    """Its first step is under way, and its agent will never answer."""
    shells = submitted(Shells(LINE))
    shells.start()
    shells.outbox.sent.clear()
    return shells


def passed(shells: Shells, faults: Faults | None = None) -> PassReport:
    return shells.supervisor(faults).make_pass(stop_at=shells.now + MINUTE)


# --- Moving on what is overdue ---------------------------------------------------------------
