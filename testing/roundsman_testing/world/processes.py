"""The processes of a world: submission, schedulers, supervisors and agents over in-memory stores.

Each call handles one message or makes one pass, as one invocation of a function does, and may
crash. `World` decides when each call happens.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import count
from random import Random
from traceback import format_exception
from typing import TypeVar

from roundsman.agents.agent import Reminded
from roundsman.agents.callbacks import callback_token, succeeded_reply
from roundsman.aws.dynamodb.control import KEEP_MARKS_FOR, DynamoReadNotes
from roundsman.aws.dynamodb.search import INDEXES, look_for_orders
from roundsman.engine.due import START_WITHIN
from roundsman.errors import (
    CallRefused,
    InvalidMessage,
    RejectedOrder,
    TryAgain,
    rejected_together,
)
from roundsman.model.events import Outcome
from roundsman.model.failure import Group
from roundsman.model.holds import BREAKER, Hold, on_orders
from roundsman.model.instants import MINUTE, milliseconds
from roundsman.model.json import sha256
from roundsman.model.order_limit import waits_since
from roundsman.model.scheduler_queues import COMMANDS as COMMANDS_KEY
from roundsman.model.scheduler_queues import QueueDepth
from roundsman.model.schedules import QueueStep, next_step, open_order
from roundsman.model.search import keys_of_value
from roundsman.model.senders import Senders
from roundsman.model.situations import EVERY_ORDER, Ended, NotBegun
from roundsman.model.task import Task
from roundsman.model.wakes import KNOWN_AFTER, EndedHolds, ended_holds
from roundsman.ports import Clock
from roundsman.scheduler.arrived import Arrived
from roundsman.scheduler.scheduler import Handled, Scheduler
from roundsman.scheduler.sender_check import SenderCheck
from roundsman.submission.events import Asked
from roundsman.submission.submission import (
    CancelAsked,
    EventOfOrder,
    Submission,
    Submitted,
    ValidOrder,
)
from roundsman.supervisor.bulk_runs import BulkPorts, BulkRuns
from roundsman.supervisor.parked import ParkedOrders, wake_first
from roundsman.supervisor.recurring import ScheduleQueues
from roundsman.supervisor.supervisor import (
    VISIT_INTERVAL,
    PassReport,
    Supervisor,
    SupervisorConfig,
    VisitTimes,
)
from roundsman.supervisor.wakes import WATCHED_FOR, WakePorts, WakeReport, Wakes
from roundsman.wire.alert import Alert
from roundsman.wire.commands import read_command
from roundsman.wire.messages import AgentRequest, Reply, read_reply, read_request
from roundsman_testing.faults import (
    Crash,
    Faults,
    FaultyBoard,
    FaultyBulkRuns,
    FaultyCallNotes,
    FaultyGroups,
    FaultyHolds,
    FaultyLeases,
    FaultyOrderLimits,
    FaultyOutbox,
    FaultyPayloads,
    FaultyPlans,
    FaultySchedules,
    FaultySearchSecret,
    FaultyStore,
    FaultyWakes,
)
from roundsman_testing.invariants.watch import InvariantWatch
from roundsman_testing.ledger import EffectKey
from roundsman_testing.memory import (
    TABLES,
    MemoryAgentBoard,
    MemoryBulkRuns,
    MemoryCallNotes,
    MemoryGroups,
    MemoryHolds,
    MemoryLeases,
    MemoryOrderLimits,
    MemoryPayloads,
    MemoryPlans,
    MemorySchedules,
    MemorySearchSecret,
    MemoryStore,
    MemoryWakes,
    tables_in_memory,
)
from roundsman_testing.world import queues
from roundsman_testing.world.agents import RequestRun
from roundsman_testing.world.capacity import SCHEDULER, SUBMISSION, SUPERVISOR, SimulatedInvocation
from roundsman_testing.world.failed_run import CallsOfSteps, StepCalls
from roundsman_testing.world.guards import Circuit, WorldGuards
from roundsman_testing.world.outbox import WorldOutbox
from roundsman_testing.world.queues import (
    ANSWER_SENDER,
    CONSOLE_PRINCIPAL,
    EFFECTS,
    OPERATOR_PRINCIPAL,
    REPLIES,
    SUBMISSION_PRINCIPAL,
    SUPERVISOR_PRINCIPAL,
    QueuedMessage,
    WorldQueues,
)
from roundsman_testing.world.services import ScriptedServices
from roundsman_testing.world.versions import ReadOrder

T = TypeVar("T")
SHARDS = 4
SENDERS = Senders(
    frozenset({OPERATOR_PRINCIPAL}),
    SUBMISSION_PRINCIPAL,
    SUPERVISOR_PRINCIPAL,
    CONSOLE_PRINCIPAL,
)
"""The principals whose commands cause no alert."""

LOOKS_AHEAD = MINUTE
"""How far beyond its interval a supervisor looks ahead, in ms.

