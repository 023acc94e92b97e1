"""Workflow definitions: steps, their retries and compensations, and the strategies on failure.

A definition is data. A definition that can never run raises DefinitionError when its module is
imported; the message states what to change. `roundsman.definition.plan` turns a definition into its
stored form.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from roundsman.definition.expressions import (
    NotThere,
    Shape,
    answers_asked_for,
    compile_condition,
    evaluate_instant,
    evaluate_list,
    paths_read,
    shape_of,
    steps_read,
)
from roundsman.errors import DefinitionError, kind_of
from roundsman.model.checks import (
    ENGINE_FIELDS,
    LONGEST_ERROR_TYPE,
    check_attempt_time,
    check_count,
    check_duration,
    check_name,
    check_tuple,
    check_type,
    check_wait,
    shown,
)
from roundsman.model.instants import SKEW, format_duration, milliseconds
from roundsman.model.json import Json, size_in_bytes
from roundsman.model.priority import Priority
from roundsman.model.record_limits import LARGEST_RESULT, LARGEST_SIGNAL, MOST_AGENTS
from roundsman.model.states import TaskState
from roundsman.model.task import LABEL, added_name

if TYPE_CHECKING:
    from roundsman.definition.input_types import InputFunction
    from roundsman.definition.plan import Plan
    from roundsman.definition.service_events import From

MOST_STEPS = 100  # a task is one item of at most 400 KB, and each decision reads all of it
MOST_ADDED = 1_000  # each decision reads the records of all of them
MIN_ATTEMPTS = 3
"""The default of `Retry.max_attempts`."""
KEEP_TRYING_FOR = timedelta(minutes=15)
"""The default of `Retry.keep_trying_for`: longer than most outages of a service."""
COMPENSATION_ATTEMPTS = 8
LONGEST_SLEEP = timedelta(days=366)
"""The longest `for_` of a sleep: a longer one is more likely a wrong unit than intended."""


class Fail(Enum):
    """What a step does that has no `otherwise`."""

    FAIL = "the step fails"


FAIL: Final = Fail.FAIL
"""The default of `otherwise`: a step that nobody answers in time fails."""


_MASKED_PATH = re.compile(r"[^.\[\]*=]+(?:\[\])*(?:\.(?:\*|[^.\[\]*=]+)(?:\[\])*)*")
_SEARCH_PATH = re.compile(r"input(?:\.[^.\[\]*=~#\s]+)+")
MOST_SEARCH_FIELDS = 3
"""The fields of `Workflow.search`: each has an index, and is one write unit of each order."""
MOST_AT_ONCE = 100  # their ids are in one row
LONGEST_SEARCH_PATH = 128  # characters; with its value it is below 1 KB, one write unit


@dataclass(frozen=True)
class Undo:
    """Strategy on failure: compensate every step that may have had an effect, newest first."""


@dataclass(frozen=True)
class Archive:
    """Strategy on failure: keep the task as it is, send an alert, and wait for a person."""


@dataclass(frozen=True)
class Wait:
    """Strategy on failure: when all attempts have failed, wait and try again.

    A permanent failure does not wait: `then` applies at once.
    """

    delay: timedelta
    """The wait before each additional attempt."""
    times: int
    """The maximum number of additional attempts."""
    then: Undo | Archive = field(default_factory=Undo)
    """The strategy after the last additional attempt."""

    def __post_init__(self) -> None:
        check_duration("Wait: delay", self.delay)
        check_count("Wait: times", self.times)
        if not isinstance(self.then, Undo | Archive):
            raise DefinitionError("Wait: then must be Undo() or Archive(), so that the wait ends")


Strategy: TypeAlias = Undo | Archive | Wait


@dataclass(frozen=True)
class NextAgent:
    """What follows an error type (`Step.on_error`): the step goes on at its next agent, as if no
    attempt were left. Needs several agents and a compensation."""


@dataclass(frozen=True)
class Skip:
    """What follows an error type (`Step.on_error`): the task goes on without the step.

    The step is Skipped. If it may have taken effect and has a compensation, it is undone first.
    """


ANY: Final = "*"
"""Any error type, in `Step.on_error` and `Step.next_agent_on`."""


@dataclass(frozen=True, kw_only=True)
class Retry:
    """How long a step is retried, and the wait between two attempts.

    By default, a step is retried for at least 15 minutes after its first failure, and for at least
    an hour after the first failure by an unexpected error (a defect of the agent's code).
    `Retry(max_attempts=3)` is impatient: after three failures, of whatever kind, the step has
    failed. If both are given, no attempt is left only when both are used up. The time while the
    step's agent is on hold, or its circuit open, does not count. The workflow's `complete_within`
    limits all of it.

    The wait follows exponential backoff with jitter (AWS Architecture Blog, "Exponential Backoff
    And Jitter"). The longest wait before attempt n+1 is `first_delay` doubled n-1 times, but not
    longer than `max_delay`. The wait is random between 0 and the longest wait; if the step is
    retried for a time, between half of the longest wait and the whole of it.
    """

    max_attempts: int | None = None
    """The number of attempts, including the first one, after which the step has failed. None: 3,
    and more until `keep_trying_for` is over."""
    keep_trying_for: timedelta | None = None
    """How long the step is retried after its first failure, even if `max_attempts` is reached: an
    attempt that begins later is the last one. None: 15 minutes, or zero if `max_attempts` is
    given."""
    first_delay: timedelta = timedelta(seconds=1)
    """The longest wait before the second attempt."""
    max_delay: timedelta = timedelta(minutes=5)
    """The longest wait before any attempt."""
    not_on: tuple[str, ...] = ()
    """Error types that are permanent, even if the agent reports them as transient."""

    def __post_init__(self) -> None:
        if self.max_attempts is not None:
            check_count("Retry: max_attempts", self.max_attempts)
        if self.keep_trying_for is not None:
            check_duration("Retry: keep_trying_for", self.keep_trying_for)
        check_duration("Retry: first_delay", self.first_delay)
        check_duration("Retry: max_delay", self.max_delay)
        if self.first_delay > self.max_delay:
            raise DefinitionError("Retry: first_delay is longer than max_delay; raise max_delay")
        _check_error_types("Retry: not_on", self.not_on)


def _check_error_types(where: str, types: tuple[str, ...]) -> None:
    check_tuple(where, types, (str,), 'error types, such as ("CardDeclined",)')
    for error_type in types:
        if not 0 < len(error_type.encode()) <= LONGEST_ERROR_TYPE:
            raise DefinitionError(
                f"{where}: {error_type!r} would never match; an error's type has 1 to "
                f"{LONGEST_ERROR_TYPE} bytes"
            )


ErrorPolicy: TypeAlias = Strategy | NextAgent | Skip | Retry


@dataclass(frozen=True, kw_only=True)
class Compensation:
    """How a step is undone. The code is the agent's function marked `@agent.compensates(step)`."""

    complete_within: timedelta | None = None
    """The agent's time for one attempt; None for the step's `complete_within`."""
    retry: Retry = Retry(max_attempts=COMPENSATION_ATTEMPTS, keep_trying_for=KEEP_TRYING_FOR)
    fences_late_performs: bool = False
    """A promise: after the remote service has undone an idempotency key, it refuses every later
    perform with that key forever. Without this promise, an undo waits until no request to perform
    the step can arrive any more."""
    key_lifetime: timedelta | None = None
    """As `Step.key_lifetime`, for a step that can be undone. It is given in one place."""
    verify: bool = False
    """After each undo, the step's probe is asked in the same attempt. If it says that the effect
    still stands, or cannot say, the attempt of the undo has failed. The agent must have a probe
    of the step."""

    def __post_init__(self) -> None:
        check_type("Compensation: verify", self.verify, bool)
        if self.complete_within is not None:
            check_attempt_time("Compensation: complete_within", self.complete_within)
        if self.key_lifetime is not None:
            check_duration("Compensation: key_lifetime", self.key_lifetime)
        check_type("Compensation: retry", self.retry, Retry)


class AnyOf:
    """What a step comes after: `after=AnyOf(ask_air, ask_sea, ask_road, enough=2)`.

    The step begins when `enough` of these steps have succeeded. The others are not needed then: one
    that has not begun is Skipped, and one that may have taken effect is undone and then Skipped.
    The step does not wait for that, and the task is not Completed before it. As soon as so many
    have failed that `enough` cannot succeed any more, the task fails by the last one's strategy.
    What comes before one of these steps comes before all of them, and nothing else comes after
    them. A step with `for_each` is one of them, with all of its items. Raises DefinitionError if it
    can never be so.
    """

    __slots__ = ("enough", "steps")

    steps: "tuple[Step | str, ...]"
    enough: int

    def __init__(self, *steps: "Step | str", enough: int = 1) -> None:
        for step in steps:
            if not isinstance(step, Step | str):
                raise DefinitionError(
                    f"AnyOf has {step!r}; it must have steps or their names, such as "
                    "AnyOf(ask_air, ask_sea, enough=1)"
                )
        check_count("AnyOf: enough", enough)
        if enough > len(steps):
            raise DefinitionError(
                f"AnyOf has enough={enough}, which is above the number of its steps, {len(steps)}"
            )
        self.steps, self.enough = steps, enough

    def __iter__(self) -> "Iterator[Step | str]":
        return iter(self.steps)

    def __repr__(self) -> str:
        names = (step if isinstance(step, str) else step.name for step in self.steps)
        return f"AnyOf({', '.join(names)}, enough={self.enough})"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One unit of work at one agent, or at the first available of several agents.

    Give either `agent` or `agents`. Raises DefinitionError if the step can never run.
    """

    name: str
    """1 to 40 characters of a-z, 0-9 and _, beginning with a letter; unique in its workflow."""
    complete_within: timedelta
    """The agent's time for one attempt; at most 900 s."""
    agent: str = ""
    """The name of the agent."""
    agents: tuple[str, ...] = ()
    """The names of the agents that can perform the step, in the order of preference."""
    # No repr or comparison: they would follow every path of the graph, which is exponential.
    after: tuple["Step | str", ...] | AnyOf = field(default=(), repr=False, compare=False)
    """The steps that must be done first, as steps or by name. `AnyOf(...)`: enough of them."""
    retry: Retry = Retry()
    compensation: Compensation | None = None
    """How the step is undone; None if it cannot be undone."""
    on_failure: Strategy | None = None
    """The strategy if the step fails; None for the workflow's `on_failure`."""
    when: str | None = None
    """A JMESPath expression over `{"input": order, "results": results}`; the step is skipped if it
    is false. None: the step always runs."""
    result_limit: int = LARGEST_RESULT
    """The maximum size of the step's result, and of the result of each item, in bytes of JSON; at
    most 32 KiB."""
    heartbeat_within: timedelta | None = None
    """An attempt that shows no progress for this long is overdue before `complete_within` is over.
    None: no heartbeats."""
    for_each: str | None = None
    """A JMESPath expression like `when`, but its value is a list; the step runs once for each item.
    None: the step runs once."""
    tolerate: float = 0
    """How many of the items may fail: an int of 1 or more is their number, a float from 0 to below
    1 is their share, rounded down. Needs `for_each`."""
    enough: int | None = None
    """How many of the items have to succeed; the others are not needed then, as with `AnyOf`. Needs
    `for_each`. None: all of them, but for what `tolerate` allows."""
    keep: bool = False
    """Of a step without compensation that may turn out not to be needed (`AnyOf`, `enough`): what
    it has done may stay."""
    next_agent_on: tuple[str, ...] = ()
    """Error types of refusals, such as `Full`, after which the step goes on at its next agent, as
    if no attempt were left; `(ANY,)` for all. Needs several agents and a compensation."""
    on_error: Mapping[str, ErrorPolicy] = field(default_factory=dict, hash=False)
    """What follows an error of a type, or of `ANY` other one. `Undo()`, `Archive()`: the strategy
    if the step fails with it. `Wait(...)`: it is tried again after each wait, also if it was
    refused. `NextAgent()`, `Skip()`: see there, if the step was refused or no attempt is left.
    `Retry(...)`: the error is transient, and this says how long the step is retried after it; all
    failed attempts are counted together."""
    reads: tuple[str, ...] | None = None
    """The fields of the input that the step's agent gets, beside `orderId`; None: all of them. A
    correction of any other field does not affect the step."""
    result_masked: bool = False
    """The result is not shown to operators, and neither are its values in messages."""
    key_lifetime: timedelta | None = None
    """How long the remote service remembers an idempotency key, counted from the first request to
    perform the step. After that, nothing is sent under the key: a repeated request might take
    effect twice, and an undo might find nothing although the effect stands. If the outcome is
    unknown then, the step has failed (`KeyExpired`), and so has an undo: a person decides. None:
    for ever."""
    probe_outlives_key: bool = False
    """A promise: the step's probe finds the effect without the key, also when the service has
    forgotten that. The probe then decides after `key_lifetime`, and no person has to. The agent
    must have a probe of the step."""
    otherwise: object = field(default=FAIL, hash=False)
    """The result if nobody answers: if the callback that the step waits for, or the end of the
    outside job that it polls, has not come in time. The step is then Processed, and `came.<step>`
    is false in the expressions of later steps. Whether it took effect is unknown, so it is undone
    with the rest, and an answer that comes later is alerted. FAIL: the step fails."""
    input: type[object] | None = field(default=None, repr=False)
    """Of a kind of steps that may be added: the TypedDict or dataclass of what such a step is added
    with. None: any JSON."""

    def __post_init__(self) -> None:
        where = f"step {self.name!r}"
        self._check_every_kind(where)
        self._check_agents(where)
        check_attempt_time(f"{where}: complete_within", self.complete_within)
        self._check_heartbeat(where)
        self._check_fan_out(where)
        check_type(f"{where}: retry", self.retry, Retry)
        if self.compensation is not None:
            check_type(f"{where}: compensation", self.compensation, Compensation)
        self._check_key_lifetime(where)
        if self.reads is not None:
            check_tuple(f"{where}: reads", self.reads, (str,), 'fields, such as ("lines",)')
        check_type(f"{where}: result_masked", self.result_masked, bool)
        check_count(f"{where}: result_limit", self.result_limit)
        if self.result_limit > LARGEST_RESULT:
            raise DefinitionError(
                f"{where}: result_limit is {self.result_limit} bytes; at most {LARGEST_RESULT} fit"
            )
        self._check_otherwise(where, self.result_limit)

    def _check_otherwise(self, where: str, limit: int) -> None:
        if self.otherwise is FAIL:
            return
        try:
            size = size_in_bytes(cast("Json", self.otherwise))
        except (TypeError, ValueError) as error:
            raise DefinitionError(f"{where}: otherwise must be JSON; {error}") from error
        if size > limit:
            raise DefinitionError(f"{where}: otherwise has {size} bytes; at most {limit} fit")

    def _check_every_kind(self, where: str) -> None:
        """Check what every kind of step has."""
        check_name(where, self.name)
        if not isinstance(self.after, AnyOf):
            check_tuple(f"{where}: after", self.after, (str, Step), "steps, such as (charge_card,)")
        if self.on_failure is not None:
            _check_strategy(where, self.on_failure)
        if self.when is not None:
            compile_condition(f"{where}: when", self.when)

    def _check_agents(self, where: str) -> None:
        check_tuple(f"{where}: agents", self.agents, (str,), 'names, such as ("payment", "backup")')
        if self.agents and self.agent not in ("", self.agents[0]):
            raise DefinitionError(f"{where}: give agent, or agents in order, but not both")
        if self.agents:  # the dataclass is frozen
            object.__setattr__(self, "agent", self.agents[0])
        names = self.agent_names()
        for agent in names:
            check_name(f"{where}: agent", agent)
        if len(names) > MOST_AGENTS:
            raise DefinitionError(
                f"{where}: {len(names)} agents; at most {MOST_AGENTS} can perform one step"
            )
        if len(set(names)) < len(names):
            raise DefinitionError(f"{where}: an agent is named twice in agents; remove one")
        _check_error_types(f"{where}: next_agent_on", self.next_agent_on)
        self._check_on_error(where)
        moves = any(isinstance(one, NextAgent) for one in self.on_error.values())
        if (self.next_agent_on or moves) and (len(names) == 1 or self.compensation is None):
            what = "NextAgent() in on_error" if moves else "next_agent_on"
            raise DefinitionError(
                f"{where}: {what} needs several agents, and a compensation: what may have "
                "happened at one agent is undone before the next may act"
            )

    def _check_on_error(self, where: str) -> None:
        if not isinstance(self.on_error, Mapping):
            raise DefinitionError(
                f'{where}: on_error must be a mapping, such as {{"CardDeclined": Undo()}}, not '
                f"{shown(self.on_error)}"
            )
        _check_error_types(f"{where}: on_error", tuple(self.on_error))
        for error_type, policy in self.on_error.items():
            if not isinstance(policy, Undo | Archive | Wait | NextAgent | Skip | Retry):
                raise DefinitionError(
                    f"{where}: on_error of {error_type!r} must be Undo(), Archive(), Wait(...), "
                    f"NextAgent(), Skip() or Retry(...), not {shown(policy)}"
                )
            if isinstance(policy, Retry) and policy.not_on:
                raise DefinitionError(
                    f"{where}: on_error of {error_type!r} has not_on, which only retry has"
                )
            if isinstance(policy, Retry) and error_type in self.retry.not_on:
                raise DefinitionError(
                    f"{where}: {error_type!r} is in not_on of retry and has a Retry in on_error; "
                    "remove one of them"
                )

    @property
    def lifetime_of_keys(self) -> timedelta | None:
        """The `key_lifetime` of the step or of its compensation; None if keys last for ever."""
        of_undo = None if self.compensation is None else self.compensation.key_lifetime
        return of_undo if self.key_lifetime is None else self.key_lifetime

    def _check_key_lifetime(self, where: str) -> None:
        check_type(f"{where}: probe_outlives_key", self.probe_outlives_key, bool)
        if self.key_lifetime is not None:
            check_duration(f"{where}: key_lifetime", self.key_lifetime)
        undo, lifetime = self.compensation, self.lifetime_of_keys
        if lifetime is None:
            if self.probe_outlives_key:
                raise DefinitionError(
                    f"{where}: probe_outlives_key needs key_lifetime; keys that last for ever are "
                    "not outlived"
                )
            return
        if undo is not None and undo.key_lifetime not in (None, lifetime):
            raise DefinitionError(
                f"{where}: key_lifetime of the step and that of its compensation are different; "
                "give it once: the service has one lifetime of keys"
            )
        needed = self.complete_within + timedelta(milliseconds=SKEW)
        if undo is not None:
            needed += undo.complete_within or self.complete_within
        if lifetime <= needed:
            attempts = "one attempt to perform" + (" and one to undo" if undo is not None else "")
            raise DefinitionError(
                f"{where}: key_lifetime is over before {attempts} the step; raise it, or lower "
                "complete_within"
            )

    def _check_heartbeat(self, where: str) -> None:
        if self.heartbeat_within is None:
            return
        check_wait(f"{where}: heartbeat_within", self.heartbeat_within)
        if self.heartbeat_within >= self.complete_within:
            raise DefinitionError(f"{where}: heartbeat_within must be shorter than complete_within")

    def _check_fan_out(self, where: str) -> None:
        tolerated = self.tolerate
        if isinstance(tolerated, bool) or not isinstance(tolerated, int | float):
            raise DefinitionError(
                f"{where}: tolerate must be a number of items, such as 2, or a share of them, such "
                f"as 0.1, not {shown(tolerated)}"
            )
        if not isinstance(tolerated, int) and not 0 <= tolerated < 1:
            raise DefinitionError(
                f"{where}: tolerate is the share {tolerated}, which must be at least 0 and below "
                "1; write a number of items as an int, such as 2"
            )
        if not 0 <= tolerated < MOST_STEPS:
            raise DefinitionError(
                f"{where}: tolerate is {tolerated}; a number of items is from 0 to {MOST_STEPS - 1}"
            )
        if self.for_each is not None:
            compile_condition(f"{where}: for_each", self.for_each)
        elif tolerated:
            raise DefinitionError(
                f"{where}: tolerate needs for_each; it limits how many of its items may fail"
            )
        self._check_enough(where)

    def _check_enough(self, where: str) -> None:
        check_type(f"{where}: keep", self.keep, bool)
        if self.enough is None:
            return
        check_count(f"{where}: enough", self.enough)
        if self.for_each is None:
            raise DefinitionError(
                f"{where}: enough needs for_each; of several steps, write after=AnyOf(...)"
            )
        if self.tolerate:
            raise DefinitionError(
                f"{where}: tolerate and enough are two limits of one thing; remove one of them"
            )
        if self.enough >= MOST_STEPS:
            raise DefinitionError(
                f"{where}: enough is {self.enough}; a task has at most {MOST_STEPS - 1} items"
            )

    def named(
        self,
        label: str,
        *,
        input: object = None,
        after: "Sequence[NamedStep | Step | str]" = (),
    ) -> "NamedStep":
        """Return a step of this kind, for `Done(then=...)`.

        `label` is its name within the kind: 1 to 40 characters of A-Z, a-z, 0-9, `.`, `_` and `-`,
        beginning with a letter. It is shown in logs and is a part of idempotency keys, so it must
        contain nothing secret. `input` is what its requests have as `step_input`. `after` are the
        steps that must be done first, besides the one that adds it; a text is the whole name of a
        step, such as `book_leg[leg-2]`. Raises TypeError or ValueError for a wrong argument.
        """
        return NamedStep(self, label, input, tuple(after))

    def agent_names(self) -> tuple[str, ...]:
        """Return the names of the agents that can perform the step, in the order of preference."""
        return self.agents or (self.agent,)

    def masked_paths(self) -> frozenset[str]:
        """Return the paths of the masked fields of what such a step is added with."""
        if self.input is None:
            return frozenset()
        from roundsman.definition.input_types import masked_paths

        return masked_paths(self.input)

    def expressions(self) -> tuple[tuple[str, str], ...]:
        """Return the name and the text of each expression that the step has."""
        both = (("when", self.when), ("for_each", self.for_each))
        return tuple((name, text) for name, text in both if text is not None)

    def after_names(self) -> tuple[str, ...]:
        """Return the names of the steps in `after`."""
        return tuple(step if isinstance(step, str) else step.name for step in self.after)


@dataclass(frozen=True, slots=True)
class NamedStep:
    """A step that is to be added at run time; `Step.named` makes it."""

    kind: Step
    label: str
    input: object = field(default=None, repr=False)
    after: "tuple[NamedStep | Step | str, ...]" = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.label, str):
            raise TypeError(f"the name of an added step must be a text, not {kind_of(self.label)}")
        if not LABEL.fullmatch(self.label):
            raise ValueError(
                f"the name of an added step must be 1 to 40 characters of A-Z, a-z, 0-9, '.', '_' "
                f"and '-', beginning with a letter; {_why_no_label(self.label)}"
            )
        if not all(isinstance(one, NamedStep | Step | str) for one in self.after):
            raise TypeError(f"after of {self.name} must have steps or their names")
        if self.input is not None and not self.kind.agent_names():
            raise TypeError(f"{self.name} has no agent, which would get the input: remove it")

    @property
    def name(self) -> str:
        """The name of its record: `book_leg[leg-3]`."""
        return added_name(self.kind.name, self.label)

    def after_names(self) -> tuple[str, ...]:
        """Return the names of the steps in `after`."""
        return tuple(one if isinstance(one, str) else one.name for one in self.after)


def _why_no_label(label: str) -> str:
    """What is wrong with the label. It is not quoted, because it may come from an order."""
    if not label:
        return "this one is empty"
    fits = LABEL.match(label)
    place = fits.end() if fits else 0
    return f"character {place + 1} of this one is {label[place]!r}"


@dataclass(frozen=True, kw_only=True)
class _StepWithoutAgent(Step):
    """A step that only waits. It has no attempts and nothing to undo."""

    complete_within: timedelta = field(init=False, default=timedelta(0), repr=False)
    agent: str = field(init=False, default="", repr=False)
    agents: tuple[str, ...] = field(init=False, default=(), repr=False)
    retry: Retry = field(init=False, default=Retry(), repr=False)
    compensation: Compensation | None = field(init=False, default=None, repr=False)
    result_limit: int = field(init=False, default=LARGEST_RESULT, repr=False)
    heartbeat_within: timedelta | None = field(init=False, default=None, repr=False)
    for_each: str | None = field(init=False, default=None, repr=False)
    tolerate: float = field(init=False, default=0, repr=False)
    enough: int | None = field(init=False, default=None, repr=False)
    keep: bool = field(init=False, default=False, repr=False)
    next_agent_on: tuple[str, ...] = field(init=False, default=(), repr=False)
    on_error: Mapping[str, ErrorPolicy] = field(
        init=False, default_factory=dict, repr=False, hash=False
    )
    reads: tuple[str, ...] | None = field(init=False, default=None, repr=False)
    result_masked: bool = field(init=False, default=False, repr=False)
    key_lifetime: timedelta | None = field(init=False, default=None, repr=False)
    probe_outlives_key: bool = field(init=False, default=False, repr=False)
    otherwise: object = field(init=False, default=FAIL, repr=False)
    input: type[object] | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        self._check_every_kind(f"step {self.name!r}")

    def agent_names(self) -> tuple[str, ...]:
        """Return no name: no agent performs the step."""
        return ()


@dataclass(frozen=True, kw_only=True)
class Sleep(_StepWithoutAgent):
    """A step that waits for a time, counted from when the steps before it are done.

    Raises DefinitionError if the step can never run.
    """

    for_: timedelta
    """How long the sleep lasts; at most 366 days."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_duration(f"step {self.name!r}: for_", self.for_)
        if self.for_ > LONGEST_SLEEP:
            raise DefinitionError(
                f"step {self.name!r}: for_ is {self.for_.days} days; at most {LONGEST_SLEEP.days}"
            )


@dataclass(frozen=True, kw_only=True)
class SleepUntil(_StepWithoutAgent):
    """A step that waits until an instant that the order, or the result of a step, gives.

    An instant that is past ends the step at once. One that is missing or is no ISO 8601 text with
    an offset from UTC, or at which the task would be over, fails the step. Raises DefinitionError
    if the step can never run.
    """

    until: str = field(kw_only=False)
    """A JMESPath expression over `{"input": order, "results": results}` for the instant, such as
    `input.departure`. It is evaluated once, when the steps before this one are done."""

    def __post_init__(self) -> None:
        super().__post_init__()
        compile_condition(f"step {self.name!r}: until", self.until)

    def expressions(self) -> tuple[tuple[str, str], ...]:
        """Return the name and the text of each expression that the step has."""
        return (*super().expressions(), ("until", self.until))


@dataclass(frozen=True, kw_only=True)
class Signal(_StepWithoutAgent):
    """A step that waits for a signal: what an application sends to the order by `Client.signal`.

    A signal that came before the step began ends it at once. Its data is the result of the step. If
    none comes in time, the step fails, or goes on with `otherwise`. Raises DefinitionError if the
    step can never run.
    """

    signal: str = field(kw_only=False)
    """The name of the signal: 1 to 40 characters of a-z, 0-9 and _, beginning with a letter. If
    several steps wait for signals of one name, each signal ends one of them."""
    within: timedelta
    """How long the step waits, counted from when the steps before it are done."""
    name: str = ""
    """The name of the step; empty for that of the signal."""
    result_masked: bool = False
    """The data of the signal is not shown to operators, and neither are its values in messages."""
    otherwise: object = field(default=FAIL, hash=False)
    """The result if no signal comes in time: the step is then Processed, and `came.<step>` is false
    in the expressions of later steps. FAIL: the step fails."""

    def __post_init__(self) -> None:
        if self.name == "":  # the dataclass is frozen
            object.__setattr__(self, "name", self.signal)
        super().__post_init__()
        where = f"step {self.name!r}"
        check_name(f"{where}: signal", self.signal)
        check_wait(f"{where}: within", self.within)
        check_type(f"{where}: result_masked", self.result_masked, bool)
        self._check_otherwise(where, LARGEST_SIGNAL)


@dataclass(frozen=True, kw_only=True)
class Limit:
    """How many orders of a workflow with one value are under way at once; the others wait.

    They begin in the order in which they came. An order that needs a person is not under way, and
    waits again once it is resubmitted.
    """

    by: str
    """What gives the value: an expression over the order, such as `input.customerId`. Orders for
    which it gives null or an empty text are not limited."""
    at_once: int = 1
    """At most so many are under way; 100 at most."""

    def __post_init__(self) -> None:
        compile_condition("Limit: by", self.by)
        if steps_read(self.by) or answers_asked_for(self.by):
            raise DefinitionError(
                f"Limit: by {self.by!r} reads what steps have done; an order is counted before its "
                "first step: it can read only input"
            )
        if not paths_read(self.by):
            raise DefinitionError(
                f"Limit: by {self.by!r} reads nothing of the order; write input.customerId"
            )
        check_count("Limit: at_once", self.at_once)
        if self.at_once > MOST_AT_ONCE:
            raise DefinitionError(
                f"Limit: at_once is {self.at_once}; at most {MOST_AT_ONCE} orders of one value are "
                "counted"
            )


@dataclass(frozen=True, kw_only=True)
class Workflow:
    """Steps that complete, or are undone, as a whole.

    Raises DefinitionError if the workflow can never run.
    """

    name: str
    """1 to 40 characters of a-z, 0-9 and _, beginning with a letter."""
    steps: Sequence[Step]
    """1 to 100 steps; their `after` gives the order, which must not contain a cycle."""
    complete_within: timedelta
    """The time for the whole task, counted from when it may start. It moves by the time for which
    an agent was on hold, and a person can extend it."""
    on_failure: Strategy = Archive()
    """The strategy if a step fails that has no strategy of its own, or if `complete_within` is
    over."""
    retain_for: timedelta = timedelta(0)
    """How long a task is kept after it ended. Zero, as in asynq: it is removed at once. An archived
    task is kept until a person handles it."""
    priority: Priority = Priority.NORMAL
    input: "type[object] | InputFunction | None" = field(default=None, repr=False)
    """What an order must be: a TypedDict, a dataclass, or a function that returns the valid input
    or raises InvalidInput (see `roundsman.definition.input_types`). None: any JSON object."""
    may_add: tuple[Step, ...] = ()
    """The kinds of steps that a step may add while the task runs, by `Done(then=...)`. A kind is
    not one of `steps`, and has no `after`, `when` or `for_each` of its own."""
    most_added: int = MOST_ADDED
    """How many steps may be added to one task; at most 1,000. Whatever it is, at most 100 of them
    are open at a time, until they are done or undone."""
    may_add_after_no_return: tuple[Step, ...] = ()
    """The kinds of `may_add` that may also be added where they do not come before the point of no
    return, so that they may run after it."""
    point_of_no_return: Step | None = None
    """Once this step is Processed, a failure always archives the task, whatever the strategy is.
    None: the workflow has no such point."""
    deadline: timedelta | None = None
    """The time after which no step is performed, counted from submission. Nothing moves it: no hold
    and no person. Then `on_failure` decides, as if `complete_within` were over. None: none."""
    masked: tuple[str, ...] = ()
    """Paths of input fields whose values are not shown to operators, such as `card.number`,
    `guests[].passport` or `pins.*.pin`. The fields that the input type marks with `Masked()` need
    not be repeated."""
    search: tuple[str, ...] = ()
    """The fields by whose values operators find orders, such as `input.customerId`; at most 3. Each
    costs one write unit an order that has it, and needs an index (parameter `SearchFields`)."""
    limit: Limit | None = None
    """How many of its orders with one value, such as those of one customer, are under way at once.
    None: any number."""
    when_undone: tuple[Step, ...] = ()
    """The closing steps of a task that was undone: they run after its last undo, and before it ends
    as Undone. They have the time of all their attempts, whatever is on hold; then the task ends,
    and an alert names those that have failed. They are never undone, and each waits until those in
    its `after` are over, however they ended. A task that has not begun a step has none."""
    when_failed: tuple[Step, ...] = ()
    """The closing steps of a task that is Archived, each time before it is."""
    when_cancelled: tuple[Step, ...] = ()
    """The closing steps of a task that was cancelled, after its last undo if it is undone."""
    events: "tuple[From, ...]" = ()
    """Which events of SNS, S3 and EventBridge become orders of this workflow. They are no part of
    the plan."""

    def __post_init__(self) -> None:
        where = f"workflow {self.name!r}"
        check_name(where, self.name)
        check_duration(f"{where}: complete_within", self.complete_within)
        if self.deadline is not None:
            check_duration(f"{where}: deadline", self.deadline)
        check_type(f"{where}: retain_for", self.retain_for, timedelta)
        if self.retain_for < timedelta(0):
            raise DefinitionError(f"{where}: retain_for must be zero or more")
        if self.retain_for:
            check_duration(f"{where}: retain_for", self.retain_for)
        _check_strategy(where, self.on_failure)
        check_type(f"{where}: priority", self.priority, Priority)
        self._check_steps(where)
        self._check_kinds(where)
        self._check_order(where)
        self._check_enough_of_many(where)
        point = self.point_of_no_return
        if point is not None and point not in self.steps:
            raise DefinitionError(f"{where}: point_of_no_return must be one of its steps")
        self._check_kinds_after_no_return(where)
        if self.when_undone or self.when_failed or self.when_cancelled:
            # Only an application with such steps loads the module.
            from roundsman.definition.closing_steps import check_closing_steps

            check_closing_steps(where, self)
        check_tuple(f"{where}: masked", self.masked, (str,), 'paths, such as ("card.number",)')
        for path in self.masked:
            if not _MASKED_PATH.fullmatch(path):
                raise DefinitionError(
                    f"{where}: masked has {path!r}, which is not a path; write card.number, "
                    "guests[].passport for each item of a list, or pins.*.pin for each key"
                )
        if self.limit is not None:
            check_type(f"{where}: limit", self.limit, Limit)
        if self.events:
            self._check_events(where)
        if self.input is not None:
            self._check_input(where)
        if self.search != ():
            self._check_search(f"{where}: search")

    def _check_search(self, where: str) -> None:
        check_tuple(where, self.search, (str,), 'fields, such as ("input.customerId",)')
        if len(self.search) > MOST_SEARCH_FIELDS:
            raise DefinitionError(
                f"{where} has {len(self.search)} fields; at most {MOST_SEARCH_FIELDS} can be found"
            )
        for path in self.search:
            if len(path) > LONGEST_SEARCH_PATH or not _SEARCH_PATH.fullmatch(path):
                raise DefinitionError(
                    f"{where} has {shown(path)}, which is not the path of one field; write "
                    f"input.customerId or input.card.holder, with at most {LONGEST_SEARCH_PATH} "
                    "characters"
                )
            if path.split(".")[1] in ENGINE_FIELDS:
                raise DefinitionError(
                    f"{where} has {path!r}, which belongs to the engine; an order is found by its "
                    "id without it: remove it"
                )
            if self.search.count(path) > 1:
                raise DefinitionError(f"{where} has {path!r} twice; remove one")
        # Only an application with typed input loads the module.
        from roundsman.definition.input_types import has_path, may_be_one_value, stored_type

        kind = None if self.input is None else stored_type(self.input)
        if kind is None:
            return
        for path in self.searched_fields():
            if not has_path(kind, path):
                raise DefinitionError(
                    f"{where} has 'input.{path}', which the input type does not have"
                )
            if not may_be_one_value(kind, path):
                raise DefinitionError(
                    f"{where} has 'input.{path}', which is a list or an object in the input type; "
                    "name a field with one value: a text, a number or a bool"
                )

    def searched_fields(self) -> tuple[str, ...]:
        """Return the paths of `search` in the input, in the order of the alphabet."""
        return tuple(sorted(path.removeprefix("input.") for path in self.search))

    def _check_events(self, where: str) -> None:
        # Only an application with such events loads the module.
        from roundsman.definition.service_events import From

        example = 'declarations, such as (From(topic="orders"),)'
        check_tuple(f"{where}: events", self.events, (From,), example)
        awaited = {step.signal for step in self.all_steps if isinstance(step, Signal)}
        for one in self.events:
            if one.signal not in (None, *awaited):
                known = ", ".join(sorted(awaited)) or "none"
                raise DefinitionError(
                    f"{where}: no step waits for the signal {one.signal!r} of {one}; the signals "
                    f"are: {known}"
                )

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """The steps, the kinds of steps that may be added, and the closing steps."""
        closing = chain(self.when_undone, self.when_failed, self.when_cancelled)
        return (*self.steps, *self.may_add, *{step.name: step for step in closing}.values())

    @property
    def closing_steps(self) -> Mapping[TaskState, tuple[Step, ...]]:
        """The closing steps of each end that has some."""
        ends = {
            TaskState.UNDONE: self.when_undone,
            TaskState.ARCHIVED: self.when_failed,
            TaskState.CANCELLED: self.when_cancelled,
        }
        return {end: steps for end, steps in ends.items() if steps}

    @cached_property
    def plan(self) -> "Plan":
        """The plan that a task of this workflow gets."""
        from roundsman.definition.plan import plan_of  # it reads workflows

        return plan_of(self)

    def masked_paths(self) -> frozenset[str]:
        """Return the paths of the masked fields: those in `masked` and those of the input type."""
        if self.input is None:
            return frozenset(self.masked)
        from roundsman.definition.input_types import given_type, masked_paths, stored_type

        kinds = (given_type(self.input), stored_type(self.input))
        return frozenset(self.masked).union(*(masked_paths(kind) for kind in kinds if kind))

    def _check_input(self, where: str) -> None:
        # Only an application with typed input loads the module.
        from roundsman.definition.input_types import (
            InputShape,
            check_input,
            field_names,
            given_type,
            has_path,
            stored_type,
        )

        check_input(f"{where}: input", self.input)
        kinds = [given_type(self.input), stored_type(self.input)]
        for path in self.masked:
            if all(one is not None and not has_path(one, path) for one in kinds):
                raise DefinitionError(
                    f"{where}: masked has {path!r}, which the input type does not have"
                )
        kind = stored_type(self.input)
        if kind is None:
            return
        self._check_limit(where, InputShape(kind))
        for step in self.all_steps:
            for name in step.reads or ():
                if name not in field_names(kind):
                    raise DefinitionError(
                        f"{where}: reads of step {step.name!r} has {name!r}, which the input type "
                        "does not have"
                    )
            for what, expression in step.expressions():
                place = f"{where}: {what} of step {step.name!r}"
                try:
                    found = shape_of(expression, InputShape(kind))
                except NotThere as error:
                    raise DefinitionError(f"{place} {error}") from error
                if what == "for_each" and found.is_list() is False:
                    raise DefinitionError(f"{place} gives one value; it must give a list")
                if what == "until" and found.is_text() is False:
                    raise DefinitionError(f"{place} gives no text; it must give an instant")

    def _check_limit(self, where: str, order: Shape) -> None:
        if self.limit is not None:
            try:
                shape_of(self.limit.by, order)
            except NotThere as error:
                raise DefinitionError(f"{where}: by of its limit {error}") from error

    def _check_steps(self, where: str) -> None:
        if isinstance(self.steps, list):  # the dataclass is frozen
            object.__setattr__(self, "steps", tuple(self.steps))
        check_tuple(f"{where}: steps", self.steps, (Step,), "steps, such as (charge_card,)")
        if not self.steps:
            raise DefinitionError(f"{where}: it has no steps")
        if len(self.steps) > MOST_STEPS:
            raise DefinitionError(
                f"{where}: {len(self.steps)} steps; at most {MOST_STEPS} fit in one task"
            )
        check_tuple(f"{where}: may_add", self.may_add, (Step,), "steps, such as (book_leg,)")
        names = [step.name for step in self.all_steps]
        for step in self.all_steps:
            if names.count(step.name) > 1:
                raise DefinitionError(f"{where}: two steps are named {step.name!r}; rename one")
            if step.complete_within > self.complete_within:
                raise DefinitionError(
                    f"{where}: step {step.name!r} may take longer than the whole workflow; "
                    "raise the workflow's complete_within or lower the step's"
                )
            if self.deadline is not None and step.complete_within > self.deadline:
                raise DefinitionError(
                    f"{where}: step {step.name!r} may take {_words(step.complete_within)}, but "
                    f"the deadline is {_words(self.deadline)}; raise the workflow's deadline or "
                    "lower the step's complete_within"
                )
            self._check_retry(where, step)
            self._check_wait(where, step)
            if isinstance(step, Signal):
                self._check_signal(where, step)

    def _check_signal(self, where: str, step: Signal) -> None:
        """Check that the step fails before the whole task does if no signal comes."""
        limits = (("complete_within", self.complete_within), ("deadline", self.deadline))
        for limit, given in limits:
            if given is not None and step.within >= given:
                raise DefinitionError(
                    f"{where}: step {step.name!r} waits {_words(step.within)} for its signal, but "
                    f"the whole workflow may take {_words(given)}; lower within, or raise the "
                    f"workflow's {limit}"
                )

    def _check_kinds(self, where: str) -> None:
        """Check that each kind of added steps can run wherever a step adds it."""
        for kind in self.may_add:
            names = ("after", "when", "for_each")
            given = [name for name in names if getattr(kind, name) not in (None, ())]
            if given:
                raise DefinitionError(
                    f"{where}: {kind.name!r} in may_add has {given[0]}; the step that adds it "
                    "decides that: remove it, and give named(..., after=...) what it comes after"
                )
            if kind.input is not None:
                self._check_kind_input(f"{where}: input of {kind.name!r} in may_add", kind.input)
            for what, expression in kind.expressions():
                if read := sorted(steps_read(expression)):
                    raise DefinitionError(
                        f"{where}: {what} of {kind.name!r} in may_add reads the result of "
                        f"{read[0]!r}, which may come later where it is added; it can read only "
                        "the input of the order"
                    )
        for step in self.steps:
            if step.input is not None:
                raise DefinitionError(
                    f"{where}: step {step.name!r} has an input, which only kinds in may_add have; "
                    "a step of the workflow gets the input of the order"
                )
        check_count(f"{where}: most_added", self.most_added)
        if self.most_added > MOST_ADDED:
            raise DefinitionError(
                f"{where}: most_added is {self.most_added}; at most {MOST_ADDED:,} steps can be "
                "added to one task"
            )

    def _check_kind_input(self, where: str, kind: type[object]) -> None:
        # Only an application with typed input loads the module.
        from roundsman.definition.input_types import field_names, is_input_type

        if not is_input_type(kind):
            raise DefinitionError(f"{where} must be a TypedDict or a dataclass, not {kind!r}")
        try:
            field_names(kind)
        except DefinitionError as error:
            raise DefinitionError(f"{where}: {error}") from error

    def _check_kinds_after_no_return(self, where: str) -> None:
        kinds = self.may_add_after_no_return
        check_tuple(f"{where}: may_add_after_no_return", kinds, (Step,), "steps, such as (notify,)")
        for kind in kinds:
            if kind not in self.may_add:
                raise DefinitionError(
                    f"{where}: {kind.name!r} in may_add_after_no_return is not in may_add; add it"
                )
        if kinds and self.point_of_no_return is None:
            raise DefinitionError(f"{where}: may_add_after_no_return needs a point_of_no_return")

    def _check_wait(self, where: str, step: Step) -> None:
        """Check that the workflow leaves the time for all waits before additional attempts."""
        strategy = step.on_failure or self.on_failure
        if not isinstance(strategy, Wait):
            return
        waits = strategy.times * strategy.delay
        if waits >= self.complete_within:
            times = f"{strategy.times} times " if strategy.times > 1 else ""
            in_all = f", {_words(waits)} in all" if strategy.times > 1 else ""
            raise DefinitionError(
                f"{where}: step {step.name!r} is to wait {times}{_words(strategy.delay)} before it "
                f"is tried again{in_all}, but the whole workflow may take "
                f"{_words(self.complete_within)}; lower the delay or the times of its Wait, or "
                "raise the workflow's complete_within"
            )

    def _check_retry(self, where: str, step: Step) -> None:
        """Check that the workflow leaves the time for which the step is to be retried."""
        given = step.retry.keep_trying_for
        if given is not None and given >= self.complete_within:
            raise DefinitionError(
                f"{where}: step {step.name!r} is to be retried for {_words(given)}, but the whole "
                f"workflow may take {_words(self.complete_within)}; lower keep_trying_for of its "
                "Retry, or raise the workflow's complete_within"
            )
        waits = _average_waits(step.retry)
        if waits >= self.complete_within:
            raise DefinitionError(
                f"{where}: the waits between the {step.retry.max_attempts} attempts at step "
                f"{step.name!r} take {_words(waits)} on average, but the whole workflow may take "
                f"{_words(self.complete_within)}; lower max_attempts or the delays of its Retry, "
                "or raise the workflow's complete_within"
            )

    def _check_sleeps(self, where: str) -> None:
        """Check that the workflow leaves the time for the sleeps that follow one another.

        A sleep with a condition may be skipped, so it is not counted. How many sleeps are added is
        not known, so each kind of them is counted alone.
        """
        slept: dict[str, timedelta] = {}
        listed = {step.name: step for step in (*self.steps, *self.may_add)}
        order = TopologicalSorter({name: step.after_names() for name, step in listed.items()})
        given, limit = self.complete_within, "complete_within"
        if self.deadline is not None and self.deadline < given:
            given, limit = self.deadline, "deadline"
        for name in order.static_order():
            step = listed[name]
            before = max((slept[one] for one in step.after_names()), default=timedelta(0))
            sleeps = step.for_ if isinstance(step, Sleep) and step.when is None else timedelta(0)
            slept[name] = before + sleeps
            if slept[name] >= given:
                raise DefinitionError(
                    f"{where}: step {name!r} ends after sleeps of {_words(slept[name])}, but the "
                    f"whole workflow may take {_words(given)}; shorten the sleeps or raise the "
                    f"workflow's {limit}"
                )

    def _check_enough_of_many(self, where: str) -> None:
        if any(one.enough is not None or isinstance(one.after, AnyOf) for one in self.steps):
            # Only an application with such steps loads the module.
            from roundsman.definition.enough_of_many import check_enough_of_many

            check_enough_of_many(where, self)

    def _check_order(self, where: str) -> None:
        listed = {step.name: step for step in self.steps}
        for step in self.steps:
            for before in step.after:
                if isinstance(before, str):
                    if before not in listed:
                        raise DefinitionError(
                            f"{where}: step {step.name!r} comes after {before!r}, "
                            "but no step has that name"
                        )
                elif before.name not in listed:
                    raise DefinitionError(
                        f"{where}: step {step.name!r} comes after {before.name!r}, "
                        "which is not listed in steps; add it"
                    )
        try:
            TopologicalSorter({s.name: s.after_names() for s in self.steps}).prepare()
        except CycleError as error:
            circle = " after ".join(reversed(error.args[1]))
            raise DefinitionError(
                f"{where}: the steps form a cycle, so none can start first: {circle}"
            ) from error
        for step in self.steps:
            for before in step.after:
                if isinstance(before, Step) and listed[before.name] is not before:
                    raise DefinitionError(
                        f"{where}: step {step.name!r} comes after another step {before.name!r} "
                        f"than that in steps, such as a copy; write after=({before.name!r},)"
                    )
        self._check_sleeps(where)
        for step in self.steps:
            for what, expression in step.expressions():
                place = f"{where}: {what} of step {step.name!r}"
                _check_read(place, step, steps_read(expression), listed)
                _check_answers(place, answers_asked_for(expression), listed)
                _check_otherwise_is_read(place, what, expression, listed)


def _check_read(place: str, step: Step, read: frozenset[str], listed: Mapping[str, Step]) -> None:
    """Check that an expression of a step reads only results of the steps before it.

    The result of any other step may not exist yet when the expression is evaluated, once, at the
    begin of the step: what follows would depend on which step is faster.
    """
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
            f"{place} reads the result of {name!r}, "
            f"{missing if name in listed else 'but no step has that name'}"
        )


def _check_answers(place: str, asked_for: frozenset[str], listed: Mapping[str, Step]) -> None:
    """Check that an expression asks only of steps with `otherwise` whether an answer came."""
    for name in sorted(asked_for):
        if listed[name].otherwise is FAIL:
            raise DefinitionError(
                f"{place} reads came.{name}, which is always true: {name!r} has no otherwise"
            )


def _check_otherwise_is_read(
    place: str, what: str, expression: str, listed: Mapping[str, Step]
) -> None:
    """Check that an expression for a list or an instant gives one also if nobody has answered.

    That is known only if it reads nothing but results of steps with `otherwise`.
    """
    read = _EVALUATORS.get(what)
    steps = [path[1] for path in paths_read(expression) if path[:1] == ("results",) and path[1:]]
    values = {name: listed[name].otherwise for name in steps}
    if read is None or not steps or len(steps) < len(paths_read(expression)):
        return
    if FAIL in values.values():
        return
    try:
        read(expression, None, cast("Mapping[str, Json]", values))
    except ValueError as error:
        names = " and ".join(sorted(values))
        raise DefinitionError(f"{place} cannot read the otherwise of {names}: {error}") from error


_EVALUATORS: Final = {"for_each": evaluate_list, "until": evaluate_instant}
"""What evaluates the expressions that must give a certain type."""


def _average_waits(retry: Retry) -> timedelta:
    """The waits between `max_attempts` attempts, on average; zero if it is not given."""
    total, delay = timedelta(0), retry.first_delay
    waits = (retry.max_attempts or 1) - 1
    while waits and delay < retry.max_delay:
        total, waits, delay = total + delay / 2, waits - 1, delay * 2
    return total + min(waits, _COUNTABLE) * retry.max_delay / 2


def _words(duration: timedelta) -> str:
    return format_duration(milliseconds(duration))


_COUNTABLE = 1_000_000
"""So many waits are too long for any workflow; more of them may be too long for a timedelta."""


def _check_strategy(where: str, value: object) -> None:
    if not isinstance(value, Undo | Archive | Wait):
        raise DefinitionError(f"{where}: on_failure must be Undo(), Archive() or Wait(...)")
