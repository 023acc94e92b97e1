"""The orders of a proof: what each asks for, how the services treat it, and how it must end.

All of it follows from the number at the end of the order's id. So the services treat an order alike
in every attempt, without any state, and its end is known before it is sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Treatment(StrEnum):
    """What the services do with an order. The value completes "the services ..."."""

    ANSWERED = "answer at once"
    SLOW = "take their time"
    BUSY = "fail twice, without an effect"
    LOST = "have the effect, and their answer is lost"
    EXITS = "have the effect, and the process of the agent ends before it can reply"
    HANGS = "have the effect long after the agent's time is over"
    RUNS_OUT = "give no answer until the function runs out of time"
    REFUSED = "refuse the last step, and lose the answer of the first undo"
    REFUSED_LATE = "refuse the last step, and have the effect of the first once it is undone"


_T = Treatment
TREATMENTS = (
    *(_T.ANSWERED, _T.REFUSED, _T.LOST, _T.ANSWERED, _T.BUSY, _T.EXITS, _T.ANSWERED, _T.HANGS),
    *(_T.SLOW, _T.REFUSED_LATE, _T.RUNS_OUT, _T.ANSWERED, _T.ANSWERED, _T.REFUSED, _T.ANSWERED),
    *(_T.ANSWERED, _T.ANSWERED, _T.LOST, _T.ANSWERED, _T.ANSWERED, _T.BUSY, _T.EXITS),
    *(_T.ANSWERED, _T.ANSWERED, _T.SLOW),
)
"""The treatments of orders by number, over and over. There are 25, which has no divisor in common
with the number of workflows: 200 orders are every workflow under every treatment. Few of them take
an instance's time, so that an account with ten instances is done in time."""

STEPS: Mapping[str, tuple[str, ...]] = {
    "line": ("reserve", "charge", "ship"),
    "diamond": ("reserve", "charge", "pack", "ship"),
    "items": ("pick", "charge"),
    "choice": ("reserve", "wrap", "ship"),
    "backup": ("reserve", "send"),
    "verified": ("reserve", "debit"),
    "archive": ("reserve", "charge", "ship"),
    "no_return": ("reserve", "charge", "ship"),
}
"""The workflows, with their steps in the order of the work."""

ITEMS = ("a", "b", "c")
"""The items of an order of the workflow `items`; one of them may be refused."""

MARKER = "contents-of-a-proof"
"""What the contents of each order and the results of its steps have in common, so that none of
them can be in a log without being found."""

FIRST_COURIER = "courier"
"""The agent that performs `send` of the workflow `backup`, unless it is full."""

REFUSED = "Refused"
FULL = "Full"


@dataclass(frozen=True, slots=True)
class ExpectedEnd:
    """How an order must end."""

    state: str
    """The state of its task, such as `Completed`."""
    standing: frozenset[str]
    """The steps whose effects stand at the services; `pick[1]` for an item."""


@dataclass(frozen=True, slots=True)
class ProofOrder:
    """One order of a proof."""

    number: int

    @property
    def workflow(self) -> str:
        """The name of its workflow."""
        return tuple(STEPS)[self.number % len(STEPS)]

    @property
    def treatment(self) -> Treatment:
        """What the services do with it."""
        return TREATMENTS[self.number % len(TREATMENTS)]

    @property
    def is_refused(self) -> bool:
        """Whether its last step is refused."""
        return self.treatment in (Treatment.REFUSED, Treatment.REFUSED_LATE)

    @property
    def has_choice(self) -> bool:
        """Whether it is one of the half with a gift, a refused item, or a courier that is full."""
        return self.number // len(STEPS) % 2 == 1

    @property
    def struck(self) -> str:
        """The step whose first call is treated so; `pick[0]` for an item."""
        steps = STEPS[self.workflow]
        place = 0 if self.is_refused else self.number // len(TREATMENTS) % len(steps)
        step = steps[place]
        if step == "wrap" and not self.has_choice:
            step = steps[0]  # that one is skipped
        return "pick[0]" if step == "pick" else step

    def event(self, order_id: str) -> dict[str, object]:
        """Return its order event."""
        return {
            "orderId": order_id,
            "processing": {"workflow": self.workflow},
            "items": list(ITEMS),
            "customer": MARKER,
            "gift": self.has_choice,
        }

    def refusal(self, step: str, agent: str) -> str | None:
        """Return the type of the error with which a service refuses a step; None if it does not."""
        if step == "send" and agent == FIRST_COURIER and (self.is_refused or self.has_choice):
            return FULL
        if self.is_refused and step == STEPS[self.workflow][-1]:
            return REFUSED
        if self.workflow == "items" and step == "pick[1]" and self.has_choice:
            return REFUSED
        return None

    @property
    def end(self) -> ExpectedEnd:
        """How it must end, whatever else happens."""
        if not self.is_refused:
            return ExpectedEnd("Completed", frozenset(self._performed()))
        if self.workflow in ("archive", "no_return"):
            return ExpectedEnd("Archived", frozenset(STEPS[self.workflow][:-1]))
        return ExpectedEnd("Undone", frozenset())

    def _performed(self) -> list[str]:
        found = []
        for step in STEPS[self.workflow]:
            names = [f"pick[{n}]" for n in range(len(ITEMS))] if step == "pick" else [step]
            found += [name for name in names if not self._is_left_out(name)]
        return found

    def _is_left_out(self, step: str) -> bool:
        if step == "wrap":
            return not self.has_choice
        return step == "pick[1]" and self.has_choice


def order_id(run: str, number: int) -> str:
    """Return the id of an order: `prove-1a2b3c-000017`."""
    return f"{run}-{number:06d}"


def order_of(order_id: str) -> ProofOrder | None:
    """Return the order with this id; None if it is not one of a proof."""
    number = order_id.rpartition("-")[2]
    return ProofOrder(int(number)) if number.isascii() and number.isdecimal() else None
