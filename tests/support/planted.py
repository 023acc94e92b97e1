"""A store that lacks its guard, for tests that must notice it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from roundsman.model.events import HistoryRow
from roundsman.model.json import Json
from roundsman.model.task import Task
from roundsman.ports import NO_INPUTS, Saved, Superseded
from roundsman_testing.memory import MemoryStore


def no_version_condition(patch: pytest.MonkeyPatch) -> None:
    """Let each write of a task succeed, whichever version of it is stored."""
    save, clear_owed, rearm = MemoryStore.save, MemoryStore.clear_owed, MemoryStore.rearm

    def stored(store: MemoryStore, task: Task) -> int:
        found = store.stored(task.task_id)
        return task.version if found is None else found.version

    def saves(
        store: MemoryStore,
        task: Task,
        *,
        seen: int,
        history: Sequence[HistoryRow] = (),
        inputs: Mapping[str, Json] = NO_INPUTS,
        search: tuple[str, ...] | None = None,
    ) -> Saved | Superseded:
        del seen
        before = stored(store, task)
        return save(store, task, seen=before, history=history, inputs=inputs, search=search)

    def clears(store: MemoryStore, task: Task) -> Saved | Superseded:
        return clear_owed(store, replace(task, version=stored(store, task)))

    def rearms(store: MemoryStore, task: Task, due_at: int) -> Saved | Superseded:
        return rearm(store, replace(task, version=stored(store, task)), due_at)

    patch.setattr(MemoryStore, "save", saves)
    patch.setattr(MemoryStore, "clear_owed", clears)
    patch.setattr(MemoryStore, "rearm", rearms)
