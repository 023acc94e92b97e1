"""The plan: a workflow as canonical JSON, stored once under its SHA-256.

Each task refers to its plan by that hash. The scheduler and the supervisor run only the stored
plan, so a deployment does not change or break a task in flight. A plan contains every value
explicitly: if a default changes in the code, the meaning of an old plan does not change.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from datetime import timedelta
from decimal import Decimal
from functools import cached_property
from graphlib import TopologicalSorter
from itertools import chain
from types import NoneType, UnionType
from typing import Any, TypeAlias, TypeVar, cast, get_args, get_origin

from roundsman.definition.workflow import (
    ANY,
    FAIL,
    KEEP_TRYING_FOR,
    MIN_ATTEMPTS,
    AnyOf,
    Archive,
    Compensation,
    ErrorPolicy,
    NextAgent,
    Retry,
    Signal,
    Skip,
    Sleep,
    SleepUntil,
    Step,
    Strategy,
    Undo,
    Wait,
    Workflow,
)
from roundsman.model.instants import milliseconds
from roundsman.model.json import Json, canonical_json, parse_json, sha256
from roundsman.model.priority import Priority
from roundsman.model.record_limits import LARGEST_SIGNAL
from roundsman.model.states import TaskState
from roundsman.model.task import UNDO, AddedStep, Operation, Task, item_names, step_of

KEPT_EXPANSIONS = 64
"""How many expansions of one plan are cached. Orders with the same number of items share one."""

KEPT_ADDED_STEPS = 2_000
"""How many added steps of one plan are cached: each decision of a task asks for all of its own."""

PLAN_VERSION = 1
RICHER_PLAN_VERSION = 2
"""The version of a plan that uses a field of RICHER_FIELDS. Code that reads only version 1 does not
know these fields and would run the plan wrongly."""
READS_PLAN_VERSION = 3
"""The version of a plan in which `tolerate` is a number of items, or a step has `reads`. Code that
reads only version 2 would take the number for a share, and would send the whole input."""
DEADLINE_PLAN_VERSION = 4
"""The version of a plan with a deadline. Code that reads only version 3 would perform steps after
it."""
WAITS_PLAN_VERSION = 5
"""The version of a plan with a sleep or a signal, or with kinds of steps that may be added. Code
that reads only version 4 would miss the agent of a sleep, and would complete a task without what a
reply adds."""
OTHERWISE_PLAN_VERSION = 6
"""The version of a plan in which a step has `otherwise`. Code that reads only version 5 would fail
the step."""
NEWEST_PLAN_VERSION = 7
"""The version of a plan with a limit, with closing steps, with steps of which enough have to
succeed, or in which the type of an error decides what follows. Code that reads only version 6 would
begin all orders at once, would end them without the closing steps, would wait for all steps, and
would treat all errors alike."""
PLAN_VERSIONS = tuple(range(PLAN_VERSION, NEWEST_PLAN_VERSION + 1))
NOTHING_ADDED: Mapping[str, AddedStep] = {}


@dataclass(frozen=True, slots=True)
class ArchivePlan:
    """The strategy `Archive` in a plan."""


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """The strategy `Undo` in a plan."""


@dataclass(frozen=True, slots=True)
class WaitPlan:
    """The strategy `Wait` in a plan."""

    delay: int
    """In ms."""
    times: int
    then: UndoPlan | ArchivePlan


@dataclass(frozen=True, slots=True)
class LimitPlan:
    """`Limit` in a plan."""

    by: str
    at_once: int


StrategyPlan: TypeAlias = ArchivePlan | UndoPlan | WaitPlan


@dataclass(frozen=True, slots=True)
class NextAgentPlan:
    """`NextAgent` in a plan."""


@dataclass(frozen=True, slots=True)
class SkipPlan:
    """`Skip` in a plan."""


@dataclass(frozen=True, slots=True)
class RetryPlan:
    """`Retry` in a plan. Durations are in ms."""

    max_attempts: int
    """The number of attempts after which the step has failed, if `keep_trying_for` is over."""
    first_delay: int
    max_delay: int
    not_on: tuple[str, ...]
    keep_trying_for: int = 0
    """How long the step is retried after its first failure, however many attempts that takes; 0 if
    only their number counts."""


ErrorPolicyPlan: TypeAlias = StrategyPlan | NextAgentPlan | SkipPlan | RetryPlan


@dataclass(frozen=True, slots=True)
class CompensationPlan:
    """`Compensation` in a plan. Durations are in ms."""

    complete_within: int
    retry: RetryPlan
    fences_late_performs: bool


@dataclass(frozen=True, slots=True)
class SleepForPlan:
    """`Sleep` in a plan."""

    duration: int
    """In ms."""


@dataclass(frozen=True, slots=True)
class SleepUntilPlan:
    """`SleepUntil` in a plan."""

    instant: str
    """The expression for the instant at which it ends."""


@dataclass(frozen=True, slots=True)
class SignalPlan:
    """`Signal` in a plan."""

    name: str
    """The name of the signal that ends the step."""
    within: int
    """How long the step waits for it, in ms."""


Awaited: TypeAlias = SleepForPlan | SleepUntilPlan | SignalPlan
"""What ends a step that has no agent."""


@dataclass(frozen=True, slots=True)
class Otherwise:
    """The result of a step that nobody has answered in time."""

    value: Json = field(hash=False)


@dataclass(frozen=True, slots=True)
class StepPlan:
    """`Step`, `Sleep`, `SleepUntil` or `Signal` in a plan. Durations are in ms."""

    name: str
    agents: tuple[str, ...]
    """In the order of preference; at least one, and none for a sleep or a signal."""
    after: tuple[str, ...]
    """The names of the steps that must be done first."""
    complete_within: int
    retry: RetryPlan
    compensation: CompensationPlan | None
    on_failure: StrategyPlan
    """The strategy of the step, or that of the workflow if the step has none."""
    when: str | None
    result_limit: int
    """In bytes."""
    heartbeat_within: int | None = None
    for_each: str | None = None
    tolerate: float = 0
    """A number of items if it is at least 1, else a share of them."""
    enough: int | None = None
    """How many of its items have to succeed; None if each has to that may not fail."""
    enough_before: int | None = None
    """How many of the steps in `after` have to succeed; None if each has to be done."""
    next_agent_on: tuple[str, ...] = ()
    """Error types of refusals after which the step goes on at its next agent."""
    on_error: tuple[tuple[str, ErrorPolicyPlan], ...] = ()
    """What follows an error of a type, sorted by type."""
    reads: tuple[str, ...] | None = None
    """The fields of the input that the step's requests contain; None for all of them."""
    result_masked: bool = False
    """The result is not shown to operators."""
    key_lifetime: int | None = None
    """How long the service remembers a key, counted from the first request under it; None for
    ever."""
    probe_outlives_key: bool = False
    """The probe finds the effect without the key."""
    input_masked: tuple[str, ...] = ()
    """Of a kind of steps that may be added: the paths of the fields of its own input that are not
    shown to operators."""
    awaits: Awaited | None = None
    """What ends the step, which has no agent then; None for a step that an agent performs."""
    otherwise: Otherwise | None = None
    """The result if nobody answers in time; None if the step fails then."""
    item_of: str | None = None
    """In an expanded plan, the fan-out step that this step is an item of; else None."""
    index: int = 0
    """In an expanded plan, the index of the item, from 0."""
    added_by: str | None = None
    """In an expanded plan, the step that added this one at run time; else None."""
    closes: bool = False
    """It is a closing step: it runs when its task has come to an end, before that is stored."""

    def too_long(self, size: int) -> str | None:
        """Why a result of so many bytes is longer than the plan allows; None if it is not."""
        if size <= self.result_limit:
            return None
        return f"the result has {size} bytes; the plan allows {self.result_limit}"

    @property
    def fans_out(self) -> bool:
        """Whether this is a fan-out step that is not expanded into its items."""
        return self.for_each is not None and self.item_of is None

    @property
    def sleeps(self) -> bool:
        """Whether this is a sleep: it has no agent, and ends by itself."""
        return isinstance(self.awaits, SleepForPlan | SleepUntilPlan)

    @property
    def signal(self) -> str | None:
        """The name of the signal that ends the step; None for any other step."""
        return self.awaits.name if isinstance(self.awaits, SignalPlan) else None

    @property
    def agent(self) -> str:
        """The preferred agent; empty for a sleep or a signal."""
        return self.agents[0] if self.agents else ""

    @property
    def attempts(self) -> int | None:
        """The maximum number of attempts; each wait of the strategy `Wait` adds one attempt.

        None if the step is retried for a time, so that no number limits its attempts.
        """
        if self.retry.keep_trying_for or self._adds_attempts:
            return None
        waits = self.on_failure.times if isinstance(self.on_failure, WaitPlan) else 0
        return self.retry.max_attempts + waits

    def retry_of(self, operation: Operation) -> RetryPlan:
        """The retry of the operation: `perform`, or `undo` of a step with a compensation."""
        undoes = operation == UNDO and self.compensation is not None
        return self.compensation.retry if undoes and self.compensation else self.retry

    def attempts_of(self, operation: Operation) -> int | None:
        """The maximum number of attempts at the operation; None if no number limits them."""
        if operation != UNDO:
            return self.attempts
        retry = self.retry_of(operation)
        return None if retry.keep_trying_for else retry.max_attempts

    @property
    def _adds_attempts(self) -> bool:
        """Whether an error of some type leaves more attempts than others."""
        return any(isinstance(policy, WaitPlan | RetryPlan) for _, policy in self.on_error)

    def follows(self, error_type: str) -> ErrorPolicyPlan | None:
        """What follows an error of this type; None if the plan has nothing about it."""
        policies = dict(self.on_error)
        return policies.get(error_type) or policies.get(ANY)

    def strategy_for(self, error_type: str) -> StrategyPlan:
        """The strategy if the step fails with an error of this type."""
        policy = self.follows(error_type)
        if isinstance(policy, UndoPlan | ArchivePlan | WaitPlan):
            return policy
        return self.on_failure

    def retry_after(self, operation: Operation, error_type: str) -> RetryPlan:
        """The retry after an error of this type; only performs have one by type."""
        policy = None if operation == UNDO else self.follows(error_type)
        return policy if isinstance(policy, RetryPlan) else self.retry_of(operation)

    @property
    def fences_late_performs(self) -> bool:
        """Whether the remote service rejects a perform whose key an undo has spent."""
        return self.compensation is not None and self.compensation.fences_late_performs

    def may_fail(self, items: int) -> int:
        """How many of this number of items may fail."""
        if self.enough is not None:
            return max(0, items - self.enough)
        if self.tolerate >= 1:
            return int(self.tolerate)
        return int(Decimal(str(self.tolerate)) * items)  # exact: 0.29 of 100 is 29


