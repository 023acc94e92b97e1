"""A backup of a world's tables, and their restore, as docs/runbook/restore.md says."""

from collections.abc import Sequence

from roundsman.model.events import CommandSource, Reconcile
from roundsman.model.task import Task
from roundsman.testing import World

RECONCILES = CommandSource("reconcile-1", "amy", "the tables were restored")


class Backup:
    """The tables of a world at the present instant."""

    def __init__(self, world: World) -> None:
        processes = world.processes
        self.at = world.now
        self._world = world
        self._tables = processes.tables.backup()

    def restore(self) -> None:
        """Put the tables back, with every queue empty and every function started anew.

        The world's invariants hold between two decisions, and not over a restore: they are checked
        no more.
        """
        world, processes = self._world, self._world.processes
        watch = processes.watch
        world._check = lambda: None  # type: ignore[method-assign]
        processes._looked_at._on_load = lambda _: None
        processes.store.on_write = lambda task: _watched(world, task)
        processes.tables.restore(self._tables)
        world.queues._mail.clear()
        processes.forget_supervisors()
        processes._schedulers.clear()
        watch.tasks.clear()
        watch.due.clear()
        for task in processes.store.tasks():
            _watched(world, task)

    def reconcile(self, orders: Sequence[str]) -> None:
        """Send each order its command, and wait until it is carried out."""
        world = self._world
        for order in orders:
            world.operator.ask(order, Reconcile(RECONCILES, self.at))
        world.run(until=lambda: all(_is_reconciled(world, order) for order in orders))


def _is_reconciled(world: World, order: str) -> bool:
    return RECONCILES.command_id in world.processes.watch.tasks[order].command_ids


def _watched(world: World, task: Task) -> None:
    watch = world.processes.watch
    watch.tasks[task.task_id] = task
    if task.ended:
        watch.due.pop(task.task_id, None)
    else:
        watch.due[task.task_id] = task.due_at
