"""The explorer finds what it is there for: a guard taken out is a violation, and its trace short.

Each bug is planted by replacing one small part of the engine. The length is that of the shortest
way there, so that a model that has become blind is seen.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import pytest

from roundsman.definition.plan import Plan, StepPlan
from roundsman.engine import (
    claims,
    compensation,
    due,
    effects,
    fan_out,
    left_out,
    machine,
    operator,
    overdue,
    replies,
    requests,
    retries,
    routing,
    task_state,
    timeouts,
)
from roundsman.engine import decision_builder as building
from roundsman.engine import steps as ready_steps
from roundsman.engine.compensation import begin_undo, undone
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.due import with_due_entry
from roundsman.engine.request_deadlines import ends_at, fits_key, request_ends_at
from roundsman.engine.step_values import step_values
from roundsman.engine.transitions import StepEvent, TaskEvent, task_transition
from roundsman.model.events import Agents, Claimant, Decision, Event, Replied, Resolve, Resubmit
from roundsman.model.instants import DAY
from roundsman.model.json import Json
from roundsman.model.order_limit import Turn
from roundsman.model.scheduler_queues import NOTHING_KNOWN, SchedulerQueues
from roundsman.model.situations import AtAgent, AwaitsCallback, End, Ended
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import PERFORM, AfterUndo, Effect, StepError, StepRecord, Task
from roundsman.ports import Saved, Superseded
from roundsman.scheduler import queue_watch, scheduler
from roundsman_testing.invariants.rules import Invariant
from roundsman_testing.memory import MemoryStore
from tests.exploration.configurations import (
    A_ROW,
    A_STEP,
    ASKS,
    BEATS,
    EVERY,
    FOR_GOOD,
    FORGETS,
    HELD,
    ITEMS,
    LOSES_PLAN,
    MOVES,
    REMINDS,
    RUN_EARLY,
    SEVERAL,
    THEN_ANOTHER,
    TOO_LONG,
    UNFENCED,
    asked,
    briefly,
    one,
    plan,
    unfenced,
)
from tests.exploration.explorer import explore
from tests.exploration.model import COUNTED, UNPROVED, Configuration, TaskModel
from tests.exploration.rules import (
    FINAL,
    GIVEN_ONCE,
    KNOWN,
    LOOKED_AT,
    UNDO_IN_ORDER,
)
from tests.support.planted import no_version_condition
from tests.support.steps import changed_step

log = logging.getLogger(__name__)
AT_MOST = 60_000
Patch: TypeAlias = pytest.MonkeyPatch


def a_due_entry_is_moved_without_condition(patch: Patch) -> None:
    real = MemoryStore.rearm

    def rearm(store: MemoryStore, task: Task, due_at: int) -> Saved | Superseded:
        return real(store, store.tasks()[0], due_at)

    patch.setattr(MemoryStore, "rearm", rearm)


def no_lock_fence(patch: Patch) -> None:
    """Every reply is taken for one to the step's current claim."""
    real = machine.decide

    def decide(
        plan: Plan | None,
        task: Task,
        event: Event,
        now: int,
        *,
        order: Json,
        agents: Agents,
        jitter: float,
        next_plan: Plan | None = None,
        queues: SchedulerQueues = NOTHING_KNOWN,
        turn: Turn | None = None,
    ) -> Decision:
        if isinstance(event, Replied):
            event = replace(event, lock=task.step(event.step).locked_by or event.lock)
        return real(
            plan,
            task,
            event,
            now,
            order=order,
            agents=agents,
            jitter=jitter,
            next_plan=next_plan,
            queues=queues,
            turn=turn,
        )

    patch.setattr(scheduler, "decide", decide)


def an_undo_waits_for_nothing(patch: Patch) -> None:
    patch.setattr(DecisionBuilder, "acts_until", lambda decision, name: None)


def an_undo_allows_nothing_for_clocks(patch: Patch) -> None:
    patch.setattr(compensation, "SKEW", 0)


def the_due_instant_never_falls(patch: Patch) -> None:
    def late(task: Task, now: int) -> Task:
        after = with_due_entry(task, now)
        return replace(after, due_at=task.due_at) if after.lane == task.lane else after

    patch.setattr(building, "with_due_entry", late)


def only_what_is_processed_is_undone(patch: Patch) -> None:
    def stands(record: StepRecord) -> bool:
        return record.process_state is ProcessState.PROCESSED

    patch.setattr(effects, "may_have_taken_effect", stands)
    patch.setattr(compensation, "TO_UNDO", frozenset({ProcessState.PROCESSED}))


def an_undo_begins_before_what_came_after_is_settled(patch: Patch) -> None:
    patch.setattr(compensation, "_with_successors_unfinished", lambda context: frozenset())


