"""The stacks that are simulated: as it comes, with one limit as it comes, and as planned."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.scale.plan import (
    AS_IT_COMES,
    AT_MOST,
    MOST_SHARDS,
    SHARDS,
    Functions,
    Measured,
    Needs,
    Profile,
    needs_of,
    setting,
    warm,
)
from benchmarks.scale.simulation import DUE, ORDERS, TASKS, Stack
from roundsman.model.instants import SECOND
from roundsman_dev.template import Template, mapping_of, part

ROOT = Path(__file__).parents[2]

TABLES = {"tasks": TASKS, "due": DUE, "orders": ORDERS}
"""The table or index of a limit."""
ROLES = {"agents": "agent", "scheduler": "scheduler", "submission": "submission"}
"""The functions of a limit."""


def concurrencies() -> list[int]:
    """Return the values that the template allows for `SchedulerConcurrency`."""
    document = Template.read(ROOT / "stacks" / "engine.yaml").document
    allowed = mapping_of(part(document, "Parameters")["SchedulerConcurrency"])["AllowedValues"]
    return [int(str(value)) for value in allowed] if isinstance(allowed, list) else []


def as_it_comes(measured: Measured) -> Stack:
    """Return the stack with the template's defaults, and with new tables."""
    return _stack(measured, AS_IT_COMES, _writes(measured, "new_table_writes"), SHARDS)


def at_most(measured: Measured) -> Stack:
    """Return the stack with the largest settings, its tables as warm as a quota allows."""
    return _stack(measured, AT_MOST, _writes(measured, "table_writes"), MOST_SHARDS)


def alone(limit: str, measured: Measured) -> Stack:
    """Return a stack in which only this limit (`Limit.id`) is as it comes, and the rest at most.

    A limit of the due index is one of its default shards too. Raises KeyError for a limit that is
    not simulated.
    """
    functions, writes = dict(AT_MOST), _writes(measured, "table_writes")
    if limit in ROLES:
        functions[ROLES[limit]] = AS_IT_COMES[ROLES[limit]]
    elif limit != "lanes":
        writes[TABLES[limit]] = measured.quotas["new_table_writes"]
    return _stack(measured, functions, writes, SHARDS if limit in ("due", "lanes") else MOST_SHARDS)


def planned(profile: Profile, measured: Measured, allowed: Sequence[int]) -> Stack:
    """Return one stack of the plan, with concurrencies that are `allowed`.

    Raises ValueError if the plan has no such stack.
    """
    needs = needs_of(profile, measured)
    functions = dict[str, Functions]()
    for role, usual in AS_IT_COMES.items():
        instances = setting(needs.instances[role], allowed)
        if instances is None:
            raise ValueError(f"no concurrency is enough for {profile.each} orders a second: {role}")
        # Of an agent, the plan's batch is what BatchSize is set to.
        batch = int(profile.batch) if role == "agent" else usual.batch
        functions[role] = Functions(max(usual.instances, instances), profile.memory, batch)
    return _stack(measured, functions, warmth(needs, measured), needs.shards)


def warmth(needs: Needs, measured: Measured) -> dict[str, int]:
    """Return the write units a second that each table and the index is to be warm for.

    TasksTable and its index are warmed alike.
    """
    need = {TASKS: needs.table_writes, DUE: needs.table_writes, ORDERS: needs.order_writes}
    return {table: warm(units, measured.quotas) for table, units in need.items()}


def _writes(measured: Measured, quota: str) -> dict[str, int]:
    return dict.fromkeys((TASKS, DUE, ORDERS), measured.quotas[quota])


def _stack(
    measured: Measured, functions: Mapping[str, Functions], writes: Mapping[str, int], shards: int
) -> Stack:
    one = measured.quotas["partition_writes"]
    return Stack(
        instances={role: each.instances for role, each in functions.items()},
        message_ms={
            role: [
                SECOND * measured.seconds(role, each.memory, together)
                for together in range(1, each.batch + 1)
            ]
            for role, each in functions.items()
        },
        shards=shards,
        partitions={table: units // one for table, units in writes.items()},
        partition_writes=one,
    )