@dataclass(frozen=True, slots=True)
class QuorumMember:
    """One of the steps of which enough have to succeed."""

    instances: tuple[str, ...]
    """The name of the step, or of each of its items."""
    names: tuple[str, ...]
    """Those, and the names of all steps that they have added."""
    may_fail: int = 0
    """How many of its items may fail."""


@dataclass(frozen=True, slots=True)
class Quorum:
    """Steps of which enough have to succeed; the others are not needed then."""

    step: str
    """The step that begins then, or the fan-out whose items they are."""
    members: tuple[QuorumMember, ...]
    enough: int


NOT_STORED = frozenset({"item_of", "index", "added_by", "closes"})
"""The fields of StepPlan that its place in the plan says."""


@dataclass(frozen=True)
class Plan:
    """A workflow as the engine runs it. Durations are in ms."""

    workflow: str
    """The name of the workflow."""
    steps: Mapping[str, StepPlan]
    """The steps by name, in the order of their definition."""
    complete_within: int
    on_failure: StrategyPlan
    retain_for: int
    priority: str
    point_of_no_return: str | None
    """The name of the step; None if the workflow has no point of no return."""
    text: str = field(repr=False, compare=False)
    """The stored text, canonical JSON."""
    masked: tuple[str, ...] = ()
    """The paths of the input fields that are not shown to operators."""
    search: tuple[str, ...] = ()
    """The paths of the input fields by whose values orders are found."""
    deadline: int | None = None
    """In ms, from submission; None if the workflow has none."""
    limit: LimitPlan | None = None
    """How many orders with one value are under way at once; None if any number may be."""
    stored: "Plan | None" = field(default=None, repr=False, compare=False)
    """The plan that this one was expanded from; None if this plan is not expanded."""
    fan_outs: Mapping[str, int] = field(default_factory=dict)
    """In an expanded plan, the number of items of each expanded step."""
    kinds: Mapping[str, StepPlan] = field(default_factory=dict)
    """The kinds of steps that a step may add, by name."""
    most_added: int = 0
    """How many steps may be added to one task."""
    kinds_after_no_return: frozenset[str] = frozenset()
    """The kinds that may be added where they do not come before the point of no return."""
    added: Mapping[str, AddedStep] = field(default_factory=dict)
    """In an expanded plan, the steps that were added to the task."""
    closing: Mapping[str, Mapping[str, StepPlan]] = field(default_factory=dict)
    """The closing steps by name, of each end that has some: Undone, Archived, Cancelled."""
    end: str | None = None
    """In an expanded plan, the end whose closing steps are among its steps; else None."""

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of the plan's text, as 64 hexadecimal digits."""
        return sha256(self.text)

    @cached_property
    def agents(self) -> frozenset[str]:
        """The names of all agents that its steps, and those that may be added, may use."""
        return frozenset(agent for step in self.all_steps for agent in step.agents)

    @property
    def all_steps(self) -> Iterator[StepPlan]:
        """Its steps, the kinds of steps that may be added, and all closing steps."""
        of_ends = chain.from_iterable(steps.values() for steps in self.closing.values())
        return chain(self.steps.values(), self.kinds.values(), of_ends)

    @cached_property
    def quorums(self) -> "Mapping[str, Quorum]":
        """The quorum of each step of which only enough have to succeed, by its name and by those of
        the steps that it has added."""
        return {name: one for one in self._quorums() for part in one.members for name in part.names}

    def _quorums(self) -> "Iterator[Quorum]":
        for step in (self.stored or self).steps.values():
            if step.enough_before is not None:
                members = tuple(map(self._member, step.after))
                yield Quorum(step.name, members, step.enough_before)
            if step.enough is not None and step.name in self.fan_outs:
                parts = map(self._with_added, self.instances(step.name))
                items = tuple(QuorumMember(name[:1], name) for name in parts)
                yield Quorum(step.name, items, step.enough)

    def _member(self, name: str) -> "QuorumMember":
        instances = self.instances(name)
        may_fail = self.steps[instances[0]].may_fail(len(instances))
        return QuorumMember(
            instances, tuple(chain.from_iterable(map(self._with_added, instances))), may_fail
        )

    def _with_added(self, name: str) -> tuple[str, ...]:
        return tuple(self.with_parts(name)) if self.added else (name,)

    @property
    def defined_steps(self) -> int:
        """The number of its steps, with the items of fan-outs and without added steps."""
        return sum(step.added_by is None for step in self.steps.values())

    def before(self, step: str) -> frozenset[str]:
        """Return all direct and indirect predecessors of the step."""
        # Those of all added steps together would grow with the square of their number.
        if self.added or self.end:
            return self.before_any((step,))
        return self._before[step]

    def before_any(self, names: Iterable[str]) -> frozenset[str]:
        """Return all direct and indirect predecessors of at least one of the steps."""
        return _reached(names, lambda name: self.steps[name].after)

    def after_any(self, names: Iterable[str]) -> frozenset[str]:
        """Return all direct and indirect successors of at least one of the steps."""
        return _reached(names, lambda name: self._directly_later[name])

    def later(self, step: str) -> list[str]:
        """Return all direct and indirect successors of the step, in the order of the plan."""
        found = self.after_any((step,))
        return [name for name in self.steps if name in found]

    def instances(self, step: str) -> tuple[str, ...]:
        """Return the names of the step's items if it is expanded, else its own name."""
        return item_names(step, self.fan_outs.get(step, 0)) or (step,)

    def for_task(self, task: Task) -> "Plan":
        """Return the plan with the items of the task's fan-outs, the steps added to it, and the
        closing steps of the end that it comes to."""
        plan = self.expanded(task.fan_outs, task.added)
        return plan if task.closing is None else plan.ending_as(task.closing.end)

    def ending_as(self, end: str) -> "Plan":
        """Return the plan with the closing steps of this end among its steps."""
        plan = self._endings.get(end)
        if plan is None:
            steps = {**self.steps, **self.closing.get(end, {})}
            plan = self._endings[end] = replace(
                self, stored=self.stored or self, steps=steps, end=end
            )
        return plan

    @cached_property
    def _endings(self) -> "dict[str, Plan]":
        return {}

    def defined(self, name: str) -> StepPlan | None:
        """Return the step or kind of the definition that a record belongs to, as it is stored.

        None if the plan has none. `pick[3]` belongs to `pick`.
        """
        stored, step = self.stored or self, step_of(name)
        ends = (steps[step] for steps in stored.closing.values() if step in steps)
        return stored.steps.get(step) or stored.kinds.get(step) or next(ends, None)

    def added_step(self, name: str, after: tuple[str, ...], adder: str) -> StepPlan:
        """Return the step of this name that `adder` has added, as a step that comes after `after`.

        Raises KeyError if the plan does not have its kind.
        """
        key = (name, after, adder)
        step = self._added_steps.get(key)
        if step is None:
            if len(self._added_steps) >= KEPT_ADDED_STEPS:
                self._added_steps.clear()
            kind = self.kinds[step_of(name)]
            step = self._added_steps[key] = replace(kind, name=name, after=after, added_by=adder)
        return step

    def with_parts(self, step: str) -> Iterator[str]:
        """Yield a step of an expanded plan, and all that it has added, directly and indirectly."""
        yield step
        adders = {step}
        for name, one in self.added.items():
            if one.adder in adders:
                adders.add(name)
                yield name

    def expanded(
        self, counts: Mapping[str, int], added: Mapping[str, AddedStep] = NOTHING_ADDED
    ) -> "Plan":
        """Return the plan with each fan-out step replaced by its items: `pick[0]` to `pick[n-1]`.

        `counts` is a task's `fan_outs`. A step that is not in it, or has 0 items, is not replaced.
        A step after a replaced step comes after all its items. `added` are the steps that were
        added to the task (`roundsman.definition.added_steps`). If this plan is already expanded,
        the plan that it was expanded from is expanded again.
        """
        if self.stored is not None:
            return self.stored.expanded(counts, added)
        if added:
            return self._expanded_with(counts, added)
        if not counts:
            return self
        found = {name: count for name, count in counts.items() if count and name in self.steps}
        if not found:
            return self
        key = tuple(sorted(found.items()))
        plan = self._expansions.get(key)
        if plan is None:
            if len(self._expansions) >= KEPT_EXPANSIONS:
                self._expansions.clear()
            plan = self._expansions[key] = self._expand(found)
        return plan

    def _expanded_with(self, counts: Mapping[str, int], added: Mapping[str, AddedStep]) -> "Plan":
        """The plan with added steps. Only the last one is kept: each task has its own."""
        for plan, of_counts in self._last_with_added:
            if plan.added is added and of_counts is counts:
                return plan
        from roundsman.definition.added_steps import with_added  # late: few tasks need it

        plan = self.expanded(counts)
        plan = replace(plan, stored=self, added=added, steps=with_added(plan, added))
        self._last_with_added[:] = [(plan, counts)]
        return plan

    @cached_property
    def _last_with_added(self) -> "list[tuple[Plan, Mapping[str, int]]]":
        return []

    @cached_property
    def _added_steps(self) -> "dict[tuple[str, tuple[str, ...], str], StepPlan]":
        return {}

    @cached_property
    def _expansions(self) -> "dict[tuple[tuple[str, int], ...], Plan]":
        return {}

    def _expand(self, counts: Mapping[str, int]) -> "Plan":
        plan = replace(self, stored=self, fan_outs=counts, steps={})
        items = chain.from_iterable(_items(plan, step) for step in self.steps.values())
        return replace(plan, steps={item.name: item for item in items})

    @cached_property
    def _before(self) -> Mapping[str, frozenset[str]]:
        if self.stored is not None:
            return self._before_of_items(self.stored)
        found: dict[str, frozenset[str]] = {}
        order = TopologicalSorter({s.name: s.after for s in self.steps.values()}).static_order()
        for name in order:
            after = self.steps[name].after
            found[name] = frozenset(chain(after, *(found[other] for other in after)))
        return found

    @cached_property
    def _directly_later(self) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {name: [] for name in self.steps}
        for step in self.steps.values():
            for other in step.after:
                found[other].append(step.name)
        return found

    def _before_of_items(self, stored: "Plan") -> Mapping[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for name in stored.steps:
            before = frozenset(chain.from_iterable(map(self.instances, stored.before(name))))
            found |= dict.fromkeys(self.instances(name), before)
        return found

    @cached_property
    def has_conditions(self) -> bool:
        """Whether a decision may need the order: a step has an expression."""
        return any(
            step.when or step.for_each or isinstance(step.awaits, SleepUntilPlan)
            for step in self.all_steps
        )

    @cached_property
    def masks(self) -> bool:
        """Whether values of an input or of a result are not shown to operators."""
        masked = (step.result_masked or step.input_masked for step in self.all_steps)
        return bool(self.masked) or any(masked)


def _reached(names: Iterable[str], beside: Callable[[str], Iterable[str]]) -> frozenset[str]:
    """Return what can be reached from the steps, one by one, by `beside`."""
    found: set[str] = set()
    ahead = [other for name in names for other in beside(name)]
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += beside(name)
    return frozenset(found)


def _items(plan: Plan, step: StepPlan) -> Iterator[StepPlan]:
    """Yield the steps that replace a step in an expanded plan.

    An item has no `when`: the condition was already evaluated for the step as a whole.
    """
    after = tuple(chain.from_iterable(map(plan.instances, step.after)))
    if step.name not in plan.fan_outs:
        yield replace(step, after=after)
        return
    for index, name in enumerate(plan.instances(step.name)):
        yield replace(step, name=name, after=after, when=None, item_of=step.name, index=index)


def plan_of(workflow: Workflow) -> Plan:
    """Return the plan of a workflow. Equal definitions give plans with equal hashes."""
    point = workflow.point_of_no_return
    steps = [_stored_step(step, workflow) for step in workflow.steps]
    document: dict[str, Json] = {
        "planVersion": _version(workflow, steps),
        "workflow": workflow.name,
        "completeWithin": milliseconds(workflow.complete_within),
        "onFailure": _stored(workflow.on_failure),
        "retainFor": milliseconds(workflow.retain_for),
        "priority": workflow.priority.value,
        "pointOfNoReturn": point.name if point else None,
        "steps": steps,
    }
    masked = workflow.masked_paths()
    if masked:  # a plan without masked fields keeps its hash; older code ignores the field
        document["masked"] = sorted(masked)
    if workflow.search:  # the same
        document["search"] = list(workflow.searched_fields())
    if workflow.deadline is not None:  # a plan without it keeps its hash
        document["deadline"] = milliseconds(workflow.deadline)
    if workflow.limit is not None:  # the same
        document["limit"] = {"by": workflow.limit.by, "atOnce": workflow.limit.at_once}
    if workflow.may_add:  # a plan without it keeps its hash
        document["mayAdd"] = {
            "kinds": [_stored_step(kind, workflow) for kind in workflow.may_add],
            "most": workflow.most_added,
            "afterNoReturn": sorted(kind.name for kind in workflow.may_add_after_no_return),
        }
    if closing := workflow.closing_steps:  # the same
        document["closing"] = {
            end: [_stored_closing(step, workflow) for step in steps]
            for end, steps in closing.items()
        }
    return read_plan(canonical_json(document))


def _version(workflow: Workflow, steps: list[dict[str, Json]]) -> int:
    """The lowest version that has everything that the plan uses, so that hashes stay the same."""
    newest = workflow.limit or workflow.closing_steps
    if newest or any(map(_uses_newest_version, workflow.all_steps)):
        return NEWEST_PLAN_VERSION
    if any(step.otherwise is not FAIL for step in workflow.all_steps):
        return OTHERWISE_PLAN_VERSION
    if workflow.may_add or any(isinstance(step, WAITING_STEPS) for step in workflow.steps):
        return WAITS_PLAN_VERSION
    if workflow.deadline is not None:
        return DEADLINE_PLAN_VERSION
    if any(step.tolerate >= 1 or step.reads is not None for step in workflow.steps):
        return READS_PLAN_VERSION
    richer = any(RICHER_FIELDS & step.keys() for step in steps)
    return RICHER_PLAN_VERSION if richer else PLAN_VERSION


def _uses_newest_version(step: Step) -> bool:
    by_type = bool(step.on_error) or ANY in step.next_agent_on
    return step.enough is not None or isinstance(step.after, AnyOf) or by_type


# How a plan is stored: a dataclass is an object, in which `complete_within` is `completeWithin`. A
# field at its default is left out, so that a definition which does not use it keeps its hash, and
# plans that were stored before there was the field can be read. Older code ignores a field that it
# does not know; PLAN_VERSIONS are for those without which it would run a plan wrongly.

RICHER_FIELDS = frozenset({"agents", "heartbeatWithin", "forEach", "tolerate"})
"""The fields that only version 2 has. A plan contains them only for the steps that use them, so
that a definition without them keeps its hash."""

STRATEGIES: Mapping[str, tuple[type[Strategy], type[StrategyPlan]]] = {
    "undo": (Undo, UndoPlan),
    "archive": (Archive, ArchivePlan),
    "wait": (Wait, WaitPlan),
}
"""What each `kind` of strategy is in a definition, and in a plan."""

ERROR_POLICIES: Mapping[str, tuple[type[object], type[ErrorPolicyPlan]]] = {
    **STRATEGIES,
    "nextAgent": (NextAgent, NextAgentPlan),
    "skip": (Skip, SkipPlan),
}
"""The same for what may follow an error type, besides a `retry`."""

WAITING_STEPS = (Sleep, SleepUntil, Signal)
"""The kinds of steps that have no agent."""

WITHOUT_AGENT: Mapping[str, Json] = {
    "agents": [],
    "completeWithin": 0,
    "retry": {"maxAttempts": 1, "firstDelay": 0, "maxDelay": 0, "notOn": []},
    "compensation": None,
    "resultLimit": 0,
}
"""What is not stored of a sleep or a signal: it makes no attempts."""


def _fields_of(kind: type[object]) -> Sequence[tuple[Field[object], str]]:
    apart = NOT_STORED | {"awaits", "otherwise", "on_error"}
    found = [one for one in fields(cast("Any", kind)) if one.name not in apart]
    words = [one.name.split("_") for one in found]
    names = [first + "".join(map(str.capitalize, more)) for first, *more in words]
    return list(zip(found, names, strict=True))


STORED_FIELDS: Mapping[type[object], Sequence[tuple[Field[object], str]]] = {
    kind: _fields_of(kind)
    for kind in (
        *(StepPlan, RetryPlan, CompensationPlan),
        *(planned for _, planned in ERROR_POLICIES.values()),
    )
}
"""The fields of each class that are stored, with their names there."""


def _stored(value: object) -> Json:
    """A value of a definition as a plan has it."""
    if isinstance(value, timedelta):
        return milliseconds(value)
    if isinstance(value, tuple):
        return list(value)
    for kind, (given, planned) in ERROR_POLICIES.items():
        if isinstance(value, given):
            return {"kind": kind, **_stored_object(planned, value)}
    return cast("Json", value)


def _stored_object(kind: type[object], definition: object, **more: object) -> dict[str, Json]:
    """The fields of a class of the plan as the definition says them; `more` are those of which the
    plan says more, or says it in another way."""
    found: dict[str, Json] = {}
    for one, name in STORED_FIELDS[kind]:
        value = more[one.name] if one.name in more else getattr(definition, one.name)
        if value != one.default:
            found[name] = _stored(value)
    return found


def _stored_step(step: Step, workflow: Workflow) -> dict[str, Json]:
    undo, lifetime = step.compensation, step.lifetime_of_keys
    found = _stored_object(
        StepPlan,
        step,
        agents=step.agent_names(),
        after=step.after_names(),
        enough_before=step.after.enough if isinstance(step.after, AnyOf) else None,
        retry=_stored_retry(step.retry),
        compensation=None if undo is None else _stored_compensation(undo, step),
        on_failure=step.on_failure or workflow.on_failure,
        next_agent_on=tuple(sorted(set(step.next_agent_on))),
        reads=None if step.reads is None else tuple(sorted(set(step.reads))),
        key_lifetime=lifetime if undo is None else None,
        input_masked=tuple(sorted(step.masked_paths())),
    )
    if step.otherwise is not FAIL:
        found["otherwise"] = cast("Json", step.otherwise)
    if step.on_error:
        found["onError"] = {
            error_type: _stored_policy(policy) for error_type, policy in step.on_error.items()
        }
    if step.for_each is not None:
        found["tolerate"] = step.tolerate if step.tolerate >= 1 else float(step.tolerate)
    if isinstance(step, WAITING_STEPS):
        return {
            **_stored_awaits(step),
            **{k: v for k, v in found.items() if k not in WITHOUT_AGENT},
        }
    if len(step.agent_names()) == 1:
        del found["agents"]
    return {**found, "agent": step.agent}


def _stored_closing(step: Step, workflow: Workflow) -> dict[str, Json]:
    """A closing step: a number limits its attempts, and its failure changes nothing of the end."""
    retry = replace(step.retry, max_attempts=step.retry.max_attempts or MIN_ATTEMPTS)
    return _stored_step(replace(step, retry=retry, on_failure=Archive()), workflow)


def _stored_policy(policy: ErrorPolicy) -> Json:
    if isinstance(policy, Retry):
        return {"kind": "retry", **cast("dict[str, Json]", _stored_retry(policy))}
    return _stored(policy)


def _stored_awaits(step: Sleep | SleepUntil | Signal) -> dict[str, Json]:
    match step:
        case Sleep():
            return {"sleepsFor": milliseconds(step.for_)}
        case SleepUntil():
            return {"sleepsUntil": step.until}
        case Signal():
            return {"signal": step.signal, "within": milliseconds(step.within)}


def _stored_retry(retry: Retry) -> Json:
    only_attempts = retry.max_attempts is not None
    return _stored_object(
        RetryPlan,
        retry,
        max_attempts=retry.max_attempts or MIN_ATTEMPTS,
        keep_trying_for=retry.keep_trying_for or (0 if only_attempts else KEEP_TRYING_FOR),
    )


def _stored_compensation(compensation: Compensation, step: Step) -> Json:
    within = compensation.complete_within or step.complete_within
    retry, lifetime = _stored_retry(compensation.retry), step.lifetime_of_keys
    found = _stored_object(CompensationPlan, compensation, complete_within=within, retry=retry)
    return found if lifetime is None else {**found, "keyLifetime": milliseconds(lifetime)}


def read_plan(text: str) -> Plan:
    """Read a plan from its stored text.

    Raises ValueError if the text is not a plan, or if its version is not one that this code reads.
    """
    document = _as(dict, parse_json(text))
    version = document.get("planVersion")
    if version not in PLAN_VERSIONS or isinstance(version, bool):
        raise ValueError(f"plan version {version!r}; this code reads 1 to {NEWEST_PLAN_VERSION}")
    try:
        return _read(document, text)
    except KeyError as error:
        raise ValueError(f"the plan has no {error}") from error


T = TypeVar("T")


def _as(kind: type[T], value: object) -> T:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"the plan has {value!r} where a {kind.__name__} is expected")
    return value