def nothing_is_owed(patch: Patch) -> None:
    patch.setattr(building, "newly_owed", lambda *_, **__: ())


def a_step_needs_no_predecessors(patch: Patch) -> None:
    def is_ready(context: DecisionContext, _: Plan, step: StepPlan) -> bool:
        record = context.decision.step(step.name)
        return record.process_state is ProcessState.PENDING and record.not_before is None

    patch.setattr(ready_steps, "_is_ready", is_ready)


def a_new_round_has_the_old_keys(patch: Patch) -> None:
    def begin_anew(decision: DecisionBuilder, name: str) -> None:
        decision._steps.pop(name, None)

    patch.setattr(DecisionBuilder, "begin_anew", begin_anew)


def a_dead_claim_is_never_given_up(patch: Patch) -> None:
    patch.setattr(machine, "overdue", lambda context, step, late, by: None)


def a_lock_does_not_name_its_version(patch: Patch) -> None:
    def token(claimant: Claimant, attempt: int, _: int) -> str:
        return f"{claimant.instance}-{claimant.nonce}.{attempt}"

    patch.setattr(Claimant, "token", token)


def an_agent_is_left_without_a_proof(patch: Patch) -> None:
    patch.setattr(routing, "_may_leave", lambda context, step: True)


def an_agent_is_left_before_it_is_undone(patch: Patch) -> None:
    """Without the undo, the step begins at the next agent at once."""

    def settled(
        context: DecisionContext,
        step: StepPlan,
        event: StepEvent,
        *,
        after_undo: AfterUndo | None,
        error: StepError | None,
        then: str,
    ) -> None:
        begin_undo(context, step, event, after_undo=after_undo, error=error, then=then)
        undone(context, step)

    patch.setattr(retries, "begin_undo", settled)


def a_refusal_is_taken_for_a_proof(patch: Patch) -> None:
    real = DecisionBuilder.fail

    def fail(
        decision: DecisionBuilder,
        name: str,
        event: StepEvent,
        error: StepError,
        effect: Effect | None = None,
    ) -> None:
        real(decision, name, event, error, effect)
        if event is StepEvent.REFUSED:
            decision.change(name, step_values(outcome_unknown=False, effect=Effect.NONE))

    patch.setattr(DecisionBuilder, "fail", fail)


def a_fresh_key_is_given_without_a_proof(patch: Patch) -> None:
    real = operator._perform_under_fresh_key

    def perform(context: DecisionContext, step: StepPlan, event: Resubmit) -> None:
        context.decision.change(step.name, step_values(effect=Effect.NONE))
        real(context, step, event)

    patch.setattr(operator, "_perform_under_fresh_key", perform)


def a_person_is_believed_about_what_is_to_come(patch: Patch) -> None:
    """A person reports that nothing happened, and no request counts as able to act any more."""
    patch.setattr(DecisionBuilder, "acts_until", lambda decision, name: None)


def a_person_is_believed_about_a_call_that_hangs(patch: Patch) -> None:
    real = operator._resolve  # the bug is planted there

    def resolve(context: DecisionContext, event: Resolve) -> None:
        real(context, event)
        record = context.decision.step(event.step)
        if record.process_state is ProcessState.PENDING:
            context.decision.change(event.step, step_values(effect=Effect.NONE))

    patch.setattr(operator, "_resolve", resolve)


def every_timeout_counts(patch: Patch) -> None:
    patch.setattr(timeouts, "counts", lambda *_: True)


def one_look_proves(patch: Patch) -> None:
    """That commands wait for the scheduler is no reason to doubt an empty queue of replies."""
    patch.setattr(queue_watch, "CONFIRMED_FOR", 0)


def nobody_looks_at_a_step_that_waits_for_its_callback(patch: Patch) -> None:
    patch.setattr(AwaitsCallback, "overdue_at", property(lambda wait: wait.until + 10 * DAY))


def nobody_looks_when_a_reminder_is_due(patch: Patch) -> None:
    real = due.due

    def without_reminders(task: Task, now: int) -> int:
        steps = {name: changed_step(r, remind_at=None) for name, r in task.steps.items()}
        return real(replace(task, steps=steps), now)

    patch.setattr(due, "due", without_reminders)
    patch.setattr("roundsman.supervisor.supervisor.due", without_reminders)


def a_heartbeat_is_not_missed(patch: Patch) -> None:
    patch.setattr(AtAgent, "overdue_at", property(lambda attempt: attempt.until))


def a_task_without_its_plan_is_taken_for_undone(patch: Patch) -> None:
    patch.setattr(task_state, "_end_state", lambda plan, task, ending: ending.how)


