"""What the author of a workflow writes: steps, their retries and compensations, strategies.

A definition is data. One that could never run is refused when its module is imported, with a
sentence that says what to change; `roundsman.model.plan` turns one that can into its stored form.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from roundsman.errors import DefinitionError
from roundsman.model._checks import (
    LONGEST_ERROR_TYPE,
    check_attempt_time,
    check_count,
    check_duration,
    check_name,
    check_tuple,
    check_type,
)
from roundsman.model.expressions import compile_condition, steps_read

MOST_STEPS = 100  # a task is one item of at most 400 KB, and one decision looks at all of it
DEFAULT_RESULT_LIMIT = 4 * 1024
LARGEST_RESULT = 32 * 1024
COMPENSATION_ATTEMPTS = 8


class Priority(StrEnum):
    """Which of an agent's two request queues a task's requests travel on."""

    NORMAL = "normal"
    URGENT = "urgent"


@dataclass(frozen=True)
class Undo:
    """On failure: compensate every step that may have had an effect, newest first."""


@dataclass(frozen=True)
class Archive:
    """On failure: keep the task as it is, alert, and wait for a person."""


@dataclass(frozen=True)
class Wait:
    """On exhausted attempts: wait `delay`, try once more, at most `times`; `then` the rest.

    A permanent failure does not wait: it goes to `then` at once.
    """

    delay: timedelta
    times: int
    then: Undo | Archive = field(default_factory=Undo)

    def __post_init__(self) -> None:
        check_duration("Wait: delay", self.delay)
        check_count("Wait: times", self.times)
        if not isinstance(self.then, Undo | Archive):
            raise DefinitionError("Wait: then must be Undo() or Archive(): a wait has an end")


Strategy: TypeAlias = Undo | Archive | Wait


@dataclass(frozen=True, kw_only=True)
class Retry:
    """How often a step is attempted, and how long it waits in between.

    The wait before attempt n+1 is drawn from 0 to `first_delay` doubled n-1 times, at most
    `max_delay` (exponential backoff with full jitter). An error whose type is in `not_on`
    is permanent whatever the agent says.
    """

    max_attempts: int = 3
    first_delay: timedelta = timedelta(seconds=1)
    max_delay: timedelta = timedelta(minutes=5)
    not_on: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_count("Retry: max_attempts", self.max_attempts)
        check_duration("Retry: first_delay", self.first_delay)
        check_duration("Retry: max_delay", self.max_delay)
        if self.first_delay > self.max_delay:
            raise DefinitionError("Retry: first_delay is longer than max_delay; raise max_delay")
        check_tuple("Retry: not_on", self.not_on, (str,), 'error types, such as ("CardDeclined",)')
        for error_type in self.not_on:
            if not 0 < len(error_type.encode()) <= LONGEST_ERROR_TYPE:
                raise DefinitionError(
                    f"Retry: not_on: {error_type!r} would never match; an error's type has "
                    f"1 to {LONGEST_ERROR_TYPE} bytes"
                )


@dataclass(frozen=True, kw_only=True)
class Compensation:
    """How a step is undone; its code is the agent's function marked `@agent.compensates(step)`.

    `complete_within` is the step's own where None. `fences_late_performs` promises that the
    remote service, once it has undone a key, refuses a perform with that key for ever; without
    the promise an undo waits until no perform can still be on its way.
    """

    complete_within: timedelta | None = None
    retry: Retry = Retry(max_attempts=COMPENSATION_ATTEMPTS)
    fences_late_performs: bool = False

    def __post_init__(self) -> None:
        if self.complete_within is not None:
            check_attempt_time("Compensation: complete_within", self.complete_within)
        check_type("Compensation: retry", self.retry, Retry)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One unit of work at one agent, or at the first of several that can take it.

    Either `agent` or `agents`, in the order of preference. `after` names what must be done
    first, as steps or by name. `complete_within` is the agent's time for one attempt; where
    `heartbeat_within` is given, an attempt that shows no progress for so long is overdue earlier.
    `when` is a JMESPath expression over `{"input", "results"}`; false means that the step is
    skipped. `for_each` is one that gives a list: the step runs once for each item of it, and
    `tolerate` is the share of the items that may fail. `on_failure` is the workflow's where None.
    `result_limit` is the most bytes of JSON that the step may answer with, for each item.
    """

    name: str
    complete_within: timedelta
    agent: str = ""
    agents: tuple[str, ...] = ()
    # A repr or comparison through `after` would walk every path of the graph: exponential.
    after: tuple["Step | str", ...] = field(default=(), repr=False, compare=False)
    retry: Retry = Retry()
    compensation: Compensation | None = None
    on_failure: Strategy | None = None
    when: str | None = None
    result_limit: int = DEFAULT_RESULT_LIMIT
    heartbeat_within: timedelta | None = None
    for_each: str | None = None
    tolerate: float = 0

    def __post_init__(self) -> None:
        where = f"step {self.name!r}"
        check_name(where, self.name)
        self._check_agents(where)
        check_attempt_time(f"{where}: complete_within", self.complete_within)
        self._check_heartbeat(where)
        self._check_fan_out(where)
        check_tuple(f"{where}: after", self.after, (str, Step), "steps, such as (charge_card,)")
        check_type(f"{where}: retry", self.retry, Retry)
        if self.compensation is not None:
            check_type(f"{where}: compensation", self.compensation, Compensation)
        if self.on_failure is not None:
            _check_strategy(where, self.on_failure)
        if self.when is not None:
            compile_condition(f"{where}: when", self.when)
        check_count(f"{where}: result_limit", self.result_limit)
        if self.result_limit > LARGEST_RESULT:
            raise DefinitionError(
                f"{where}: result_limit is {self.result_limit} bytes; at most {LARGEST_RESULT} fit"
            )

    def _check_agents(self, where: str) -> None:
        check_tuple(f"{where}: agents", self.agents, (str,), 'names, such as ("payment", "backup")')
        if self.agents and self.agent not in ("", self.agents[0]):
            raise DefinitionError(f"{where}: name its agent, or its agents in order, and not both")
        if self.agents:  # frozen, as all of a definition is
            object.__setattr__(self, "agent", self.agents[0])
        names = self.agent_names()
        for agent in names:
            check_name(f"{where}: agent", agent)
        if len(set(names)) < len(names):
            raise DefinitionError(f"{where}: an agent is named twice in agents; remove one")

    def _check_heartbeat(self, where: str) -> None:
        if self.heartbeat_within is None:
            return
        check_duration(f"{where}: heartbeat_within", self.heartbeat_within)
        if self.heartbeat_within >= self.complete_within:
            raise DefinitionError(f"{where}: heartbeat_within must be shorter than complete_within")

    def _check_fan_out(self, where: str) -> None:
        tolerated = self.tolerate
        if isinstance(tolerated, bool) or not isinstance(tolerated, int | float):
            raise DefinitionError(f"{where}: tolerate must be a share such as 0.1")
        if not 0 <= tolerated < 1:
            raise DefinitionError(f"{where}: tolerate must be at least 0 and below 1")
        if self.for_each is not None:
            compile_condition(f"{where}: for_each", self.for_each)
        elif tolerated:
            raise DefinitionError(f"{where}: tolerate needs for_each: a share of what?")

    def agent_names(self) -> tuple[str, ...]:
        """The agents that can take the step, the one that is asked first in front."""
        return self.agents or (self.agent,)

    def after_names(self) -> tuple[str, ...]:
        """The names of the steps that this one comes after."""
        return tuple(step if isinstance(step, str) else step.name for step in self.after)


