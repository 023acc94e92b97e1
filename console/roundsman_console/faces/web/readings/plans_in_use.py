"""The plans by which orders run now: those of some orders of each workflow."""

from collections.abc import Collection

from roundsman.definition.plan import Plan
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.instants import MINUTE
from roundsman_console.base.clock import now
from roundsman_console.faces.web.readings.cache import Cached
from roundsman_console.facts.orders.census import StackCensus, take_census
from roundsman_console.inspector import Inspector

READ = 100
"""The number of orders whose records are read for their plans, some of each workflow."""
MOST = 50
"""The number of plans that are read."""

_CENSUS: Cached[StackCensus] = Cached(MINUTE)  # it may read the whole index
_PLANS: Cached[list[Plan]] = Cached(MINUTE)


def census_of(inspector: Inspector, known: Collection[str] = ()) -> StackCensus:
    """Count the orders of each workflow, at most once a minute; `known` are listed in any case."""
    return _CENSUS.get(inspector, lambda: take_census(inspector.stack, known))


def plans_in_use(inspector: Inspector) -> list[Plan]:
    """Return the newest plan of each workflow among the orders that were read, by its name."""
    return _PLANS.get(inspector, lambda: _read(inspector))


def forget(inspector: Inspector) -> None:
    """Read both again when they are asked for next."""
    _CENSUS.forget(inspector)
    _PLANS.forget(inspector)


def _read(inspector: Inspector) -> list[Plan]:
    stack = inspector.stack
    tasks = stack.records.load_many(census_of(inspector).samples(READ), now()).tasks.values()
    newest = {task.workflow: task.plan for task in sorted(tasks, key=lambda one: one.created_at)}
    found = []
    for _, plan in sorted(newest.items())[:MOST]:
        try:
            read = stack.plans.plan(plan)
        except (SchemaTooNew, UnreadableRecord):
            read = None
        if read is not None:
            found.append(read)
    return found
