"""The task record: one item that holds a task and all its steps.

An absent step record means a step that nothing has happened to: Pending, never claimed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from roundsman.model._checks import LONGEST_ERROR_TYPE
from roundsman.model.json import Json
from roundsman.model.states import DONE, END_STATES, ProcessState, TaskState

SCHEMA = 1
"""The record format that this code writes. A record with a higher number is left alone."""


@dataclass(frozen=True, slots=True)
class StepError:
    """Why an attempt failed: a short type (`CardDeclined`) and a sentence for people."""

    type: str
    message: str

    def cut(self) -> "StepError":
        """The error in at most 100 and 1,000 bytes, whatever an agent sent.

        It goes into the record, the history, an alert and a status, and a record that outgrew
        its 400 KB could never be written again.
        """
        return StepError(_cut(self.type, LONGEST_ERROR_TYPE), _cut(self.message, 1_000))


def _cut(text: str, size: int) -> str:
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")


class AfterUndo(StrEnum):
    """What becomes of a step whose effect is undone while its task goes on."""

    SKIPPED = "skipped"  # an item of a fan-out that may fail
    NEXT_AGENT = "next agent"  # settled at one agent, the step begins at another
    NEW_KEY = "new key"  # settled under one key, the step begins under another


class Effect(StrEnum):
    """What is proven of the effect of a step's requests; without a proof it is unknown."""

    NONE = "none"  # no request has had its effect, and none can have it any more
    STANDS = "stands"  # it took place


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step of one task: the pattern's own fields, and what an operator asks first.

    Instants are epoch ms; None where there is no such instant.
    """

    process_state: ProcessState = ProcessState.PENDING
    locked_by: str | None = None
    """The lock token of the request that is under way."""
    complete_by: int | None = None
    """While Processing, when the scheduler asks whether something is wrong; the agent's right to
    act may end later (`roundsman.engine.time_limits`). While Pending and ready, the time by which
    the step should have been started."""
    failure_count: int = 0
    not_before: int | None = None
    started_at: int | None = None
    """When the current attempt was claimed."""
    finished_at: int | None = None
    result: Json = None
    error: StepError | None = None
    agent: str | None = None
    """The agent of the step, where it is not the plan's first."""
    round: int = 1
    """The generation of the idempotency key; a fresh key begins the next."""
    acts_until: int | None = None
    """How long a copy of an earlier request may still act, where that is ahead."""
    outcome_unknown: bool = False
    """An attempt ended without a definite answer; for an undone step, its effect was never
    confirmed."""
    held_since: int | None = None
    """Set while the step waits only because its agent takes no work."""
    heartbeat_by: int | None = None
    """When the attempt must have shown progress, where that is before `complete_by`."""
    heard_at: int | None = None
    """When the agent last reported on the present attempt (progress, or waiting for a callback)."""
    waiting: bool = False
    """The attempt waits for a callback."""
    uncounted_timeouts: int = 0
    """Timeouts in a row that were attributed to a backlog and not counted as attempts."""
    breaker_rejections: int = 0
    """Calls in a row that the circuit breaker rejected and that were not counted as attempts."""
    tried: tuple[str, ...] = ()
    """The agents that were tried before `agent`."""
    after_undo: "AfterUndo | None" = None
    """What follows the step's undo, where that is not Undone."""
    effect: "Effect | None" = None
    """What is proven of the effect of the requests so far; None where nothing is. An agent proves
    it (`Reply.effect`), or a person states it."""
    extra: int = 0
    """ms that a person added while an attempt was under way."""
    granted: int = 0
    """ms added to each attempt from the next claim on: earlier `extra`."""

    @property
    def overdue_at(self) -> int | None:
        """When what is under way is overdue: at its heartbeat's end, or at its own."""
        return self.complete_by if self.heartbeat_by is None else self.heartbeat_by

    @property
    def under_way(self) -> bool:
        """Whether a request is out: the step is Processing, or its undo is at the agent."""
        if self.process_state is ProcessState.UNDOING:
            return self.locked_by is not None
        return self.process_state is ProcessState.PROCESSING

    @property
    def refused(self) -> bool:
        """Whether the step has failed, and it is proven that it had no effect.

        A refusal alone is no proof: another try, or another copy of the request, may have been
        taken.
        """
        return self.process_state is ProcessState.ERROR and self.effect is Effect.NONE


UNTOUCHED = StepRecord()