See `roundsman.scheduler.lookahead`.
"""

CLOCKS = ("submission", "scheduler", "supervisor")
"""The parts whose clocks may differ from the world's."""


def duration(for_: timedelta) -> int:
    """The time in ms. Raises ValueError if it is less than nothing."""
    if for_ < timedelta():
        raise ValueError(f"a time is nothing or more, not {for_}")
    return milliseconds(for_)


def check_settings(
    supervisors: int, interval: timedelta, skew: Mapping[str, timedelta], instances: int | None
) -> None:
    """Raises ValueError if a setting of the world makes no sense."""
    if instances is not None and instances < 1:
        raise ValueError(f"instances must be 1 or more, or None for no kept one, not {instances}")
    if supervisors < 1 or interval < timedelta(seconds=1):
        raise ValueError(
            f"a world needs a supervisor and an interval of a second or more, not {supervisors}, "
            f"{interval}"
        )
    if strange := sorted(skew.keys() - set(CLOCKS)):
        raise ValueError(f"no part {strange[0]!r} has a clock; there are {', '.join(CLOCKS)}")


@dataclass(frozen=True, slots=True)
class CallbackRequest:
    """A callback for which one attempt waits."""

    lock: str
    """The lock of the attempt."""
    token: str
    until: int
    """When the attempt is overdue without an answer, in epoch ms."""
    effect: EffectKey
    """The effect that the outside system performs with a successful answer."""


