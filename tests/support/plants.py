"""Planted faults: each breaks the engine, or what the kit takes for it, in one way.

A fault in this list is found by random worlds, by the name of its invariant
(tests/world/test_plants.py). `random_worlds` has the worlds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from roundsman.agents.agent import Agent
from roundsman.alerts import group_alert
from roundsman.aws.dynamodb import control, settled, tasks
from roundsman.aws.dynamodb.order_limits import DynamoOrderLimits
from roundsman.aws.dynamodb.tasks import DynamoStore
from roundsman.aws.guard.guard import OperatorsHold
from roundsman.aws.guard.rate_limit import RateLimit
from roundsman.definition.plan import Plan, StepPlan
from roundsman.engine import (
    agent_holds,
    bulk_moves,
    decision_builder,
    due,
    erasure,
    fan_out,
    left_out,
    machine,
    newly_owed,
    on_failure,
    operator,
    overdue,
    polls,
    replies,
    request_deadlines,
    retries,
    routing,
    signals,
    sleeps,
    steps,
    task_deadline,
)
from roundsman.engine import requests as requests_of_steps
from roundsman.engine.added_steps import add_steps, why_not_added
from roundsman.engine.compensation import begin_undos, undone
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.due import order_expiry, with_order_expiry
from roundsman.engine.history import SIGNAL_UNREAD
from roundsman.engine.request_deadlines import ends_at
from roundsman.engine.requests import request_for
from roundsman.engine.transitions import TaskEvent
from roundsman.model.bulk_run import (
    FASTEST,
    BulkRecord,
    InFlightOrder,
    PlannedOrder,
    Run,
    RunProgress,
    RunState,
    Terms,
    taken_up,
    were_sent,
)
from roundsman.model.events import (
    COMMAND_KINDS,
    Decision,
    Erase,
    Event,
    HistoryRow,
    Outcome,
    Replied,
    Signalled,
)
from roundsman.model.instants import MINUTE
from roundsman.model.json import Json
from roundsman.model.order_limit import Turn
from roundsman.model.situations import Asleep, AwaitsSignal
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import (
    REJECTION,
    UNDO,
    LeftOut,
    Operation,
    Owed,
    SettledRow,
    StepError,
    StepRecord,
    StepToAdd,
    Task,
    Termination,
    UnreadSignal,
)
from roundsman.ports import NO_INPUTS, Saved, Superseded
from roundsman.scheduler import owed as owed_items
from roundsman.scheduler import scheduler
from roundsman.scheduler.order_limits import OrderLimits
from roundsman.scheduler.scheduler import Scheduler
from roundsman.submission.submission import Submission
from roundsman.supervisor import bulk_runs
from roundsman.wire.messages import AgentRequest, status_body
from roundsman_testing import Invariant
from roundsman_testing.memory import MemoryBulkRuns, MemoryStore

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Plant:
    """A fault, and the invariant that must find it."""

    invariant: Invariant
    what: str
    """What is broken, in words."""
    plant: Callable[[Patch], None]

    def __str__(self) -> str:
        return self.what


def returns(owner: object, name: str, value: object) -> Callable[[Patch], None]:
    """Let a function do nothing and return `value`."""
    return lambda patch: patch.setattr(owner, name, lambda *_, **__: value)


def waits_that_are_none(patch: Patch) -> None:
    """Let no attempt be spaced from the next one, after a failure or a timeout."""
    for module in (retries, overdue):
        returns(module, "retry_delay", 0)(patch)


def requests(change: Callable[[AgentRequest], AgentRequest]) -> Callable[[Patch], None]:
    """Let the scheduler send a changed request."""
    made = request_for

    def plant(patch: Patch) -> None:
        patch.setattr(scheduler, "request_for", lambda *given: change(made(*given)))

    return plant


def at_a_repeat(change: Callable[[AgentRequest], AgentRequest]) -> Callable[[Patch], None]:
    """Let the scheduler change each request but the first under its key."""
    return requests(lambda request: change(request) if request.attempt > 1 else request)


def another_input(request: AgentRequest) -> AgentRequest:
    order = request.input if isinstance(request.input, Mapping) else {}
    return replace(request, input={**order, "attempt": request.attempt})


def another_item(request: AgentRequest) -> AgentRequest:
    return request if request.item is None else replace(request, item={"at": request.sent_at})


def another_result(request: AgentRequest) -> AgentRequest:
    return replace(request, results={**request.results, "attempt": request.attempt})


def no_input(request: AgentRequest) -> AgentRequest:
    return replace(request, input={})


def no_step_input(request: AgentRequest) -> AgentRequest:
    return replace(request, step_input=None)


def no_results(request: AgentRequest) -> AgentRequest:
    return replace(request, results={})


def agents_with_more_time(patch: Patch) -> None:
    answer = Agent.answer

    def patient(self: Agent, request: AgentRequest, **more: object) -> object:
        later = replace(request, complete_by=request.complete_by + 30 * MINUTE)
        return answer(self, later, **more)  # type: ignore[arg-type]  # as they are given

    patch.setattr(Agent, "answer", patient)


def no_time_for_holds(patch: Patch) -> None:
    for module in (agent_holds, machine):
        for name in ("credit", "credit_holds"):
            patch.setattr(module, name, lambda *_: None, raising=False)


def an_early_end(patch: Patch) -> None:
    """End each task 58 minutes before its time."""
    end = task_deadline.end_if_overdue

    def early(context: DecisionContext) -> None:
        now = context.decision.now
        context.decision.now += 58 * MINUTE
        end(context)
        context.decision.now = now

    patch.setattr(machine, "end_if_overdue", early)


def nobody_minds_holds(patch: Patch) -> None:
    """Neither the scheduler nor an agent knows of a hold."""
    patch.setattr(OperatorsHold, "check", lambda *_: None)
    patch.setattr(control, "with_holds", lambda views, *_: views)


def nobody_minds_holds_on_orders(patch: Patch) -> None:
    """No scheduler knows of a hold on orders."""
    patch.setattr(control, "on_orders", lambda _: ())


def waits_that_are_ignored(patch: Patch) -> None:
    ready = steps._is_ready

    def at_once(context: DecisionContext, plan: Plan, step: StepPlan) -> bool:
        record = context.decision.step(step.name)
        waits = record.process_state is ProcessState.PENDING and record.held_since is None
        return ready(context, plan, step) or (waits and context.is_unblocked(step))

    patch.setattr(steps, "_is_ready", at_once)


def keys_that_last(patch: Patch) -> None:
    """Let no key be forgotten before its undo, as far as the engine knows."""
    allows = request_deadlines.key_allows_until

    def lasting(step: StepPlan, record: StepRecord, operation: Operation) -> int | None:
        return None if operation == UNDO else allows(step, record, operation)

    patch.setattr(request_deadlines, "key_allows_until", lasting)


def polls_that_fail(patch: Patch) -> None:
    """Count each reply that the job is not done yet as a failed attempt."""
    error = StepError("NotYet", "not done yet")

    def counted(context: DecisionContext, step: StepPlan, reply: Replied) -> None:
        retries.failed(context, step, replace(reply, outcome=Outcome.TRANSIENT, error=error))

    patch.setattr(polls, "not_yet", counted)


def sleeps_that_end_at_once(patch: Patch) -> None:
    """End each sleep when the task is looked at next."""

    def early(context: DecisionContext) -> None:
        for step in context.plan.steps.values():
            if isinstance(context.decision.step(step.name).situation, Asleep):
                sleeps._wake(context, step, "it is over")

    patch.setattr(machine, "wake", early)


def signals_that_end_two_steps(patch: Patch) -> None:
    """Let a signal end each step that waits for its name now."""
    end = signals._end

    def ended(
        context: DecisionContext,
        step: StepPlan,
        signal: UnreadSignal,
        left_out: LeftOut | None = None,
    ) -> None:
        end(context, step, signal, left_out)
        for other in context.plan.steps.values():
            if other.signal == step.signal and _awaits_signal(context, other):
                end(context, other, signal, left_out)

    patch.setattr(signals, "_end", ended)


def _awaits_signal(context: DecisionContext, step: StepPlan) -> bool:
    return isinstance(context.decision.step(step.name).situation, AwaitsSignal)


def signals_that_are_lost(patch: Patch) -> None:
    """Drop the unread signals of a task when a reply to it is stored."""
    build = DecisionBuilder.build

    def forgetful(self: DecisionBuilder, plan: Plan | None, event: TaskEvent) -> Decision:
        if event is TaskEvent.REPLIED:
            self.task = replace(self.task, signals=())
        return build(self, plan, event)

    patch.setattr(DecisionBuilder, "build", forgetful)


def signals_that_leave_without_a_row(patch: Patch) -> None:
    """Write no row about a signal that no step can read any more."""
    record = DecisionBuilder.record

    def silent(self: DecisionBuilder, kind: str, *given: object, **more: object) -> None:
        if kind != SIGNAL_UNREAD:
            record(self, kind, *given, **more)  # type: ignore[arg-type]  # as it was called

    patch.setattr(DecisionBuilder, "record", silent)


def signals_that_leave_unrejected(patch: Patch) -> None:
    """Owe no rejected message for a signal that no step can read any more."""
    owes = newly_owed.newly_owed

    def fewer(*given: object, **named: object) -> Iterator[Owed]:
        found = owes(*given, **named)  # type: ignore[arg-type]  # as they are given
        return (one for one in found if one.kind != REJECTION)

    patch.setattr(decision_builder, "newly_owed", fewer)


def rejections_that_are_not_sent(patch: Patch) -> None:
    """Take a rejected message for sent that is not."""
    patch.setattr(owed_items, "_reject_signal", lambda *_: None)


def early_signals_that_are_not_kept(patch: Patch) -> None:
    """Drop a signal for which no step waits yet."""
    taken = signals.signalled

    def forgetful(context: DecisionContext, event: Signalled) -> None:
        taken(context, event)
        context.decision.task = replace(context.decision.task, signals=())

    patch.setattr(operator, "signalled", forgetful)


def signals_that_count_twice(patch: Patch) -> None:
    """Let a signal count again whose id has counted."""
    done = DecisionBuilder.done_before

    def again(self: DecisionBuilder, event: Event) -> bool:
        return not isinstance(event, Signalled) and done(self, event)

    patch.setattr(DecisionBuilder, "done_before", again)


def waits_for_signals_that_end_at_once(patch: Patch) -> None:
    """Fail each wait for a signal when the task is looked at a minute after it began."""
    end = signals.end_overdue_waits

    def early(context: DecisionContext) -> None:
        now = context.decision.now
        context.decision.now += 29 * MINUTE
        end(context)
        context.decision.now = now

    patch.setattr(machine, "end_overdue_waits", early)


def parts_that_forget_earlier_parts(patch: Patch) -> None:
    patch.setattr(DecisionBuilder, "part", ())


def undoes(rule: Callable[[Termination, str], bool]) -> Callable[[Patch], None]:
    """Let the ending of a task say of each step whether it is undone."""
    return lambda patch: patch.setattr(Termination, "undoes", rule)


def requests_that_outlive_their_keys(patch: Patch) -> None:
    """Let a request to undo act for as long as if its key was never forgotten."""

    def later(step: StepPlan, record: StepRecord, by: int, task_ends_at: int) -> int:
        return ends_at(
            replace(step, key_lifetime=None), replace(record, key_until=None), by, task_ends_at
        )

    patch.setattr(requests_of_steps, "request_ends_at", later)


def results_in_alerts(patch: Patch) -> None:
    original = group_alert.summary

    def summary(*given: object) -> str:
        found: object = given[3] if len(given) > 3 else ()
        samples = found if isinstance(found, Sequence) else ()
        return f"{original(*given)}{[sample.task.results() for sample in samples]}"  # type: ignore[arg-type]  # as they are given

    patch.setattr(group_alert, "summary", summary)


def statuses_with_seq_1(patch: Patch) -> None:
    patch.setattr(
        newly_owed, "Owed", lambda kind, name, _, at, detail: Owed(kind, name, 1, at, detail)
    )


def statuses_sent_with_seq_1(patch: Patch) -> None:
    body = status_body
    patch.setattr(owed_items, "status_body", lambda task, owed: body(task, replace(owed, seq=1)))


def no_history(patch: Patch) -> None:
    save = MemoryStore.save

    def saves(
        self: MemoryStore,
        task: Task,
        *,
        seen: int,
        history: Sequence[HistoryRow] = (),
        inputs: Mapping[str, Json] = NO_INPUTS,
        search: tuple[str, ...] | None = None,
    ) -> Saved | Superseded:
        del history
        return save(self, task, seen=seen, inputs=inputs, search=search)

    patch.setattr(MemoryStore, "save", saves)


def erased_orders_that_are_found(patch: Patch) -> None:
    patch.setattr(tasks, "SEARCH_ATTRIBUTES", ("Another",))


def ends(change: Callable[[Termination], Termination | None]) -> Callable[[Patch], None]:
    """Let the commands that end a task set a changed end; None: no end."""
    end = operator._end

    def plant(patch: Patch) -> None:
        def changed(context: DecisionContext, ending: Termination) -> None:
            found = change(ending)
            if found is not None:
                end(context, found)

        patch.setattr(operator, "_end", changed)

    return plant


def cancels_that_undo_nothing(ending: Termination) -> Termination:
    return replace(ending, undo=False) if ending.how is TaskState.CANCELLED else ending


def no_end_by(how: TaskState) -> Callable[[Termination], Termination | None]:
    return lambda ending: None if ending.how is how else ending


def ends_that_are_forgotten(patch: Patch) -> None:
    """Let a task that a person cancels end otherwise once its undo goes on."""
    build = DecisionBuilder.build

    def forgetful(self: DecisionBuilder, plan: Plan | None, event: TaskEvent) -> Decision:
        ending = self.before.ending
        if event is TaskEvent.REPLIED and ending is not None and not self.before.ended:
            self.ending = replace(ending, how=TaskState.UNDONE)
        return build(self, plan, event)

    patch.setattr(DecisionBuilder, "build", forgetful)


def erasures_that_erase_nothing(patch: Patch) -> None:
    def recorded(decision: DecisionBuilder, event: Erase) -> None:
        operator.remember(decision, event.asked)
        decision.record(COMMAND_KINDS[Erase], None, None, "erased", event.asked)

    patch.setattr(machine, "erase", recorded)


def commands_that_no_record_remembers(patch: Patch) -> None:
    for module in (operator, erasure):
        patch.setattr(module, "remember", lambda *_: None)


def resubmissions_that_change_nothing(patch: Patch) -> None:
    patch.setattr(operator, "_resubmit", lambda context, _: context)


def rows_without(kind: str, of: str = "_row_writes") -> Callable[[Patch], None]:
    """Let no write of a task put, update or delete rows of settled steps, or of inputs."""
    made = getattr(DynamoStore, of)

    def plant(patch: Patch) -> None:
        patch.setattr(
            DynamoStore, of, lambda *given: [write for write in made(*given) if kind not in write]
        )

    return plant


def replies_that_add_a_part(patch: Patch) -> None:
    """Let a reply add no more than its first step."""
    patch.setattr(
        steps, "add_steps", lambda context, adder, then: add_steps(context, adder, then[:1])
    )


def wrong_replies_that_add_a_part(patch: Patch) -> None:
    """Let a reply that adds what it may not add what it may, and fail its attempt then."""

    def part(context: DecisionContext, adder: str, then: Sequence[StepToAdd]) -> str | None:
        why = why_not_added(context, adder, then)
        if why is not None and why_not_added(context, adder, then[:1]) is None:
            add_steps(context, adder, then[:1])
        return why

    patch.setattr(replies, "why_not_added", part)


def wrong_replies_that_are_taken(patch: Patch) -> None:
    patch.setattr(replies, "why_not_added", lambda *_: None)


def added_steps_that_count_as_undone(patch: Patch) -> None:
    """Let the undo of an added step end before its agent is asked."""

    def begin(context: DecisionContext) -> None:
        begin_undos(context)
        for step in context.plan.steps.values():
            state = context.decision.step(step.name).process_state
            if step.added_by is not None and state is ProcessState.UNDOING:
                undone(context, step)

    patch.setattr(machine, "begin_undos", begin)


def rows_that_are_stale(patch: Patch) -> None:
    """Leave a step out of the record that has changed since its row was written."""

    def in_rows(task: Task, rows: Sequence[SettledRow]) -> dict[str, SettledRow]:
        del task
        return {name: row for row in rows for name in row.steps}

    patch.setattr(settled, "_in_rows", in_rows)


def no_retention(patch: Patch) -> None:
    entry = due.with_due_entry

    def at_once(task: Task, now: int) -> Task:
        found = entry(task, now)
        return found if found.expires_at is None else replace(found, expires_at=now)

    patch.setattr(decision_builder, "with_due_entry", at_once)
    patch.setattr(due, "with_due_entry", at_once)


def orders_as_short_as_their_tasks(patch: Patch) -> None:
    patch.setattr(tasks, "order_expiry", lambda task, _: order_expiry(task, 0))


def orders_that_are_not_kept_for_ever(patch: Patch) -> None:
    patch.setattr(tasks, "with_order_expiry", lambda task, _: with_order_expiry(task, 0))


def orders_of_open_tasks_that_expire(patch: Patch) -> None:
    """Leave an order its expiry when its task is begun again."""
    write = DynamoStore._order_write
    patch.setattr(
        DynamoStore,
        "_order_write",
        lambda self, before, task, *keys: (
            [] if task.expires_at is None else write(self, before, task, *keys)
        ),
    )


def the_fastest_rate(patch: Patch) -> None:
    taken = taken_up

    def fast(
        progress: RunProgress,
        to_send: Sequence[InFlightOrder],
        refused: Sequence[tuple[str, str]],
        terms: Terms,
        now: int,
    ) -> RunProgress:
        return taken(progress, to_send, refused, replace(terms, rate=FASTEST), now)

    patch.setattr(bulk_runs, "taken_up", fast)


def runs_that_go_on(patch: Patch) -> None:
    move = bulk_moves.next_move

    def going(record: BulkRecord, now: int, until: int) -> bulk_moves.NextMove:
        paused = record.state is RunState.PAUSED
        return move(replace(record, state=RunState.RUNNING) if paused else record, now, until)

    patch.setattr(bulk_runs, "next_move", going)


def runs_that_pass_over_an_order(patch: Patch) -> None:
    taken = taken_up

    def passing(
        progress: RunProgress,
        to_send: Sequence[InFlightOrder],
        refused: Sequence[tuple[str, str]],
        terms: Terms,
        now: int,
    ) -> RunProgress:
        found = taken(progress, to_send, refused, terms, now)
        return replace(found, reached=found.reached + 1)

    patch.setattr(bulk_runs, "taken_up", passing)


def runs_that_take_an_order_twice(patch: Patch) -> None:
    """Let each part of the orders but the first begin one order too early."""
    orders = MemoryBulkRuns.orders

    def early(self: MemoryBulkRuns, run: Run, first: int, most: int) -> list[PlannedOrder]:
        return orders(self, run, max(0, first - 1), most)

    patch.setattr(MemoryBulkRuns, "orders", early)


def runs_that_finish_early(patch: Patch) -> None:
    move = bulk_moves.next_move

    def early(record: BulkRecord, now: int, until: int) -> bulk_moves.NextMove:
        found = move(record, now, until)
        over = isinstance(found, bulk_moves.Send) and record.progress.results > 0
        return bulk_moves.Finish() if over else found

    patch.setattr(bulk_runs, "next_move", early)


def runs_that_send_nothing(patch: Patch) -> None:
    def post(self: bulk_runs._Visit, tasks: Sequence[tuple[PlannedOrder, Task]]) -> None:
        self._set(were_sent(self.record.progress, [task.task_id for _, task in tasks]))

    patch.setattr(bulk_runs._Visit, "_post", post)


PLANTS = (
    Plant(Invariant.ONE_INPUT, "another input under the same key", at_a_repeat(another_input)),
    Plant(Invariant.ONE_INPUT, "another item under the same key", at_a_repeat(another_item)),
    Plant(Invariant.ONE_INPUT, "other results under the same key", at_a_repeat(another_result)),
    Plant(Invariant.GIVEN, "agents are not given the order", requests(no_input)),
    Plant(Invariant.GIVEN, "agents are not given earlier results", requests(no_results)),
    Plant(Invariant.ALL_ITEMS, "no list has items", returns(fan_out, "_items_that_fit", ())),
    Plant(Invariant.GIVEN, "added steps are not given their input", requests(no_step_input)),
    Plant(Invariant.ADDED, "a reply adds one of its steps", replies_that_add_a_part),
    Plant(Invariant.ADDED, "a wrong reply adds a part of it", wrong_replies_that_add_a_part),
    Plant(Invariant.ADDED, "a wrong reply is taken", wrong_replies_that_are_taken),
    Plant(Invariant.ADDED, "no reply adds anything", returns(steps, "add_steps", None)),
    Plant(Invariant.UNDONE, "added steps are not undone", added_steps_that_count_as_undone),
    Plant(Invariant.IN_ORDER, "no missing result is awaited", returns(left_out, "readers", [])),
    Plant(Invariant.RESULT, "no result is stored", returns(steps, "canonical_json", "null")),
    Plant(Invariant.ACTS_IN_TIME, "an agent acts after complete-by", agents_with_more_time),
    Plant(Invariant.HELD_BACK, "a held agent is called", nobody_minds_holds),
    Plant(Invariant.ORDER_HELD, "an order on hold goes on", nobody_minds_holds_on_orders),
    Plant(Invariant.PACED, "a rate limit limits nothing", returns(RateLimit, "wait", None)),
    Plant(Invariant.COUNTED, "a held reply counts", returns(replies, "counts_as_failure", True)),
    Plant(Invariant.WAITS, "no backoff between attempts", waits_that_are_none),
    Plant(Invariant.WAITS, "steps are claimed before their time", waits_that_are_ignored),
    Plant(Invariant.WAITS, "a sleep ends before its time", sleeps_that_end_at_once),
    Plant(Invariant.RESULT, "a signal ends two steps", signals_that_end_two_steps),
    Plant(Invariant.RESULT, "a signal with a used id counts again", signals_that_count_twice),
    Plant(Invariant.ACCOUNTED, "a signal is lost", signals_that_are_lost),
    Plant(Invariant.ACCOUNTED, "a signal leaves without a row", signals_that_leave_without_a_row),
    Plant(Invariant.ACCOUNTED, "a signal leaves unrejected", signals_that_leave_unrejected),
    Plant(Invariant.ACCOUNTED, "a rejected message is not sent", rejections_that_are_not_sent),
    Plant(
        Invariant.CARRIED_OUT, "a signal that is early is not kept", early_signals_that_are_not_kept
    ),
    Plant(
        Invariant.FAILED_BY, "a wait for a signal ends early", waits_for_signals_that_end_at_once
    ),
    Plant(
        Invariant.TAKEN_BACK,
        "other steps than those of a part are undone",
        undoes(lambda ending, _: ending.undo),
    ),
    Plant(
        Invariant.TAKEN_BACK,
        "a part is not undone",
        undoes(lambda ending, _: ending.undo and not ending.part),
    ),
    Plant(Invariant.CARRIED_OUT, "a part forgets those before it", parts_that_forget_earlier_parts),
    Plant(
        Invariant.HANDLED,
        "a part leaves what depends on it",
        returns(operator, "depend_on", ()),
    ),
    Plant(Invariant.COUNTED, "a poll counts as a failed attempt", polls_that_fail),
    Plant(Invariant.GIVEN_BACK, "a hold adds no time", no_time_for_holds),
    Plant(Invariant.FAILED_BY, "the first attempt is the last", returns(retries, "_is_last", True)),
    Plant(Invariant.FAILED_BY, "tasks end before their time", an_early_end),
    Plant(Invariant.BOUNDED, "no attempt is the last", returns(retries, "_is_last", False)),
    Plant(
        Invariant.AS_PLANNED,
        "no task that failed is undone",
        returns(on_failure, "past_no_return", True),
    ),
    Plant(Invariant.MOVED, "a step moves without a proof", returns(routing, "_may_leave", True)),
    Plant(Invariant.KEY_LASTS, "undos are sent under forgotten keys", keys_that_last),
    Plant(Invariant.KEY_LASTS, "requests to undo outlive keys", requests_that_outlive_their_keys),
    Plant(Invariant.DISCREET, "alerts have results", results_in_alerts),
    Plant(Invariant.STARTED, "started is never sent", returns(newly_owed, "has_started", False)),
    Plant(Invariant.RISING, "statuses are owed with seq 1", statuses_with_seq_1),
    Plant(Invariant.RISING, "statuses are sent with seq 1", statuses_sent_with_seq_1),
    Plant(
        Invariant.ACTS_ONCE, "commands act twice", returns(DecisionBuilder, "done_before", False)
    ),
    Plant(Invariant.CARRIED_OUT, "a cancel undoes nothing", ends(cancels_that_undo_nothing)),
    Plant(Invariant.CARRIED_OUT, "a cancel does nothing", ends(no_end_by(TaskState.CANCELLED))),
    Plant(
        Invariant.CARRIED_OUT, "a request to undo does nothing", ends(no_end_by(TaskState.UNDONE))
    ),
    Plant(Invariant.CARRIED_OUT, "the end of a cancelled order changes", ends_that_are_forgotten),
    Plant(Invariant.CARRIED_OUT, "an extension adds no time", returns(operator, "_extend", None)),
    Plant(Invariant.CARRIED_OUT, "resubmit changes nothing", resubmissions_that_change_nothing),
    Plant(Invariant.CARRIED_OUT, "resolve changes nothing", returns(operator, "_resolve", None)),
    Plant(Invariant.CARRIED_OUT, "a wait is not ended", returns(operator, "_run_now", None)),
    Plant(Invariant.CARRIED_OUT, "an erasure erases nothing", erasures_that_erase_nothing),
    Plant(
        Invariant.CARRIED_OUT,
        "no record remembers a command",
        commands_that_no_record_remembers,
    ),
    Plant(Invariant.HISTORY, "history rows are not stored", no_history),
    Plant(Invariant.ROWS, "rows of settled steps are not stored", rows_without("Put")),
    Plant(Invariant.ROWS, "rows of settled steps do not expire", rows_without("Update")),
    Plant(Invariant.ROWS, "rows of settled steps are not removed", rows_without("Delete")),
    Plant(Invariant.ROWS, "steps in rows of settled steps are stale", rows_that_are_stale),
    Plant(Invariant.ROWS, "rows of inputs are not stored", rows_without("Put", "_input_writes")),
    Plant(Invariant.ROWS, "rows of inputs do not expire", rows_without("Update", "_input_writes")),
    Plant(
        Invariant.ROWS, "rows of inputs are not removed", rows_without("Delete", "_input_writes")
    ),
    Plant(Invariant.KEPT, "an ended task expires at once", no_retention),
    Plant(Invariant.ORDER_KEPT, "an order expires with its task", orders_as_short_as_their_tasks),
    Plant(
        Invariant.ORDER_KEPT,
        "an order that is kept for ever expires",
        orders_that_are_not_kept_for_ever,
    ),
    Plant(
        Invariant.ORDER_KEPT,
        "the order of an ended task never expires",
        returns(DynamoStore, "_order_write", ()),
    ),
    Plant(
        Invariant.ORDER_KEPT,
        "the order of a task that is begun again expires",
        orders_of_open_tasks_that_expire,
    ),
    Plant(
        Invariant.ERASED_BESIDE,
        "an erased order row stays",
        returns(MemoryStore, "erase_order", None),
    ),
    Plant(
        Invariant.ERASED_BESIDE,
        "an erased history stays",
        returns(MemoryStore, "erase_history", None),
    ),
    Plant(Invariant.FOUND, "no order is found by a field", returns(Submission, "_search_keys", ())),
    Plant(
        Invariant.FOUND,
        "a corrected order is found as before",
        returns(Scheduler, "_new_search_keys", None),
    ),
    Plant(Invariant.FOUND, "an erased order is found", erased_orders_that_are_found),
    Plant(
        Invariant.AT_ONCE,
        "every order has its turn at once",
        returns(OrderLimits, "turn_of", Turn(True, "planted")),
    ),
    Plant(
        Invariant.AT_ONCE,
        "a turn is not stored",
        returns(DynamoOrderLimits, "write", True),
    ),
    Plant(Invariant.RATE, "a bulk run sends at the fastest rate", the_fastest_rate),
    Plant(Invariant.CANARY, "a bulk run has no canary", returns(bulk_moves, "in_canary", False)),
    Plant(Invariant.STOPS, "failures stop no bulk run", returns(bulk_moves, "too_many_failed", "")),
    Plant(Invariant.STOPS, "a paused bulk run goes on", runs_that_go_on),
    Plant(Invariant.NONE_SKIPPED, "a bulk run passes over an order", runs_that_pass_over_an_order),
    Plant(Invariant.NONE_SKIPPED, "a bulk run takes an order twice", runs_that_take_an_order_twice),
    Plant(Invariant.NONE_SKIPPED, "a bulk run finishes early", runs_that_finish_early),
    Plant(Invariant.NONE_SKIPPED, "a bulk run sends nothing", runs_that_send_nothing),
)
