"""What the stories of a soak have met, and what they have not: they show nothing of the rest."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Final, TypeVar

from roundsman.engine import transitions
from roundsman.engine.transitions import STEPS, StepEvent, TaskEvent
from roundsman.model.states import END_STATES, SituationName
from roundsman_testing.faults import CALLS, Fault

K = TypeVar("K")
V = TypeVar("V")

COMMANDS: Final = tuple(
    event.value
    for event in TaskEvent
    if event not in (TaskEvent.START, TaskEvent.REPLIED, TaskEvent.INSPECT)
)
MOST_NAMED: Final = 8
"""How many of a kind the sentence names; the JSON has all of them."""


@dataclass
class Account:
    """The totals of several stories."""

    stories: int = 0
    behind: int = 0
    """Stories whose functions have a capacity."""
    parked: int = 0
    """Orders that waited for a hold when a person released one, in all stories with long holds."""
    orders: int = 0
    wrapped: int = 0
    """Orders and signals that came in an envelope of SNS or EventBridge."""
    events: int = 0
    calls: int = 0
    """Calls to AWS in which a fault was possible."""
    commands: int = 0
    """Actions of operators, applications and people who answer a callback."""
    troubles: int = 0
    """Faults at the remote services."""
    redriven: int = 0
    """Dead letters that were redriven."""
    long_holds: Counter[str] = field(default_factory=Counter)
    """The number of holds for hours, by what is held, of releases, and of losses of wakes."""
    faults: Counter[str] = field(default_factory=Counter)
    """The number of faults of calls, by kind."""
    hits: Counter[str] = field(default_factory=Counter)
    """The number of faults of calls, by the name of the call."""
    ends: Counter[str] = field(default_factory=Counter)
    """The number of orders, by the final state of the task."""
    asked: Counter[str] = field(default_factory=Counter)
    """How often the engine decided on a command, by its kind."""
    moves: Counter[str] = field(default_factory=Counter)
    """How often the engine looked up each entry of the table of steps."""

    def add(self, other: "Account") -> None:
        """Add the totals of `other` to this account."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def not_covered(self) -> dict[str, list[str]]:
        """What no story has met, by what it is."""
        wanted: Mapping[str, tuple[Iterable[str], Counter[str]]] = {
            "kinds of fault": ([kind.value for kind in Fault], self.faults),
            "faults of": (CALLS, self.hits),
            "commands": (COMMANDS, self.asked),
            "ends": (sorted(END_STATES), self.ends),
            "moves of a step": ([move_name(*key) for key in STEPS], self.moves),
        }
        missing = {
            what: [name for name in names if not met[name]] for what, (names, met) in wanted.items()
        }
        return {what: names for what, names in missing.items() if names}

    def not_covered_sentence(self) -> str:
        """What no story has met, in a sentence."""
        parts = [f"{what}: {_some(names)}" for what, names in self.not_covered().items()]
        return f"Not covered: {'; '.join(parts) or 'nothing that is counted'}."


@contextmanager
def counted(account: Account) -> Iterator[None]:
    """Count the entries of the transition tables that the engine looks up meanwhile."""

    def move(key: tuple[SituationName, StepEvent]) -> None:
        account.moves[move_name(*key)] += 1

    steps, tasks = transitions.STEPS, transitions.TASKS
    transitions.STEPS = _Table(steps, move)
    transitions.TASKS = _Table(tasks, lambda key: account.asked.update((key[1].value,)))
    try:
        yield
    finally:
        transitions.STEPS, transitions.TASKS = steps, tasks


class _Table(Mapping[K, V]):
    """A table that notes each key that is looked up."""

    def __init__(self, table: Mapping[K, V], note: Callable[[K], None]) -> None:
        self._table = table
        self._note = note

    def __getitem__(self, key: K) -> V:
        self._note(key)
        return self._table[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


def move_name(situation: SituationName, event: StepEvent) -> str:
    """The name of an entry of the table of steps."""
    return f"{situation.value}, {event.value}"


def _some(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    return " | ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