class Processes:
    """All processes of a world's stack, with their stores.

    `skew` maps a part (`submission`, `scheduler`, `supervisor`) to the ms by which its clock is
    ahead of the world's. `instances` is how many scheduler instances live on between messages,
    with their caches, until they die; None means a new instance for each message. `interval` is
    the time between two passes of the supervisors, in ms. `circuits` are the circuits of agents
    that have other settings than the template's; `publish` gets the alerts of circuits.
    `order_retention` is the time in ms that orders are kept after their tasks; None: for ever.
    """

    def __init__(  # noqa: PLR0913  # what a world is made of
        self,
        *,
        services: ScriptedServices,
        faults: Faults,
        chance: Random,
        clock: Clock,
        interval: int,
        skew: Mapping[str, int],
        instances: int | None = None,
        queues: WorldQueues,
        circuits: Mapping[str, Circuit],
        publish: Callable[[Alert], None],
        order_retention: int | None,
    ) -> None:
        self.faults = faults
        self._order_retention = order_retention
        self.services = services
        self.tables = tables_in_memory(clock)
        self.plans = MemoryPlans(tables=self.tables, clock=clock)
        apart = max((abs(ahead) for ahead in skew.values()), default=0)
        slack = START_WITHIN + 2 * apart if apart else 0
        self.watch = InvariantWatch(
            self.plans.plan,
            services.ledger,
            clock,
            interval=interval,
            slack=slack,
            apart=apart,
            order_retention=order_retention,
        )
        self.store = MemoryStore(
            self.watch.on_write, tables=self.tables, order_retention=order_retention
        )
        self.store.on_read_back = self.watch.on_read_back
        self.tables.on_write.append(self.watch.on_stored)
        self.holds = MemoryHolds(clock, tables=self.tables)
        self.watch.calls.holds = self._holds_in_force
        self._read_notes: dict[str, DynamoReadNotes] = {}
        self.watch.calls.limits = {
            agent: circuit.calls_per_second
            for agent, circuit in circuits.items()
            if circuit.calls_per_second is not None
        }
        self.guards = WorldGuards(
            circuits,
            self.holds,
            faults,
            publish,
            on_unread=self.watch.calls.unread,
            on_unlimited=self.watch.calls.unlimited,
        )
        self.calls_of_steps: CallsOfSteps = {}
        self.tokens: dict[tuple[str, str], list[CallbackRequest]] = {}
        self.troubles: list[tuple[str, Exception]] = []
        self.groups = MemoryGroups(tables=self.tables)
        self.watch.groups = self.groups.now
        self.leases = MemoryLeases(tables=self.tables)
        self.wakes = MemoryWakes(tables=self.tables)
        self.limits = MemoryOrderLimits(tables=self.tables)
        self.payloads = MemoryPayloads()
        self._faulty_payloads = FaultyPayloads(self.payloads, faults)
        self.bulk_runs = MemoryBulkRuns(clock, tables=self.tables)
        self.schedules = MemorySchedules(tables=self.tables)
        self._faulty_schedules = FaultySchedules(self.schedules, faults)
        self._chance = chance
        self._clock = clock
        self.interval = interval
        self._skew = skew
        self._instances = count(1)
        self._kept = instances
        self._schedulers: dict[int, Scheduler] = {}
        self.wakes_are_lost = False  # the end of a hold wakes nobody
        self._wakes_on = False  # the last visit of a supervisor asked for another one
        self._supervisors: dict[int, tuple[Supervisor, BulkRuns, Wakes]] = {}
        self._faulty_store = FaultyStore(self.store, faults, lambda: None)
        self._looked_at = FaultyStore(self.store, faults, lambda: None, self.watch.on_load)
        self._faulty_plans = FaultyPlans(self.plans, faults)
        self._search_secret = self._new_search_secret()
        self._queues = queues

    def _holds_in_force(self) -> Sequence[Hold]:
        """The holds, which the watch sees even while an agent cannot read its tables."""
        with self.tables.down(is_down=False):
            return self.holds.holds()

    # --- one event ---------------------------------------------------------------------------

    def handle(self, mail: QueuedMessage, post: WorldOutbox, run: SimulatedInvocation) -> str:
        """Handle a message in this invocation of its function. Returns the outcome for the trace.

        Raises Crash, TryAgain and CallRefused; the message is then redelivered.
        """
        try:
            match mail.queue:
                case queues.ORDERS:
                    return self._submit(mail, post, run.version.read)
                case queues.COMMANDS:
                    outbox = FaultyOutbox(post, self.faults)
                    check = SenderCheck(SENDERS, outbox=outbox, clock=self._clock_of("scheduler"))
                    command, _ = check.checked(read_command(mail.body), mail.sender)
                    self.watch.on_command(command)
                    return self._one_result(
                        Arrived(command, mail.message_id, sent_at=mail.sent_at), post
                    )
                case queues.REPLIES:
                    return self._one_result(self._arrived(mail), post)
                case queues.EFFECTS:
                    return self._land(mail)
                case _:
                    return self._answer(mail, post, run)
        except InvalidMessage as invalid:
            return self._put_aside(mail, invalid, post)

    def _put_aside(self, mail: QueuedMessage, invalid: InvalidMessage, post: WorldOutbox) -> str:
        FaultyOutbox(post, self.faults).reject(mail.queue, mail.body, invalid.problems)
        return f"put aside: {invalid}"

    def task_of_reply(self, mail: QueuedMessage) -> str | None:
        """The task of a reply; None if the message is no reply, or one that cannot be read."""
        if mail.queue != REPLIES:
            return None
        try:
            return read_reply(mail.body).task_id
        except InvalidMessage:
            return None

    def handle_replies(
        self, batch: Sequence[QueuedMessage], post: WorldOutbox
    ) -> list[str | Exception]:
        """Handle replies of one task as one invocation does.

        Returns what became of each as text for the trace, or its exception: the message is then
        redelivered. Raises Crash; all of them are then redelivered.
        """
        results = self._results([self._arrived(mail) for mail in batch], post)
        return [
            self._put_aside(mail, result, post) if isinstance(result, InvalidMessage) else result
            for mail, result in zip(batch, results, strict=True)
        ]

    def _arrived(self, mail: QueuedMessage) -> Arrived:
        """A reply that the scheduler receives."""
        reply = read_reply(mail.body)
        self._note_answer(reply)
        return Arrived(reply, mail.message_id, mail.sender, mail.sent_at)

    def _one_result(self, arrived: Arrived, post: WorldOutbox) -> str:
        [result] = self._results([arrived], post)
        if isinstance(result, Exception):
            raise result
        return result

    def _results(self, arrived: Sequence[Arrived], post: WorldOutbox) -> list[str | Exception]:
        results = self._schedule(post, lambda s: s.handle(arrived))
        return [one if isinstance(one, Exception) else _result_text(one) for one in results]

    def _submit(self, mail: QueuedMessage, post: WorldOutbox, read: ReadOrder) -> str:
        submission = Submission(
            tasks=self._faulty_store,
            plans=self._faulty_plans,
            outbox=FaultyOutbox(post, self.faults),
            clock=self._clock_of("submission"),
            shards=SHARDS,
            search_secret=self._search_secret,
            schedules=lambda: self._faulty_schedules,
            order_retention=self._order_retention,
        )
        results, rejections = [], []
        for asked in read(mail.body):
            try:
                results.append(_handle_asked(submission, asked, mail).reason)
            except RejectedOrder as rejected:
                rejections.append(rejected)
        if rejections:
            raise rejected_together(rejections)
        return "; ".join(results) or "a test event of S3; dropped"

    def handling_failed(self, mail: QueuedMessage) -> None:
        """Note that a message failed to be handled and will be redelivered."""
        # The nonce of a claim is computed as in Scheduler.
        self.watch.claims.handling_failed(sha256(mail.message_id)[:10])

    def _schedule(self, post: WorldOutbox, handle: Callable[[Scheduler], T]) -> T:
        """Let a scheduler instance work: a kept one chosen at random, or a new one.

        An instance handles one batch at a time and is discarded when its process dies.
        """
        if self._kept is None:
            return handle(self._scheduler(post))
        number = self._chance.randrange(self._kept) if self._kept > 1 else 0
        scheduler = self._schedulers.pop(number, None) or self._scheduler(post)
        try:
            done = handle(scheduler)
        except Exception:
            self._schedulers[number] = scheduler  # the invocation failed, but the process is alive
            raise
        self._schedulers[number] = scheduler
        return done

    def _scheduler(self, post: WorldOutbox) -> Scheduler:
        return Scheduler(
            tasks=self._looked_at,
            orders=self._faulty_store,
            plans=self._faulty_plans,
            board=self._board(),
            groups=FaultyGroups(self.groups, self.faults),
            outbox=FaultyOutbox(post, self.faults, self.watch.on_request),
            clock=self._clock_of("scheduler"),
            jitter=self._chance.random,
            instance=f"{next(self._instances):04x}",
            search_secret=self._search_secret,
            limits=lambda: FaultyOrderLimits(self.limits, self.faults),
            payloads=self._faulty_payloads,
        )

    def _board(self) -> FaultyBoard:
        """The board of one instance, which knows marks and holds for as long as on AWS."""
        board = MemoryAgentBoard(
            self._clock, self.holds, partial(_depth, self._queues), keep_for=KEEP_MARKS_FOR
        )
        return FaultyBoard(board, self.faults)

    def make_pass(self, number: int, post: WorldOutbox) -> PassReport:
        """Let a supervisor make one pass, and visit the open bulk runs if there are any.

        After a Crash, its next pass has a new instance.
        """
        found = self._supervisors.pop(number, None) or self._supervisor(post)
        supervisor, bulk, _ = found
        now = self._clock_of("supervisor")
        report = supervisor.make_pass(stop_at=now() + MINUTE)
        if self.bulk_runs.open_now():
            times = VisitTimes(now() + MINUTE, now() + self.interval, last=False)
            report.reasons += bulk.visit(times).moved
        if marks := self.schedules.marks():
            visited = self._schedule_queues(post).visit(marks, now() + MINUTE)
            report.reasons += [(order, f"begun, of {name}") for name, order in visited.begun]
        self._supervisors[number] = found
        return report

    def _supervisor(self, post: WorldOutbox) -> tuple[Supervisor, BulkRuns, Wakes]:
        leases = FaultyLeases(self.leases, self.faults)
        instance = f"u{next(self._instances):04x}"
        clock = self._clock_of("supervisor")
        outbox = FaultyOutbox(post, self.faults, on_command=self.watch.on_bulk_command)
        supervisor = Supervisor(
            tasks=self._looked_at,
            plans=self._faulty_plans,
            board=self._board(),
            groups=FaultyGroups(self.groups, self.faults),
            outbox=outbox,
            clock=clock,
            jitter=self._chance.random,
            config=SupervisorConfig(leases, instance, SHARDS, self.interval),
            limits=lambda: FaultyOrderLimits(self.limits, self.faults),
            on_trouble=self._note_trouble,
        )
        bulk = BulkRuns(
            BulkPorts(
                runs=FaultyBulkRuns(self.bulk_runs, self.faults),
                tasks=self._looked_at,
                orders=self._faulty_store,
                plans=self._faulty_plans,
                holds=FaultyHolds(self.holds, self.faults),
                outbox=outbox,
                clock=clock,
            ),
            instance=instance,
            on_trouble=self._note_trouble,
        )

        def look(task_id: str, shard: int) -> None:
            supervisor.look_at(task_id, shard)

        ports = WakePorts(
            holds=FaultyHolds(self.holds, self.faults),
            wakes=FaultyWakes(self.wakes, self.faults),
            tasks=self._looked_at,
            leases=leases,
            outbox=outbox,
            clock=clock,
        )
        return supervisor, bulk, Wakes(ports, shards=SHARDS, look=look)

    def _schedule_queues(self, post: WorldOutbox) -> ScheduleQueues:
        outbox = FaultyOutbox(post, self.faults)
        clock = self._clock_of("supervisor")
        return ScheduleQueues(self._faulty_schedules, self._looked_at, outbox, clock)

    def _queues_move(self) -> bool:
        """Whether a supervisor finds something to do for a schedule whose orders wait."""
        now = self._clock()
        for name in self.schedules.marks():
            record = self.schedules.read(name)
            task = self.watch.tasks.get(record.current)
            last = open_order(None if task is None else task.state)
            if next_step(record, last, now) is not QueueStep.WAIT:
                return True
        return False

    def visit_holds(self, number: int, post: WorldOutbox) -> WakeReport:
        """Let a supervisor wake what has waited for holds that have ended.

        After a Crash, its next visit has a new instance.
        """
        found = self._supervisors.pop(number, None) or self._supervisor(post)
        now = self._clock_of("supervisor")()
        report = found[2].visit(VisitTimes(now + MINUTE, now + VISIT_INTERVAL, last=False))
        self._supervisors[number] = found
        self._wakes_on = report.going
        return report

    def wake_first(self, post: WorldOutbox, target: str) -> None:
        """Wake the first orders that waited for a target, as the command `release` does."""
        now, holds = self._clock(), self.holds.holds()
        if self.wakes_are_lost or any(hold.agent == target for hold in holds):
            return  # lost; or its circuit is open, which only a call closes
        held = on_orders(holds) if target == EVERY_ORDER else ()
        parked = ParkedOrders(self.store, self._clock, SHARDS)
        wake_first(parked, post, target, held, now + KNOWN_AFTER)

    def ended_holds(self) -> list[EndedHolds]:
        """The targets on which no hold is in force, and was before."""
        now, holds = self._clock(), self.holds.stored_now()
        some_held = any(hold.until > now for hold in on_orders(holds))
        ended = ended_holds(holds, now)
        return [one for one in ended if one.target != EVERY_ORDER or not some_held]

    def next_visit(self, last: int) -> int | None:
        """When a supervisor next visits what a hold has parked, in epoch ms; None if nothing is.

        `last` is the instant of the last visit. It visits at each pass, and between them while it
        wakes orders or knows that a hold is about to end by itself.
        """
        tasks = map(self.watch.tasks.__getitem__, self.watch.parked)
        held = any(waits_since(task) is None for task in tasks)  # others wait for their turn
        if not held or self.wakes_are_lost:
            return None
        now, holds, wakes = self._clock(), self.holds.stored_now(), self.wakes.now()
        instants = [hold.until for hold in holds if hold.until > now]
        for ended in ended_holds(holds, now):
            wake = wakes.get(ended.target)
            if wake is None or wake.of != ended.of:
                instants.append(now)
            elif not wake.done:
                instants.append(wake.next_at)
        if not instants:
            return None
        soon = min(instants)
        ends = any(
            soon - MINUTE < hold.until <= soon + MINUTE
            or (hold.kind == BREAKER and soon - hold.since < WATCHED_FOR)
            for hold in holds
        )
        every = VISIT_INTERVAL if ends or self._wakes_on else MINUTE
        at = max(soon, last + every)
        return -(-at // every) * every

    def forget_supervisors(self) -> None:
        """Replace the instances of the supervisor, as a deployment does."""
        self._supervisors.clear()

    def forget(self, function: str) -> None:
        """Replace the instances of a function: the next ones have kept nothing."""
        if function == SCHEDULER:
            self._schedulers.clear()
        elif function == SUPERVISOR:
            self.forget_supervisors()
        elif function != SUBMISSION:
            self.guards.died(function)
            self._read_notes.pop(function, None)
            return
        plans = MemoryPlans(tables=self.tables, clock=self._clock)
        self._faulty_plans = FaultyPlans(plans, self.faults)
        self._search_secret = self._new_search_secret()

    def found(self, path: str, value: str) -> list[str]:
        """The ids of the orders that are found by a value of the field at the path, oldest first.

        Tables are read even while functions cannot read them.
        """
        client = self.tables.client
        with self.tables.down(is_down=False):
            secret = MemorySearchSecret(tables=self.tables).stored()
            found = {
                (one.created_at, one.order_id)
                for key in keys_of_value(path, value, secret)
                for index in INDEXES
                for page in look_for_orders(client, TABLES.orders, index, key)
                for one in page
            }
        return [order_id for _, order_id in sorted(found)]

    def _new_search_secret(self) -> FaultySearchSecret:
        """What an instance reads the secret of search keys with."""
        secret = MemorySearchSecret(tables=self.tables, clock=self._clock)
        return FaultySearchSecret(secret, self.faults)

    def forget_instances(self) -> None:
        """Replace the instances of all functions."""
        for function in (SCHEDULER, SUPERVISOR, *self._read_notes):
            self.forget(function)
        self.plans.forget()

    def _note_trouble(self, who: str, problem: Exception) -> None:
        self.troubles.append((who, problem))

    def next_tick(self, last: int, *, bounded: bool) -> int | None:
        """When the next tick is that finds something to do, in epoch ms; None if there is none.

        `last` is the instant of the last tick. Ticks before the result would find nothing. A run
        that is not `bounded` does not wait for failure groups that were alerted, because their
        members are counted from time to time without end, nor for orders of which only a person
        knows the missing result, or that wait for their turn behind such ones: they are looked at
        each day.
        """
        due = {name: at for name, at in self.watch.due.items() if bounded or not self._lacks(name)}
        comes = self.next_visit(last) is not None  # the end of a hold, up to which time goes on
        if not bounded and not comes and all(map(self._waits_for_person, due)):
            due = {}
        task = min(due.values(), default=None)
        instants = [] if task is None else [task - self.interval - LOOKS_AHEAD]
        instants += [
            group.look_at if _is_counted(group) else group.alerting_until
            for group in self.groups.now()
            if bounded or not _is_counted(group)
        ]
        if self.bulk_runs.open_now() or self._queues_move():
            instants.append(last + self.interval)
        if not instants:
            return None
        earliest = max(last + self.interval, min(instants))
        return last + -(-(earliest - last) // self.interval) * self.interval

    def _lacks(self, name: str) -> bool:
        return needs_result(self.watch.tasks[name])

    def _waits_for_person(self, name: str) -> bool:
        """Whether an order waits for its turn only behind such that wait for a missing result."""
        task, tasks = self.watch.tasks[name], self.watch.tasks.values()
        under_way = [one for one in tasks if one.limit == task.limit and one.has_turn]
        waits = waits_since(task) is not None and bool(under_way)
        return waits and all(map(needs_result, under_way))

    def _clock_of(self, part: str) -> Clock:
        ahead = self._skew.get(part, 0)
        return self._clock if not ahead else lambda: self._clock() + ahead

    # --- agents ------------------------------------------------------------------------------

    def _answer(self, mail: QueuedMessage, post: WorldOutbox, run: SimulatedInvocation) -> str:
        request = read_request(mail.body)
        agent, _, priority = mail.to.partition("/")
        self._note_read(agent, priority, request)
        task = self.watch.tasks.get(request.task_id)
        plan = None if task is None else self.plans.plan(task.plan)
        if plan is None:
            raise TryAgain(f"{request.task_id}: the world has no plan of it")
        visit = RequestRun(
            agent=run.version.agents[agent],
            request=request,
            plan=plan,
            services=self.services,
            guards=self.guards,
            call_notes=self._call_notes(agent),
            payloads=self._faulty_payloads,
            on_call=self._on_call,
            world_clock=self._clock,
            lands_late=lambda effect, fenced, after: post.post(
                EFFECTS, _effect_text(effect, fenced), after, ""
            ),
            spent=run.spent,
        )

        def send_now(reply: Reply) -> None:
            body = reply.body()
            self.faults.around("reply", lambda: post.post(REPLIES, body, visit.spent, agent))

        try:
            answer = visit.answer(
                redelivered=mail.receives > 1, send_now=send_now, jitter=self._chance.random
            )
        except Crash:
            self.forget(agent)
            raise
        finally:
            run.spent = visit.spent
            if visit.raised is not None:
                self._calls_of(request).error = visit.raised
            self.watch.touched(request.task_id)
            token = callback_token(request, agent)
            if visit.asked_until is not None:
                self._note_asked(visit, token, visit.asked_until)
        if isinstance(answer, Reminded):
            why = f": {answer.error.type}: {answer.error.message}" if answer.error else ""
            return f"{agent}: reminder {request.reminder} of {request.step}{why}"
        if not isinstance(answer, Reply):
            return f"{agent} says nothing of {request.step}: {answer.reason}"
        if answer.outcome is Outcome.WAITING and visit.answers_in is not None:
            body = succeeded_reply(token, {"called": "back"}, clock=visit.clock)
            post.post(REPLIES, body, visit.spent + visit.answers_in, agent, ANSWER_SENDER)
        send_now(answer)
        self.guards.of(agent, visit.clock, visit.sleep).publish_alerts()
        why = f" ({answer.error.type}: {answer.error.message})" if answer.error else ""
        if visit.unforeseen is not None:
            why += f"\n{_where(visit.unforeseen)}"
        return f"{agent}: {request.operation} {request.step} {answer.outcome}{why}"

    def _on_call(self, agent: str, request: AgentRequest, at: int) -> None:
        self._calls_of(request).made += 1
        self.watch.on_call(agent, request, at)

    def _calls_of(self, request: AgentRequest) -> StepCalls:
        return self.calls_of_steps.setdefault((request.task_id, request.step), StepCalls())

    def _call_notes(self, agent: str) -> FaultyCallNotes:
        notes = MemoryCallNotes(agent, self._clock, tables=self.tables)
        return FaultyCallNotes(notes, self.faults)

    def _note_asked(self, visit: RequestRun, token: str, until: int) -> None:
        """Keep the callback of this attempt; a redelivered request has the same one."""
        request = visit.request
        asked = self.tokens.setdefault((request.task_id, request.step), [])
        if request.lock not in (other.lock for other in asked):
            asked.append(CallbackRequest(request.lock, token, until, visit.effect))

    def _note_answer(self, reply: Reply) -> None:
        """Perform the effect of a callback that is answered with success.

        A test may put the answer into the queue itself, without performing the effect. An effect
        that was undone since then is not performed again.
        """
        self.watch.on_reply(reply)
        if reply.callback and reply.outcome is Outcome.SUCCEEDED:
            self.services.ledger.perform(effect_of(reply), fenced=True)
            self.watch.touched(reply.task_id)

    def is_fenced(self, reply: Reply) -> bool:
        """Whether the outside system rejects a perform whose key an undo has spent.

        Raises ValueError if the world has no such task or step.
        """
        task = self.watch.tasks.get(reply.task_id)
        plan = None if task is None else self.plans.plan(task.plan)
        step = None if plan is None else plan.defined(reply.step)
        if step is None:
            raise ValueError(f"this world has no step {reply.step} of {reply.task_id}")
        return step.fences_late_performs

    def _note_read(self, agent: str, priority: str, request: AgentRequest) -> None:
        """Note the read mark. A note that cannot be written does not delay the request."""
        notes = self._read_notes.get(agent)
        if notes is None:
            notes = self._read_notes[agent] = DynamoReadNotes(
                self.tables.client, control_table=TABLES.control, clock=self._clock
            )
        try:
            self.faults.around(
                "note_read",
                lambda: notes.note_read(agent, priority, request.sent_at, request.lock),
                tables=self.tables,
            )
        except (TryAgain, CallRefused):
            return

    def _land(self, mail: QueuedMessage) -> str:
        """Perform the effect of a late call. Its caller gets no answer."""
        found = json.loads(mail.body)
        effect = EffectKey(found["task"], found["step"], found["key"])
        done = self.services.ledger.perform(effect, fenced=found["fenced"])
        self.watch.touched(effect.task_id)
        return f"{effect.key} is done late" if done else f"{effect.key} comes too late: spent"


def _depth(messages: WorldQueues, key: str) -> QueueDepth:
    """The depth of a queue that the scheduler reads, by the key of its read mark."""
    if key == COMMANDS_KEY:
        return messages.depth(queues.COMMANDS)
    return messages.depth(REPLIES, key.partition("/")[0])


def effect_of(reply: Reply) -> EffectKey:
    """The effect that the reply is about."""
    return EffectKey(reply.task_id, reply.step, reply.idempotency_key)


def needs_result(task: Task) -> bool:
    """Whether an order waits for nothing but a missing result, which only a person can give."""
    records = task.steps.values()
    return (
        task.ending is None
        and not task.owed
        and task.deadline is None
        and any(record.awaits_result for record in records)
        and all(isinstance(record.situation, NotBegun | Ended) for record in records)
    )


def _is_counted(group: Group) -> bool:
    """Whether the only work left for the group is counting its members."""
    return group.closed_at is None and (group.undone or group.alerted_at is not None)


def _where(error: Exception) -> str:
    """An exception of an agent's function with the end of its traceback, as in the agent's log."""
    return "".join(format_exception(error, limit=-2)).rstrip()


def _effect_text(effect: EffectKey, fenced: bool) -> str:
    found = {"task": effect.task_id, "step": effect.step, "key": effect.key, "fenced": fenced}
    return json.dumps(found)


def _handle_asked(
    submission: Submission, asked: Asked | RejectedOrder, mail: QueuedMessage
) -> Submitted:
    if isinstance(asked, RejectedOrder):
        raise asked
    if isinstance(asked, ValidOrder):
        return submission.submit(asked)
    since = mail.sent_at if mail.receives > 1 else None
    if isinstance(asked, CancelAsked):
        return submission.cancel(asked, mail.message_id, mail.sender, waited_since=since)
    if isinstance(asked, EventOfOrder):
        return submission.begin_or_signal(asked, mail.message_id, mail.sender, waited_since=since)
    return submission.signal(asked, mail.message_id, mail.sender, waited_since=since)


def _result_text(handled: Handled) -> str:
    state = handled.task.state if handled.task is not None else "gone"
    return f"{state}: {handled.reason}"