@dataclass(frozen=True, slots=True)
class Owed:
    """A status or an alert that a decision promised and that is not known to be sent.

    `seq` is the record's Version at the decision, `at` its instant, `detail` its reason.
    """

    kind: str  # "status" or "alert"
    name: str  # the status ("completed") or the alert's kind ("task_archived")
    seq: int
    at: int
    detail: str


@dataclass(frozen=True, slots=True)
class Termination:
    """The task takes no further step forward: how it will end, and what it failed of.

    `undo` says that what may have happened is compensated first. `error` is what failed; without
    one a person asked for the end.
    """

    how: TaskState
    why: str
    step: str | None = None
    undo: bool = False
    error: StepError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task as stored. `version` counts decisions, and every decision is conditional on it.

    `lane` and `due_at` are the keys of the `due` index (see `roundsman.engine.due`). `complete_by`
    counts from `start_at`. `retain_for` is in ms. `expires_at` (epoch ms) is set once the task
    may be removed. `command_ids` are the last operators' commands that were done.
    `fan_outs` says of each step that runs once an item how many items there are, once that is
    known; its records are then `name[0]` and so on. `held_until` is the end of the time by which
    `complete_by` was moved because an agent was held. `failure` is the group of the failure that
    the task ended in (`roundsman.model.failure`); None while it has not.
    """

    task_id: str
    workflow: str
    plan: str
    state: TaskState
    version: int
    created_at: int
    start_at: int
    complete_by: int
    retain_for: int
    shard: int
    lane: str
    due_at: int
    steps: Mapping[str, StepRecord] = field(default_factory=dict)
    owed: tuple[Owed, ...] = ()
    ending: Termination | None = None
    ended_at: int | None = None
    expires_at: int | None = None
    priority: str = "normal"
    tenant: str | None = None
    reply_to: str | None = None
    correlation_id: str | None = None
    command_ids: tuple[str, ...] = ()
    fan_outs: Mapping[str, int] = field(default_factory=dict)
    held_until: int | None = None
    failure: str | None = None

    @property
    def ended(self) -> bool:
        """Whether the task is in an end state. A person may still resubmit it from some."""
        return self.state in END_STATES

    def step(self, name: str) -> StepRecord:
        """The step's record; of a step that nothing happened to, an untouched one."""
        return self.steps.get(name, UNTOUCHED)

    def answers(self) -> dict[str, Json]:
        """What the Processed steps answered, by record: an item of a fan-out by its own name."""
        return answers_of(self.steps)

    def results(self) -> dict[str, Json]:
        """What the steps that are done answered, by step.

        Of a fan-out a list in the items' order, with None for an item that was left out; it is
        there once every item is done.
        """
        found = self.answers()
        for name, count in self.fan_outs.items():
            items = item_names(name, count)
            if all(self.step(item).process_state in DONE for item in items):
                found[name] = [found.get(item) for item in items]
            for item in items:
                found.pop(item, None)
        return found


def answers_of(steps: Mapping[str, StepRecord]) -> dict[str, Json]:
    """What those of the steps that are Processed answered."""
    return {
        name: record.result
        for name, record in steps.items()
        if record.process_state is ProcessState.PROCESSED
    }


def item_names(step: str, count: int) -> tuple[str, ...]:
    """The names of the records of a step that runs once an item: `pick[0]`, `pick[1]`."""
    return tuple(f"{step}[{index}]" for index in range(count))


def item_place(name: str) -> tuple[str, int] | None:
    """The step and the place of a record that is one item's: `pick[3]` is pick's 3. Else None."""
    found = _ITEM.fullmatch(name)
    return (found[1], int(found[2])) if found else None


def step_of(name: str) -> str:
    """The step that a record's name stands for: `pick` for `pick[3]`, and `pick` for itself."""
    found = item_place(name)
    return found[0] if found else name


_ITEM = re.compile(r"(.+)\[([0-9]+)\]")


PERFORM, UNDO = "perform", "undo"

_UNDOES = frozenset({ProcessState.UNDOING, ProcessState.UNDONE, ProcessState.UNDO_ERROR})


def operation_of(record: StepRecord) -> str:
    """What the step is at, by its state: to perform, or to undo."""
    return UNDO if record.process_state in _UNDOES else PERFORM


def idempotency_key(task_id: str, step: str, operation: str, record: StepRecord) -> str:
    """The key of one effect: the same across every attempt, redelivery and resubmission.

    `operation` is `perform` or `undo`. A remote service answers an old key with its old result,
    so a new round (after an undo) and another agent have keys of their own.
    """
    parts = [task_id, step, operation]
    if record.round > 1:
        parts.append(str(record.round))
    if record.agent:
        parts.append(record.agent)
    return "/".join(parts)