@dataclass(frozen=True, kw_only=True)
class Workflow:
    """Steps that complete, or are undone, as a whole.

    `complete_within` counts from when a task may start. `retain_for` is how long a finished
    task is kept; zero, as in asynq, means not at all. Raises DefinitionError where the
    definition could never run.
    """

    name: str
    steps: Sequence[Step]
    complete_within: timedelta
    on_failure: Strategy = Archive()
    retain_for: timedelta = timedelta(0)
    priority: Priority = Priority.NORMAL
    point_of_no_return: Step | None = None

    def __post_init__(self) -> None:
        where = f"workflow {self.name!r}"
        check_name(where, self.name)
        check_duration(f"{where}: complete_within", self.complete_within)
        check_type(f"{where}: retain_for", self.retain_for, timedelta)
        if self.retain_for < timedelta(0):
            raise DefinitionError(f"{where}: retain_for must be zero or more")
        if self.retain_for:
            check_duration(f"{where}: retain_for", self.retain_for)
        _check_strategy(where, self.on_failure)
        check_type(f"{where}: priority", self.priority, Priority)
        self._check_steps(where)
        self._check_order(where)
        point = self.point_of_no_return
        if point is not None and point not in self.steps:
            raise DefinitionError(f"{where}: point_of_no_return must be one of its steps")

    def _check_steps(self, where: str) -> None:
        if isinstance(self.steps, list):  # frozen, as all of a definition is
            object.__setattr__(self, "steps", tuple(self.steps))
        check_tuple(f"{where}: steps", self.steps, (Step,), "steps, such as (charge_card,)")
        if not self.steps:
            raise DefinitionError(f"{where}: it has no steps")
        if len(self.steps) > MOST_STEPS:
            raise DefinitionError(
                f"{where}: {len(self.steps)} steps; at most {MOST_STEPS} fit in one task"
            )
        names = [step.name for step in self.steps]
        for step in self.steps:
            if names.count(step.name) > 1:
                raise DefinitionError(f"{where}: two steps are named {step.name!r}; rename one")
            if step.complete_within > self.complete_within:
                raise DefinitionError(
                    f"{where}: step {step.name!r} may take longer than the whole workflow; "
                    "raise the workflow's complete_within or lower the step's"
                )

    def _check_order(self, where: str) -> None:
        listed = {step.name: step for step in self.steps}
        for step in self.steps:
            for before in step.after:
                if isinstance(before, str):
                    if before not in listed:
                        raise DefinitionError(
                            f"{where}: step {step.name!r} comes after {before!r}, "
                            "which no step is named"
                        )
                elif listed.get(before.name) is not before:
                    raise DefinitionError(
                        f"{where}: step {step.name!r} comes after {before.name!r}, "
                        "which is not listed in steps; add it"
                    )
        try:
            TopologicalSorter({s.name: s.after_names() for s in self.steps}).prepare()
        except CycleError as error:
            circle = " after ".join(reversed(error.args[1]))
            raise DefinitionError(f"{where}: no step could start first: {circle}") from error
        for step in self.steps:
            if step.for_each is not None:
                _check_read(where, step, steps_read(step.for_each), listed)


def _check_read(where: str, step: Step, read: frozenset[str], listed: Mapping[str, Step]) -> None:
    """A list of what another step answers is there only once that step is done."""
    before: set[str] = set()
    ahead = [*step.after_names()]
    while ahead:
        name = ahead.pop()
        if name not in before:
            before.add(name)
            ahead += listed[name].after_names()
    for name in sorted(read - before):
        missing = "which may come later; add it to after"
        raise DefinitionError(
            f"{where}: for_each of step {step.name!r} reads the result of {name!r}, "
            f"{missing if name in listed else 'which no step is named'}"
        )


def _check_strategy(where: str, value: object) -> None:
    if not isinstance(value, Undo | Archive | Wait):
        raise DefinitionError(f"{where}: on_failure must be Undo(), Archive() or Wait(...)")