def _read_value(kind: object, value: Json) -> object:
    """Read a value of a field of this type."""
    if isinstance(kind, UnionType):
        members = get_args(kind)
        if members[-1] is not NoneType:
            return _read_strategy(value, members)
        return None if value is None else _read_value(members[0], value)
    if get_origin(kind) is tuple:
        return tuple(_as(str, each) for each in _as(list, value))
    if is_dataclass(kind):
        return _read_object(cast("type[object]", kind), _as(dict, value))
    number = kind is float and not isinstance(value, float)
    return _as(int if number else cast("type[object]", kind), value)


def _read_object(kind: type[T], document: Mapping[str, Json]) -> T:
    make: Callable[..., T] = kind
    return make(
        **{
            one.name: _read_value(one.type, document[name])
            for one, name in STORED_FIELDS[kind]
            if one.default is MISSING or name in document
        }
    )


def _read_strategy(value: Json, allowed: Sequence[object] = get_args(StrategyPlan)) -> StrategyPlan:
    document = _as(dict, value)
    kind = _as(str, document["kind"])
    if kind not in STRATEGIES:
        raise ValueError(f"the plan has an unknown strategy {kind!r}")
    _, planned = STRATEGIES[kind]
    if planned not in allowed:
        raise ValueError(f"the plan has a {kind} after a wait")
    return _read_object(planned, document)


