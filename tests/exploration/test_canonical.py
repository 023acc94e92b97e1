"""The engine decides alike for a canonical record and for every record that it was made of.

The explorer decides on canonical records only. Here a task lives on as it is stored, at any
instant, beside its canonical record, and both must come to the same.
"""

from dataclasses import fields, replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roundsman.definition.plan import Plan
from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.model.events import Outcome
from roundsman.model.instants import SKEW
from roundsman.model.situations import (
    Asleep,
    AtAgent,
    AwaitsCallback,
    Ended,
    Parked,
    Ready,
    WaitsUntil,
)
from roundsman.model.task import StepRecord, Task
from roundsman.wire.messages import AgentRequest
from tests.exploration.answers import ANSWERS
from tests.exploration.canonical import T0, Records, name_of, token_of
from tests.exploration.configurations import (
    AGENTS,
    beats,
    briefly,
    forgotten,
    items,
    nap,
    patient,
    plan,
    row,
    several,
    step,
    unfenced,
    unfenced_row,
    waits,
)
from tests.exploration.model import REPLY_TO, WITHIN
from tests.exploration.settling import STALE
from tests.exploration.shells import TASK_ID, Desk, Shells, World
from tests.exploration.state import INSPECT, PASS, START, Mail

PLANS = (
    plan(*row),
    plan(*unfenced_row),
    plan(waits),
    plan(unfenced),
    plan(several),
    plan(replace(several, heartbeat_within=beats.heartbeat_within)),
    plan(items, step("b", items)),
    plan(patient),
    plan(briefly, nap, step("b", nap)),
    plan(forgotten),
)
HELD = ((), (), (), ("worker",), AGENTS)
WAITS = (
    0,
    1,
    10_000,
    10_001,
    15_000,
    SKEW - 1,
    SKEW,
    SKEW + 1,
    12_345,
    29_999,
    30_000,
    30_001,
    61_000,
    121_000,
    301_000,
)
OUTCOMES = ("succeeded", "succeeded", *ANSWERS)
JUDGED = {
    StepRecord: {
        *("operation", "situation", "failure_count", "started_at", "agent", "round", "acts_until"),
        *("outcome_unknown", "tried", "after_undo", "effect", "granted", "corrections"),
        *("retry_window", "polling", "signal", "wait_ended_at", "error"),
        *("key_until", "left_out", "finished_at", "unanswered"),
    },
    Ready: {"claim_by", "late_since", "parked_since"},
    WaitsUntil: {"not_before", "claim_by"},
    Parked: {"not_before", "claim_by", "since", "held_for"},
    Asleep: {"until", "since"},
    AtAgent: {"lock", "until", "heard_at", "extra", "late_since", "heartbeat_by"},
    AwaitsCallback: {
        *("lock", "until", "heard_at", "extra", "late_since"),
        *("remind_every", "remind_at", "reminded_by"),
    },
    Ended: {"how", "until"},
}
"""The fields of a step's record and of its situations that a canonical one has."""

NOT_KEPT = {
    StepRecord: {
        *("result", "reminders", "uncounted_timeouts", "uncounted_calls"),
        "key_since",
    },
    AtAgent: {"read_past_at"},
    AwaitsCallback: {"read_past_at"},
}
"""Those that it has not, each with its reason there."""

acts = st.tuples(
    st.sampled_from(WAITS),
    st.sampled_from(["start", "inspect", "pass", "reply", "reply", "reply"]),
    st.integers(0, 5),
    st.sampled_from(OUTCOMES),
    st.sampled_from(HELD),
    st.sampled_from([None, True, False]),
)


class Life:
    """One task as it is stored, what its agents were asked, and its canonical records."""

    def __init__(self, made: Plan) -> None:
        self.records = Records(made, near_end=False, outcomes=True, looks=True)
        self.shells = Shells(self.records, {})
        self.task: Task = replace(
            new_task(made, TASK_ID, ProcessingOptions(reply_to=REPLY_TO), T0, shards=1), owed=()
        )
        self.now = T0
        self.asked: list[AgentRequest] = []
        self.messages = 0

    def wait(self, by: int) -> None:
        """Whether time passes for the record or for its canonical one makes no difference."""
        before, _ = self.records.canonical(self.task, self.now)
        self.now += by
        after, _ = self.records.canonical(self.task, self.now)
        assert self.records.canonical(self.records.tasks[before], T0 + by)[0] == after

    def job(self, kind: str, which: int, outcome: str) -> Mail:
        if kind != "reply" or not self.asked:
            return {"pass": PASS, "inspect": INSPECT}.get(kind, START)
        request = self.asked[-1 - which % len(self.asked)]
        return Mail(
            "reply",
            request.step,
            request.operation,
            request.idempotency_key,
            request.lock,
            outcome=outcome,
            until=WITHIN if ANSWERS[outcome].outcome is Outcome.WAITING else 0,
        )

    def do(self, job: Mail, world: World) -> None:
        """The same job on the record and on the canonical one."""
        number, names = self.records.canonical(self.task, self.now)
        lock = job.lock
        if lock:
            known = names.get(name_of(lock))
            lock = STALE if known is None else token_of(known, lock)
        by = job.until
        ran = self.shells.run(number, job._replace(lock=lock, until=by and T0 + by), world=world)
        desk = Desk(self.task, self.now)
        self.messages += 1
        mine = job._replace(name=f"message {self.messages}", until=by and self.now + by)
        self.shells.handle(desk, mine, world)
        self.task = desk.tasks()[0]
        self.asked += desk.outbox.requests
        assert self.records.canonical(self.task, self.now)[0] == ran.record
        assert tuple(desk.effects) == ran.effects
        assert [self.seen(r, self.now) for r in desk.outbox.requests] == [
            self.seen(r, T0) for r in ran.requests
        ]
        assert desk.outbox.starts == ran.starts

    def seen(self, request: AgentRequest, now: int) -> tuple[str, str, int, int]:
        """What a request says that is not a name."""
        by = request.complete_by - now
        return request.step, request.idempotency_key, request.attempt, by


@pytest.mark.exhaustive
@given(st.sampled_from(PLANS), st.lists(acts, max_size=40))
@example(
    PLANS[1],
    [(0, "start", 0, OUTCOMES[0], (), None), (30_000, "inspect", 0, OUTCOMES[0], (), None)],
)
@example(  # parked after the end of its polls
    PLANS[0],
    [
        (0, "start", 0, OUTCOMES[0], (), None),
        (0, "reply", 0, "not yet", (), None),
        (61_000, "start", 0, OUTCOMES[0], ("worker",), None),
        (29_999, "start", 0, OUTCOMES[0], (), None),
    ],
)
@example(  # its callback comes when no copy of its request can act any more
    PLANS[1],
    [
        (0, "start", 0, OUTCOMES[0], (), None),
        (0, "reply", 0, "waiting", (), None),
        (61_000, "reply", 0, "yes", (), None),
    ],
)
def test_a_record_and_its_canonical_one_come_to_the_same(
    made: Plan, story: list[tuple[int, str, int, str, tuple[str, ...], bool | None]]
) -> None:
    life = Life(made)
    for wait, kind, which, outcome, held, replies_wait in story:
        life.wait(wait)
        world = World(frozenset(held), replies_wait=replies_wait)
        life.do(life.job(kind, which, outcome), world)


@pytest.mark.parametrize("kind", JUDGED)
def test_each_field_of_a_steps_record_is_kept_or_left_out_for_a_reason(kind: type) -> None:
    known = JUDGED[kind] | NOT_KEPT.get(kind, set())
    assert {field.name for field in fields(kind)} == known