def an_item_is_left_out_and_not_undone(patch: Patch) -> None:
    def left_out(context: DecisionContext, step: StepPlan, *, after_undo: AfterUndo) -> None:
        skipped = Ended(how=End.SKIPPED)
        context.decision.move(
            step.name, StepEvent.LEFT_OUT, skipped, step_values(after_undo=after_undo)
        )

    patch.setattr(fan_out, "begin_undo", left_out)


def what_an_inspection_lets_start_is_not_looked_at(patch: Patch) -> None:
    patch.setattr(machine, "set_start_deadlines", lambda context: None)


def a_failure_is_taken_for_a_proof(patch: Patch) -> None:
    real = retries.failed

    def failed(context: DecisionContext, step: StepPlan, reply: Replied) -> None:
        real(context, step, replace(reply, effect=Effect.NONE))

    for reply, handler in replies.REPLIES.items():
        if handler is real:
            patch.setitem(replies.REPLIES, reply, failed)


def keys_are_never_forgotten(patch: Patch) -> None:
    for module in (claims, compensation):
        patch.setattr(module, "key_until", lambda *_: None)


def performs_go_on_when_their_keys_are_forgotten(patch: Patch) -> None:
    def fits(step: StepPlan, record: StepRecord, at: int) -> bool:
        return record.operation == PERFORM or fits_key(step, record, at)

    patch.setattr(claims, "fits_key", fits)
    for module in (claims, overdue):
        patch.setattr(module, "within_key", lambda _, __, until: until)
    patch.setattr(requests, "request_ends_at", ends_at)


def a_key_lasts_from_the_last_request_on(patch: Patch) -> None:
    real = claims.claim

    def claim(context: DecisionContext, step: StepPlan, claimant: Claimant) -> None:
        record = context.decision.step(step.name)
        if record.operation == PERFORM:
            context.decision.change(step.name, step_values(key_until=None, key_since=context.now))
        real(context, step, claimant)

    patch.setattr(ready_steps, "claim", claim)


def an_undo_may_act_when_its_key_is_forgotten(patch: Patch) -> None:
    """The request waits in its queue for as long as that of any other undo."""

    def later(step: StepPlan, record: StepRecord, by: int, task_ends_at: int) -> int:
        if record.operation == PERFORM:
            return request_ends_at(step, record, by, task_ends_at)
        return ends_at(
            replace(step, key_lifetime=None), replace(record, key_until=None), by, task_ends_at
        )

    patch.setattr(requests, "request_ends_at", later)


def nobody_waits_for_a_result_that_was_left_out(patch: Patch) -> None:
    patch.setattr(left_out, "readers", lambda *_: [])


PASSED_BY = replace(RUN_EARLY, supervisors=1)
RACED = Configuration(
    plan=plan(one), endings=("done", "unavailable"), undo_endings=("done",), schedulers=1
)
RESUBMITTED = Configuration(plan=plan(unfenced), commands=asked("undo", "resubmit --again"))
ERASED = Configuration(plan=plan(one), commands=asked("cancel", "erase", "resubmit --again"))
COPIED = replace(FOR_GOOD, endings=("done", "refused"), copies=1)
FRESH = replace(FOR_GOOD, commands=asked("resubmit --fresh-key"))
RESOLVED = replace(HELD, endings=("done",), commands=asked("resolve a did-not"))
RESOLVED_UNFENCED = replace(RESOLVED, plan=EVERY["an unfenced step of two agents"].plan)
LOOKS = replace(A_STEP, looks=True)
BEHIND = replace(LOOKS, behind=True)
VIEWS = replace(A_STEP, stale=True)
GIVEN_BACK = replace(HELD, endings=("done", "given back"), copies=1)
REPEATED = Configuration(plan=plan(briefly), repeats=1)

WATCHED = Invariant.ALWAYS_DUE.value
LATE = FINAL
UNDONE_WITHOUT_PLAN = "NoTransition: Start cannot change a task from Undoing to Undone"


def an_erased_task_is_begun_again(patch: Patch) -> None:
    """The table of erased tasks is not looked at."""
    real = task_transition

    def looked_up(state: TaskState, event: TaskEvent, *, erased: bool = False) -> object:
        return real(state, event, erased=erased and event is TaskEvent.ERASE)

    patch.setattr(machine, "task_transition", looked_up)