def _read_step(document: dict[str, Json]) -> StepPlan:
    awaits = _read_awaits(document)
    if awaits is not None:
        limit = LARGEST_SIGNAL if isinstance(awaits, SignalPlan) else 0
        given = {**WITHOUT_AGENT, "resultLimit": limit, **document}
    else:
        given = {"agents": [document["agent"]], **document}
        if document["compensation"] is not None:
            given["keyLifetime"] = _as(dict, document["compensation"]).get("keyLifetime")
    otherwise = Otherwise(document["otherwise"]) if "otherwise" in document else None
    policies = sorted(_as(dict, document.get("onError", {})).items())
    on_error = tuple((error_type, _read_policy(policy)) for error_type, policy in policies)
    made = _read_object(StepPlan, given)
    return replace(made, awaits=awaits, otherwise=otherwise, on_error=on_error)


def _read_policy(value: Json) -> ErrorPolicyPlan:
    document = _as(dict, value)
    kind = _as(str, document["kind"])
    if kind == "retry":
        return _read_object(RetryPlan, document)
    if kind not in ERROR_POLICIES:
        raise ValueError(f"the plan has an unknown policy {kind!r}")
    return _read_object(ERROR_POLICIES[kind][1], document)


def _read_awaits(document: dict[str, Json]) -> Awaited | None:
    if "signal" in document:
        return SignalPlan(_as(str, document["signal"]), _as(int, document["within"]))
    if "sleepsFor" in document:
        return SleepForPlan(_as(int, document["sleepsFor"]))
    until = "sleepsUntil" in document
    return SleepUntilPlan(_as(str, document["sleepsUntil"])) if until else None


