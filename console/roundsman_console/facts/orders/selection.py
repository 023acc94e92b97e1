"""The filter of tasks: how it is read, and which tasks match it. Pure.

`roundsman_console.facts.orders.filters` declares the filters, and
`roundsman_console.facts.orders.listing` finds the tasks that match.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from roundsman.definition.plan import Plan
from roundsman.model.failure import NO_STEP
from roundsman.model.instants import format_duration
from roundsman.model.json import Json
from roundsman.model.states import END_STATES, ProcessState, TaskState
from roundsman.model.task import StepRecord, Task, step_of
from roundsman_console.base.errors import USAGE, ConsoleError
from roundsman_console.facts.orders.filters import FILTERS, TAGS, FieldValue, Filter

_FAILED = (TaskState.ARCHIVED, TaskState.UNDONE)


@dataclass(frozen=True, slots=True)
class Selection:
    """A filter for tasks. A field that is None matches every task."""

    state: TaskState | None = None
    workflow: str | None = None
    step: str | None = None
    """The step at which the task is under way, waits or failed. The name of a fan-out step matches
    each of its items."""
    error: str | None = None
    """The type of the error at that step."""
    agent: str | None = None
    """The agent of that step."""
    older: int | None = None
    """The minimum age in ms. The age of a task is the time since its order was submitted."""
    newer: int | None = None
    """The upper bound of the age in ms, exclusive."""
    group: str | None = None
    """The id of a failure group."""
    where: FieldValue | None = None
    """The value of a field by which the order is found."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Values by the names in TAGS."""
    left_out: bool = False
    """Only tasks that have left out an item."""
    starts: str | None = None
    """How the id of the order starts; in small or in large letters as well."""

    @property
    def everything(self) -> bool:
        """Whether the filter matches every task."""
        return self == Selection()

    @property
    def only_by_field(self) -> bool:
        """Whether orders are found by the value of a field, and not filtered in another way."""
        return self.where is not None and self == Selection(where=self.where)

    @property
    def beginnings(self) -> tuple[str, ...]:
        """The beginnings of the ids that `starts` stands for; none if it is None."""
        starts = self.starts
        ways = [] if starts is None else [starts, starts.lower(), starts.upper()]
        return tuple(dict.fromkeys(ways))

    @property
    def decided_by_index(self) -> bool:
        """Whether the index of due tasks decides the filter, so that no record is read for it.

        Only of an ended task that still owes a status or an alert the record is needed.
        """
        used = [one for one in FILTERS.values() if self.value_of(one)]
        return all(one.in_index for one in used) and (
            self.state is None or self.state in END_STATES
        )

    def value_of(self, one: Filter) -> object:
        """Return the value that a filter has in this selection; None or false if it has none."""
        return self.tags.get(one.name) if one.is_tag else getattr(self, one.of or one.name)

    def document(self) -> dict[str, Json]:
        """Return the filter as JSON for scripts and audits; ages are in seconds.

        The value of `where` is not in it, since it may be masked.
        """
        return {
            "state": self.state.value if self.state else None,
            "workflow": self.workflow,
            "step": self.step,
            "error": self.error,
            "agent": self.agent,
            "olderThan": None if self.older is None else self.older / 1000,
            "newerThan": None if self.newer is None else self.newer / 1000,
            "group": self.group,
            "foundBy": None if self.where is None else self.where.path,
            "tags": dict(self.tags),
            "leftOut": self.left_out,
            "startsWith": self.starts,
        }

    def words(self) -> str:
        """Return the filter in words for people.

        For example `Archived, at charge_card, CardDeclined, older than 2 h`; `all tasks` for the
        empty filter.
        """
        parts = [
            one.words.format(one.show(value))
            for one in FILTERS.values()
            if (value := self.value_of(one)) is not None and value is not False
        ]
        return ", ".join(parts) or "all tasks"


