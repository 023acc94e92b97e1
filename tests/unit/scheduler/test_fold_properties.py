"""Random replies to random orders: handled together, they give what they give one by one."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from operator import methodcaller

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundsman.definition.plan import Plan
from roundsman.model.events import Outcome
from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.instants import SECOND
from roundsman.model.task import Effect, StepError, Task, idempotency_key
from roundsman.scheduler.arrived import Arrived
from roundsman.scheduler.scheduler import Handled
from roundsman.wire.alert import Alert
from roundsman.wire.messages import Reply
from roundsman_testing.recording import SentRequest, SentStatus
from tests.support.shell_world import ORDER_ID, Shells
from tests.unit.engine.test_machine_properties import plans

MOST_REPLIES = 8


@dataclass
class Twins:
    """Two equal stacks. The first one gets replies one by one, and the second one together."""

    plan: Plan
    alone: Shells = field(init=False)
    together: Shells = field(init=False)

    def __post_init__(self) -> None:
        self.alone, self.together = Shells(self.plan), Shells(self.plan)

    def both(self, act: Callable[[Shells], object]) -> None:
        act(self.alone)
        act(self.together)

    def reply(self, arrived: list[Arrived]) -> tuple[list[object], list[object]]:
        """What became of each, by both ways."""
        scheduler = self.alone.scheduler()
        first = list[object]()
        for one in arrived:
            first += map(comparable, scheduler.handle([one]))
        second = [comparable(result) for result in self.together.scheduler().handle(arrived)]
        return first, second


def comparable(result: object) -> object:
    """A result without what it sent of what was owed, which is compared as it arrived.

    Of an exception, its type and text: two of them are never equal.
    """
    if isinstance(result, Exception):
        return type(result), str(result)
    return replace(result, unnoted=None) if isinstance(result, Handled) else result


def stored(shells: Shells) -> Task | None:
    return shells.store.stored(ORDER_ID)


def sent(shells: Shells) -> list[object]:
    """Requests, statuses and alerts, each in its order."""
    found = shells.outbox.sent
    return [
        *(one for one in found if isinstance(one, SentRequest)),
        *(one for one in found if isinstance(one, SentStatus)),
        *(one for one in found if isinstance(one, Alert)),
    ]


@dataclass
class Chance:
    """Replies that are drawn, and remembered so that they can come again."""

    draw: Callable[[st.SearchStrategy[int]], int]
    earlier: list[Arrived] = field(default_factory=list)
    tokens: dict[str, list[str]] = field(default_factory=dict)

    def of(self, most: int) -> int:
        return self.draw(st.integers(0, most))

    def replies(self, task: Task, plan: Plan) -> list[Arrived]:
        for name, record in task.steps.items():
            if record.locked_by is not None:
                self.tokens.setdefault(name, []).append(record.locked_by)
        return [self.reply(task, plan) for _ in range(1 + self.of(MOST_REPLIES - 1))]

    def reply(self, task: Task, plan: Plan) -> Arrived:
        if self.earlier and self.of(9) == 0:
            return self.earlier[self.of(len(self.earlier) - 1)]
        names = [name for name, record in task.steps.items() if record.under_way]
        if not names or self.of(5) == 0:
            names = list(plan.steps)
        name = names[self.of(len(names) - 1)]
        record = task.step(name)
        tokens = [*self.tokens.get(name, []), "foreign-token.1"]
        current = self.of(4) > 0 and record.locked_by is not None
        operation = record.operation if self.of(20) else ("perform", "undo")[self.of(1)]
        outcome = Outcome.SUCCEEDED if self.of(1) else list(Outcome)[self.of(5)]
        reply = Reply(
            task_id=ORDER_ID,
            step=name,
            operation=operation,
            lock=str(record.locked_by) if current else tokens[self.of(len(tokens) - 1)],
            idempotency_key=idempotency_key(ORDER_ID, name, operation, record),
            outcome=outcome,
            agent="one",
            finished_at=0,
            result=["short", "x" * 60, None][self.of(2)],
            error=[None, StepError("Never", ""), StepError("Odd", "again", unexpected=True)][
                self.of(2)
            ],
            retry_after=[None, None, 0, 3_000][self.of(3)],
            until=self.of(2) * 20_000,
            outcome_unknown=self.of(1) == 1,
            effect=[None, Effect.NONE, Effect.STANDS][self.of(2)],
            callback=self.of(4) == 0,
        )
        arrived = Arrived(reply, f"m-{len(self.earlier)}", "AROAAGENT:fn")
        self.earlier.append(arrived)
        return arrived


def check(plan: Plan, data: st.DataObject) -> None:
    """One random order, with random replies to it, in both stacks."""
    twins, chance = Twins(plan), Chance(data.draw)
    twins.both(methodcaller("submit"))
    twins.both(methodcaller("start"))
    for number in range(1 + chance.of(5)):
        if chance.of(3) == 0:
            seconds = chance.of(20)
            twins.both(methodcaller("wait", seconds))
        match chance.of(9):
            case 0:
                hold = Hold("one", OPERATOR, 0, twins.alone.now + 5 * SECOND, "", "operator")
                for shells in (twins.alone, twins.together):
                    shells.holds.hold(hold)
            case 1 | 2:
                twins.both(methodcaller("inspect", f"inspect-{number}"))
            case _:
                replies = chance.replies(twins.alone.task(), plan)
                alone, together = twins.reply(replies)
                assert together == alone
        assert stored(twins.together) == stored(twins.alone)
        assert twins.together.store.history(ORDER_ID) == twins.alone.store.history(ORDER_ID)
        assert sent(twins.together) == sent(twins.alone)
        assert set(twins.together.inspects()) == set(twins.alone.inspects())
        assert not twins.together.unwatched


@pytest.mark.parametrize(
    "examples",
    [
        15,
        pytest.param(50, marks=pytest.mark.verify),
        pytest.param(300, marks=pytest.mark.verify),
    ],
)
def test_replies_that_are_handled_together_give_what_they_give_one_by_one(examples: int) -> None:
    settings(max_examples=examples)(given(plans(), st.data())(check))()