BUGS: list[tuple[Callable[[Patch], None], Configuration, int, str]] = [
    (no_version_condition, RACED, 6, Invariant.AGREES.value),
    (a_due_entry_is_moved_without_condition, PASSED_BY, 8, WATCHED),
    (no_lock_fence, A_STEP, 4, "a reply to an earlier claim, operation or round changes nothing"),
    (an_undo_waits_for_nothing, UNFENCED, 7, LATE),
    (an_undo_allows_nothing_for_clocks, UNFENCED, 8, LATE),
    (the_due_instant_never_falls, RUN_EARLY, 6, WATCHED),
    (
        only_what_is_processed_is_undone,
        A_STEP,
        6,
        Invariant.UNDONE.value,
    ),
    (
        an_undo_begins_before_what_came_after_is_settled,
        A_ROW,
        5,
        UNDO_IN_ORDER,
    ),
    (nothing_is_owed, A_STEP, 3, Invariant.REPORTED.value),
    (an_erased_task_is_begun_again, ERASED, 3, Invariant.ERASED.value),
    (a_step_needs_no_predecessors, A_ROW, 1, Invariant.IN_ORDER.value),
    (a_new_round_has_the_old_keys, RESUBMITTED, 9, LATE),
    (a_dead_claim_is_never_given_up, A_STEP, 1, Invariant.ENDS.value),
    (a_lock_does_not_name_its_version, REPEATED, 2, GIVEN_ONCE),
    (an_agent_is_left_without_a_proof, GIVEN_BACK, 8, Invariant.ONCE.value),
    (an_agent_is_left_before_it_is_undone, SEVERAL, 4, Invariant.EXPLAINED.value),
    (a_failure_is_taken_for_a_proof, MOVES, 3, KNOWN),
    (performs_go_on_when_their_keys_are_forgotten, FORGETS, 9, Invariant.ONCE.value),
    (keys_are_never_forgotten, FORGETS, 9, Invariant.ONCE.value),
    (a_key_lasts_from_the_last_request_on, FORGETS, 9, Invariant.ONCE.value),
    (an_undo_may_act_when_its_key_is_forgotten, FORGETS, 10, Invariant.UNDONE.value),
    (a_refusal_is_taken_for_a_proof, COPIED, 4, KNOWN),
    (a_fresh_key_is_given_without_a_proof, FRESH, 5, Invariant.ONCE.value),
    (a_person_is_believed_about_what_is_to_come, RESOLVED_UNFENCED, 5, Invariant.ONCE.value),
    (a_person_is_believed_about_a_call_that_hangs, RESOLVED, 5, Invariant.ONCE.value),
    (every_timeout_counts, LOOKS, 3, COUNTED),
    (one_look_proves, BEHIND, 2, UNPROVED),
    (no_version_condition, VIEWS, 5, Invariant.EXPLAINED.value),
    (nobody_looks_at_a_step_that_waits_for_its_callback, ASKS, 3, Invariant.ENDS.value),
    (nobody_looks_when_a_reminder_is_due, REMINDS, 5, WATCHED),
    (a_heartbeat_is_not_missed, BEATS, 3, LOOKED_AT),
    (a_task_without_its_plan_is_taken_for_undone, LOSES_PLAN, 5, UNDONE_WITHOUT_PLAN),
    (an_item_is_left_out_and_not_undone, ITEMS, 4, Invariant.UNDONE.value),
    (nobody_waits_for_a_result_that_was_left_out, TOO_LONG, 3, Invariant.IN_ORDER.value),
    (what_an_inspection_lets_start_is_not_looked_at, THEN_ANOTHER, 5, LOOKED_AT),
]


FAR = (
    no_version_condition,
    a_due_entry_is_moved_without_condition,
    a_new_round_has_the_old_keys,
    an_agent_is_left_without_a_proof,
    a_key_lasts_from_the_last_request_on,
    an_undo_allows_nothing_for_clocks,
    an_undo_may_act_when_its_key_is_forgotten,
    keys_are_never_forgotten,
    performs_go_on_when_their_keys_are_forgotten,
)
"""So many states come before the shortest trace that it takes the longest to find."""


@pytest.mark.parametrize(
    ("plant", "configuration", "length", "invariant"),
    [pytest.param(*bug, marks=[pytest.mark.verify] if bug[0] in FAR else []) for bug in BUGS],
    ids=[plant.__name__ for plant, *_ in BUGS],
)
def test_a_planted_bug_is_found_with_its_shortest_trace(
    plant: Callable[[Patch], None],
    configuration: Configuration,
    length: int,
    invariant: str,
    monkeypatch: Patch,
) -> None:
    plant(monkeypatch)
    explored = explore(TaskModel(configuration), at_most=AT_MOST)
    assert explored.violation is not None, f"{explored.states} states, and nothing was found"
    log.info("%s", explored.violation)
    assert (explored.violation.invariant, len(explored.violation.trace) - 1) == (invariant, length)