def read_selection(typed: Mapping[str, str | None]) -> Selection:
    """Return the filter that the texts describe, by the names of FILTERS; None for no text.

    Raises ConsoleError if a text is invalid or if no task can match.
    """
    values: dict[str, object] = {}
    tags: dict[str, object] = {}
    for one in FILTERS.values():
        text = typed.get(one.name)
        if text is not None:
            value = one.is_check or one.read(one.option(), text)
            (tags if one.is_tag else values)[one.name if one.is_tag else one.of or one.name] = value
    make: Callable[..., Selection] = Selection
    selection = make(**values, tags=tags)
    _check(selection)
    return selection


def _check(selection: Selection) -> None:
    older, newer, state = selection.older, selection.newer, selection.state
    if older is not None and newer is not None and newer <= older:
        raise ConsoleError(
            f"No order is older than {format_duration(older)} and newer than "
            f"{format_duration(newer)}: for a range of ages, --newer must be the greater.",
            USAGE,
        )
    if selection.group is not None and state is not None and state not in _FAILED:
        raise ConsoleError(
            f"No {state} task is in a failure group; its tasks are Archived or Undone.", USAGE
        )
    if state is TaskState.SCHEDULED and (selection.step or selection.error or selection.agent):
        raise ConsoleError("A Scheduled task is at no step, and has no error yet.", USAGE)


def matches(task: Task, selection: Selection, at: int, plan: Plan | None = None) -> bool:
    """Whether the task matches the filter at `at` (epoch ms).

    Its plan is needed only if the filter names an agent: a step that waits has none in its record.
    """
    age, tags = at - task.created_at, tags_of(task)
    return (
        selection.state in (None, task.state)
        and selection.workflow in (None, task.workflow)
        and (selection.older is None or age >= selection.older)
        and (selection.newer is None or age < selection.newer)
        and all(tags.get(name) == value for name, value in selection.tags.items())
        and selection.group in (None, task.failure)
        and (not selection.left_out or bool(task.left_out()))
        and (selection.starts is None or task.task_id.startswith(selection.beginnings))
        and _at_step(task, selection, plan)
    )


def tags_of(task: Task) -> dict[str, str]:
    """Return the tags of the task by the names in TAGS, without those that the event left out."""
    found = (task.tenant, task.correlation_id, task.priority)
    return {name: value for name, value in zip(TAGS, found, strict=True) if value is not None}


def _at_step(task: Task, selection: Selection, plan: Plan | None) -> bool:
    step, error, agent = selection.step, selection.error, selection.agent
    if step is None and error is None and agent is None:
        return True
    return any(
        step in (None, name, step_of(name))
        and error in (None, kind)
        and (agent is None or agent in _agents(task, name, plan))
        for name, kind in _troubles(task)
    )


def _agents(task: Task, step: str, plan: Plan | None) -> Sequence[str]:
    """The agent of the step's last attempt; without one, those of its plan."""
    agent = task.step(step).agent
    if agent is not None:
        return (agent,)
    planned = plan and plan.defined(step)
    return planned.agents if planned else ()


def _troubles(task: Task) -> Iterator[tuple[str, str | None]]:
    """The steps at which the task is under way, waits or failed, each with its error type."""
    if task.ending is not None:
        error = task.ending.error
        yield task.ending.step or NO_STEP, error.type if error else None
    for name, record in task.steps.items():
        if _stands_at(record):
            yield name, record.error.type if record.error else None


def _stands_at(record: StepRecord) -> bool:
    if record.process_state is ProcessState.PENDING:
        waits = record.not_before is not None or record.held_since is not None
        return waits or record.failure_count > 0
    return record.process_state in _UNDER_WAY_OR_FAILED


_UNDER_WAY_OR_FAILED = frozenset(
    {
        ProcessState.PROCESSING,
        ProcessState.ERROR,
        ProcessState.UNDOING,
        ProcessState.UNDO_ERROR,
    }
)