def _read(document: dict[str, Json], text: str) -> Plan:
    steps = [_read_step(_as(dict, step)) for step in _as(list, document["steps"])]
    may_add = _as(dict, document.get("mayAdd", {}))
    kinds = [_read_step(_as(dict, kind)) for kind in _as(list, may_add.get("kinds", []))]
    _check_steps(steps, kinds)
    closing = {
        TaskState(end).value: _read_closing(_as(list, listed))
        for end, listed in _as(dict, document.get("closing", {})).items()
    }
    point, deadline = document["pointOfNoReturn"], document.get("deadline")
    limit = _as(dict, document["limit"]) if "limit" in document else None
    return Plan(
        workflow=_as(str, document["workflow"]),
        steps={step.name: step for step in steps},
        complete_within=_as(int, document["completeWithin"]),
        on_failure=_read_strategy(document["onFailure"]),
        retain_for=_as(int, document["retainFor"]),
        priority=Priority(_as(str, document["priority"])).value,
        point_of_no_return=None if point is None else _as(str, point),
        masked=tuple(_as(str, path) for path in _as(list, document.get("masked", []))),
        search=tuple(_as(str, path) for path in _as(list, document.get("search", []))),
        deadline=None if deadline is None else _as(int, deadline),
        limit=None
        if limit is None
        else LimitPlan(_as(str, limit["by"]), _as(int, limit["atOnce"])),
        kinds={kind.name: kind for kind in kinds},
        most_added=_as(int, may_add.get("most", 0)),
        kinds_after_no_return=frozenset(
            _as(str, name) for name in _as(list, may_add.get("afterNoReturn", []))
        ),
        closing=closing,
        text=text,
    )


def _read_closing(listed: list[Json]) -> Mapping[str, StepPlan]:
    steps = [replace(_read_step(_as(dict, step)), closes=True) for step in listed]
    _check_steps(steps, [])
    return {step.name: step for step in steps}


def _check_steps(steps: list[StepPlan], kinds: list[StepPlan]) -> None:
    """Check that the steps and kinds have unique names, and the steps known predecessors.

    A plan is written from a checked definition, so only a stored text that was altered fails here.
    """
    names = {step.name for step in steps}
    if not steps or len(names.union(kind.name for kind in kinds)) != len(steps) + len(kinds):
        raise ValueError("the plan has no steps, or two steps with the same name")
    unknown = [name for step in steps for name in step.after if name not in names]
    if unknown:
        raise ValueError(f"the plan has a step after {unknown[0]!r}, but no step with that name")
