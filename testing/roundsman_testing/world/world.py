"""The simulation of a whole Roundsman in one process, on a clock that skips waits.

    world = World(order_fulfilment)
    world.on("charge_card").refuses("CardDeclined")
    order_id = world.submit({"total": "39.80"})
    world.run()
    assert world.task(order_id).state is TaskState.UNDONE

The real submission, scheduler, agent and supervisor run over in-memory stores and queues. After
each event all invariants are checked (`roundsman_testing.invariants`). A broken invariant ends the
run and reports the order, the seed and a file with the trace. The same seed repeats the run.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from random import Random

from roundsman.agents.agent import Agent
from roundsman.agents.callbacks import failed_reply, succeeded_reply
from roundsman.agents.payloads import opened, uploaded
from roundsman.agents.request import StepRequest
from roundsman.definition.recurrence import Recurrence
from roundsman.definition.workflow import Workflow
from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import (
    PermanentError,
    TransientError,
)
from roundsman.model.bulk_run import BulkRecord, PlannedOrder, Run, Terms
from roundsman.model.events import CommandSource, HistoryRow, Resubmit
from roundsman.model.holds import ALL_ORDERS, EVERY_WORKFLOW, OPERATOR
from roundsman.model.instants import milliseconds
from roundsman.model.json import Json
from roundsman.model.payloads import order_of, read_reference
from roundsman.model.search import value_text
from roundsman.model.task import PERFORM, TASK_ID, Task
from roundsman.submission.events import with_signal_id
from roundsman.submission.service_events import ListedSources
from roundsman.submission.submission import CancelAsked
from roundsman.wire.messages import read_reply
from roundsman_testing.faults import Faults
from roundsman_testing.tasks import checked
from roundsman_testing.world.agents import all_agents, check_typed
from roundsman_testing.world.application import SimulatedApplication
from roundsman_testing.world.backups import Backup, Backups
from roundsman_testing.world.capacity import (
    SUPERVISOR,
    Capacity,
    Functions,
    check_function,
)
from roundsman_testing.world.checks import Checks
from roundsman_testing.world.clock import WorldClock
from roundsman_testing.world.course import Course, NotYetTaken
from roundsman_testing.world.deliveries import Deliveries
from roundsman_testing.world.guards import Circuit
from roundsman_testing.world.holds import WorldHolds
from roundsman_testing.world.mishaps import NONE, Mishaps, RandomFaults, RandomMail, RandomServices
from roundsman_testing.world.operator import Operator
from roundsman_testing.world.outbox import Status, WorldOutbox
from roundsman_testing.world.processes import Processes, check_settings, duration, effect_of
from roundsman_testing.world.queues import (
    ANSWER_SENDER,
    ORDERS,
    REPLIES,
    DeliveryRule,
    WorldQueues,
)
from roundsman_testing.world.sending import Sending
from roundsman_testing.world.services import Script
from roundsman_testing.world.simulated_stack import SimulatedStack
from roundsman_testing.world.supervision import Supervision
from roundsman_testing.world.trace import Trace
from roundsman_testing.world.versions import Version, Versions
from roundsman_testing.world.work import ProcessWork

MORNING = 1_800_000_000_000
"""The start of a world, unless it is told another, in epoch ms: 2027-01-15T08:00:00Z."""


class World:
    """A simulated application, its stack, the remote services and the clock.

    - `agents`: the agents to run. Every other agent has a stand-in, whose service honours
      idempotency keys. `on` says how calls to services end.
    - `seed`, `mishaps`: random failures, all drawn from the seed.
    - `faults`: chosen failures of calls to AWS.
    - `supervisors`, `interval`: the number of supervisors, and the time between two passes.
    - `skew`: how far the clock of a part is ahead (`submission`, `scheduler`, `supervisor`).
    - `instances`: how many scheduler instances live on from message to message, with their caches,
      until their process dies. Without it, each message has a new instance.
    - `capacity`: how much a function does at once (`submission`, `scheduler`, `supervisor` or an
      agent); without it, all at once and in no time. In a world with a capacity, other events take
      no time.
    - `account`: how many invocations of all functions run at once, as the quota of an account.
      Lambda refuses the others: their messages come again after the visibility timeout.
    - `circuits`: the circuit breaker and rate limit of an agent; without it, the template's.
    - `order_retention`: how long an order is kept after its task has ended; without it, for ever.
    - `sources`: the topics, buckets and rules whose events the stack takes (`SubmitterSources`).
    - `starts_at`: the instant at which the clock begins, in epoch ms.
    """

    def __init__(  # noqa: PLR0913  # a test names what it needs
        self,
        *workflows: Workflow,
        agents: Iterable[Agent] = (),
        seed: int = 0,
        mishaps: Mishaps = NONE,
        faults: Faults | None = None,
        supervisors: int = 1,
        interval: timedelta = timedelta(minutes=1),
        skew: Mapping[str, timedelta] | None = None,
        instances: int | None = None,
        capacity: Mapping[str, Capacity] | None = None,
        account: int | None = None,
        circuits: Mapping[str, Circuit] | None = None,
        order_retention: timedelta | None = None,
        starts_at: int = MORNING,
        sources: Sequence[str] = (),
    ) -> None:
        """Raises ValueError if an argument is invalid, and DefinitionError if a given agent lacks a
        function for one of its steps.

        There must be a workflow, and workflow names must be unique. `faults` cannot be combined
        with `mishaps` of calls to AWS.
        """
        if faults is not None and mishaps.of_calls:
            raise ValueError("mishaps of calls are drawn where no faults are given: give either")
        check_settings(supervisors, interval, skew or {}, instances)
        clock, chance = WorldClock(starts_at), Random(seed)  # noqa: S311  # must be repeatable
        self.seed = seed
        self.mishaps = mishaps
        self.instances = instances
        self._luck = RandomMail(chance, mishaps)
        self.queues = WorldQueues(clock)
        self._sending = Sending(self.queues, self._luck, clock)
        self._application = SimulatedApplication(
            workflows, self._sending.as_application, clock, ListedSources(sources)
        )
        self.workflows = self._application.workflows
        self.faults = faults or RandomFaults(chance, mishaps)
        self.services = RandomServices(chance, mishaps)
        self.trace = Trace(clock.now)
        self._deployed, self._agents = list(workflows), {agent.name: agent for agent in agents}
        known = all_agents(workflows, agents)
        if strange := sorted((circuits or {}).keys() - known.keys()):
            raise ValueError(f"no agent {strange[0]!r}; there are {', '.join(known)}")
        self.functions = Functions(capacity or {}, known, account)
        self.versions = Versions(Version(self._application.reader(), known), chance)
        self.post = WorldOutbox(self._sending.send, known, self._sending.as_supervisor)
        self.processes = Processes(
            services=self.services,
            faults=self.faults,
            chance=chance,
            clock=clock,
            interval=milliseconds(interval),
            skew={part: milliseconds(ahead) for part, ahead in (skew or {}).items()},
            instances=instances,
            queues=self.queues,
            circuits=circuits or {},
            publish=self.post.publish,
            order_retention=None if order_retention is None else milliseconds(order_retention),
        )
        self.processes.watch.on_reopened = self.post.reopened
        self.post.on_alert = self.processes.watch.on_alert
        self.post.on_status = self.processes.watch.on_status
        self.post.on_rejected_signal = self.processes.watch.on_rejected_signal
        self.operator = Operator(
            self._sending.command,
            self.task,
            self.services.ledger,
            self.processes.store,
            self.processes.plans,
            self.workflows,
        )
        self._stack = stack = SimulatedStack(
            clock=clock,
            chance=chance,
            luck=self._luck,
            faults=self.faults,
            queues=self.queues,
            functions=self.functions,
            versions=self.versions,
            processes=self.processes,
            post=self.post,
            trace=self.trace,
        )
        self._work = ProcessWork(stack)
        self.faults.on_hit(self._work.note_hit)
        self._checks = Checks(stack, self._work, seed)
        deliveries = Deliveries(stack, self._work)
        supervision = Supervision(supervisors, stack, self._work)
        self._course = Course(
            stack, deliveries, supervision, self._checks, meetings=mishaps.meetings
        )
        self._holds = WorldHolds(stack, self.workflows)
        self._backups = Backups(
            stack, deliveries, self._course, self.operator, self.services.ledger
        )

    @property
    def now(self) -> int:
        """The present in epoch ms. A test may move it on."""
        return self._stack.clock.now

    @now.setter
    def now(self, now: int) -> None:
        self._stack.clock.now = now

    @property
    def events(self) -> int:
        """The number of events so far."""
        return self._course.events

    @property
    def check_every(self) -> int:
        """The number of events between two checks of all invariants: more for hundreds of orders.

        The end of a run is always checked.
        """
        return self._course.check_every

    @check_every.setter
    def check_every(self, events: int) -> None:
        self._course.check_every = events

    def clock(self) -> int:
        """The present in epoch ms."""
        return self.now

    # --- inputs ------------------------------------------------------------------------------

    def on(self, step: str, operation: str = PERFORM) -> Script:
        """The script that says how the next calls of a step end.

        `operation` is `perform`, `undo`, `probe` or `remind`. `pick[1]` is the step of one item of
        a fan-out. Raises ValueError if there is no such step or operation.
        """
        self._application.check_step(step, operation)
        return self.services.script(step, operation)

    def mail(self, queue: str, containing: str = "") -> DeliveryRule:
        """A new rule that says how the next messages to a queue are delivered.

        `queue` is `orders`, `commands`, `requests` or `replies`. The rule applies to messages whose
        text contains `containing`. Raises ValueError if there is no such queue.
        """
        return self.queues.fate(queue, containing)

    def submit(
        self,
        order: Mapping[str, Json] | None = None,
        *,
        workflow: str | None = None,
        options: ProcessingOptions | None = None,
    ) -> str:
        """Send an order. Returns its id, which is generated if `order` has no `orderId`.

        `order` is an order event. It is accepted or rejected as by the deployed submission. It runs
        the first workflow of the world, unless its `processing` or `workflow` names another. A
        second order with the same id is a repeated event; if its content differs, it is rejected.

        Raises ValueError if the order cannot be sent.
        """
        return self._application.submit(order, workflow, options)

    def upload(self, order_id: str, data: bytes) -> dict[str, Json]:
        """Store data of an order in the PayloadBucket, as `Client.upload` does.

        Returns the reference. Raises PayloadError if the data is too large.
        """
        return uploaded(data, order_id, self.processes.payloads)

    def download(self, reference: object) -> bytes:
        """The data to which a reference leads, such as one in a result.

        Raises PayloadError if it is no reference, and CallRefused if the data is not there.
        """
        found = read_reference(reference)
        owner = "" if found is None else order_of(found[0])
        with opened(reference, owner, self.processes.payloads) as file:
            return file.read()

    def send(self, message: str) -> None:
        """Send a message as a service of AWS puts it into the queue of order events.

        `roundsman_testing` has a function for each service, such as `sns_notification`. Its events
        are accepted or rejected as by the deployed submission.
        """
        self._sending.as_service(message)

    def schedule(
        self,
        order: Mapping[str, Json],
        expression: str,
        *,
        time_zone: str = "UTC",
        runs: int = 1,
    ) -> list[str]:
        """Send an order at each of its next runs, as a schedule does. Returns the orders' ids.

        `expression` and `time_zone` are as in the block of a recurring order, and a rate counts
        from now. `order` is the event without `processing.run`, which each run adds. Raises
        DefinitionError for an expression or a time zone that AWS does not take, and ValueError if
        the order has no id.
        """
        instants = Recurrence(expression, time_zone).runs(self.now, since=self.now)
        return [
            self._application.recur(order, at, self._sending.as_schedule)
            for at in islice(instants, runs)
        ]

    def cancel(self, order_id: str, *, undo: bool = True, reason: str = "") -> None:
        """Cancel an order, as the application that sent it does."""
        self._application.cancel(CancelAsked(order_id, undo, reason))

    def signal(
        self, order_id: str, name: str, data: Json = None, *, signal_id: str | None = None
    ) -> None:
        """Send a signal to an order, as `Client.signal` does, but without `signal_id` without one.

        Raises ValueError if submission would reject it whatever the state of the order.
        """
        given: dict[str, Json] = {"name": name, "data": data, "id": signal_id}
        self._application.signal({"orderId": order_id, "signal": given})

    def deploy(
        self, *workflows: Workflow, agents: Iterable[Agent] = (), over: timedelta = timedelta()
    ) -> None:
        """Deploy new versions of workflows, or further ones, and of agents.

        Later orders run the new versions; a task keeps its plan, unless an operator resubmits it
        with `newest_plan`. Agents keep the functions of the steps of earlier versions.

        The deployment takes the time `over`: until then, each invocation of submission and of the
        agents runs the old version or the new one, and an agent that is new gets its queues at some
        instant, all by the seed. Operators always ask the new version.

        Raises DefinitionError if a given agent lacks a function for one of its steps, and
        ValueError if no step uses it, or if `over` is less than nothing.
        """
        if over < timedelta():
            raise ValueError(f"a deployment takes some time or none, not {over}")
        given = self._agents | {agent.name: agent for agent in agents}
        deployed = [*workflows, *self._deployed]
        known = all_agents(deployed, given.values())
        self._agents, self._deployed = given, deployed
        self._application.deploy(workflows)
        newest = Version(self._application.reader(), known)
        self.versions.deploy(newest, self.now, milliseconds(over))
        self.post.agents = self.versions.agents_with_queues(self.now)

    def answer(
        self,
        order_id: str,
        step: str,
        result: Json = None,
        *,
        error: PermanentError | TransientError | None = None,
        asked: int | None = None,
    ) -> None:
        """Answer the callback of a step, as an outside system does.

        Each attempt of a step that waits has its own token: `asked` is the number of the attempt to
        answer, counted from 1; None means the last one. With a result, the outside system performs
        the effect now. If it is fenced and an undo came first, it answers with an error.

        Raises ValueError if the step has not waited for a callback (`waits_for_answer`), or not
        that often, or if `error` is a PermanentError without a type.
        """
        check_typed(step, error)
        tokens = self.processes.tokens.get((order_id, step), [])
        if not tokens:
            raise ValueError(f"{step} of {order_id} has returned no Callback so far")
        if asked is not None and not 1 <= asked <= len(tokens):
            raise ValueError(f"{step} of {order_id} has asked {len(tokens)} times, not {asked}")
        self.answer_token(tokens[-1 if asked is None else asked - 1].token, result, error=error)

    def answer_token(
        self,
        token: str,
        result: Json = None,
        *,
        error: PermanentError | TransientError | None = None,
    ) -> None:
        """Answer a callback by its token, like `answer`.

        The token is that of any request for the step, or of a reminder: `request.callback_token`.

        Raises InvalidToken, and ValueError if the world has no such step or the result is not JSON.
        """
        body = succeeded_reply(token, result, clock=self.clock)
        reply = read_reply(body)
        fenced = self.processes.is_fenced(reply)
        if error is None and not self.services.ledger.perform(effect_of(reply), fenced=fenced):
            error = PermanentError("KeyUndone", "an undo has spent this key")
        if error is not None:
            body = failed_reply(token, error, clock=self.clock)
        self.processes.watch.touched(reply.task_id)
        self._sending.send(REPLIES, body, to=reply.agent, sender=ANSWER_SENDER)

    def reminders(self, order_id: str, step: str) -> list[StepRequest]:
        """The requests with which the function to remind of a step was called, in their order.

        A call is repeated with the same number if it failed or its process died.
        """
        found = self.services.reminders
        return [r for r in found if (r.task_id, r.step) == (order_id, step)]

    def waits_for_answer(self, order_id: str, step: str) -> bool:
        """Whether an attempt of the step has returned a Callback so far."""
        return (order_id, step) in self.processes.tokens

    def hold(self, agent: str, for_: timedelta, reason: str = "", kind: str = OPERATOR) -> None:
        """Put an agent on hold for the time `for_`.

        `kind` is OPERATOR, or BREAKER for a hold by the circuit breaker. Raises ValueError if there
        is no such agent or kind.
        """
        self._holds.hold(agent, for_, reason, kind)

    def release(self, agent: str, kind: str = OPERATOR) -> None:
        """End a hold. Raises ValueError if there is no such agent or kind."""
        self._holds.release(agent, kind)

    def let_pass(self, agent: str, order: str) -> None:
        """Let an order pass the hold on an agent, as one that is tried.

        Raises ValueError if no operator holds the agent.
        """
        self._holds.let_pass(agent, order)

    def let_begin(self, order_id: str) -> None:
        """Let an order begin that waits for its turn, whatever the limit of its workflow says.

        Raises ValueError if its workflow has no limit, or if the order has no value for it.
        """
        self._holds.let_begin(self.task(order_id))

    def hold_all(self, for_: timedelta, reason: str = "", *, undos: bool = False) -> None:
        """Let no step of any order begin for the time `for_`; with `undos`, no undo either."""
        self._holds.hold_orders(EVERY_WORKFLOW, for_, reason, undos=undos)

    def hold_workflow(
        self, workflow: str, for_: timedelta, reason: str = "", *, undos: bool = False
    ) -> None:
        """Let no step of the workflow's orders begin for the time `for_`; with `undos`, no undo
        either.

        Raises ValueError if there is no such workflow.
        """
        self._holds.hold_orders(workflow, for_, reason, undos=undos)

    def release_all(self, share: int = ALL_ORDERS) -> None:
        """Let a share of the orders that `hold_all` holds go on, in percent; 100 ends the hold.

        Raises ValueError if nothing is held so, or for another share than 1 to 100.
        """
        self._holds.release_orders(EVERY_WORKFLOW, share)

    def release_workflow(self, workflow: str, share: int = ALL_ORDERS) -> None:
        """Let a share of the orders that `hold_workflow` holds go on, like `release_all`.

        Raises ValueError also if there is no such workflow.
        """
        self._holds.release_orders(workflow, share)

    def wakes_are_lost(self) -> None:
        """Let the end of a hold wake nobody from now on: each order finds it by its own check."""
        self.processes.wakes_are_lost = True
        self.processes.watch.looks.wakes_are_lost()
        self._stack.note("the end of a hold wakes nobody")

    def down(self, function: str, for_: timedelta) -> None:
        """Let a function begin no invocation for the time `for_`: its messages wait in order.

        `function` is `submission`, `scheduler`, `supervisor` or an agent. Raises ValueError if
        there is no such function.
        """
        check_function(function, self.versions.newest.agents)
        until = self.now + duration(for_)
        self.functions.down(function, until)
        if function == SUPERVISOR:
            self.processes.watch.looks.failed(until)
        self._stack.note("{} is down for {}", function, for_)

    def kill(self, function: str) -> None:
        """Kill all instances of a function: what runs of it ends now, and what they kept is gone.

        The messages that they have read come again after the visibility timeout of their queue, and
        a pass of the supervisor is not made. A call that an agent has begun happens at its service,
        and its reply is never sent. An invocation runs between two events only if it takes time: by
        its capacity, or by a call that `takes` some.

        `function` is `submission`, `scheduler`, `supervisor` or an agent. Raises ValueError if
        there is no such function.
        """
        check_function(function, self.versions.newest.agents)
        for mail in self.functions.kill(function, self.now):
            self.queues.put_back(mail)
        self.queues.withdraw(function)
        self.processes.forget(function)
        self.processes.watch.looks.failed(self.now)
        self._stack.note("{} is killed", function)

    def tables_down(self, for_: timedelta) -> None:
        """Let every call of a function to DynamoDB fail for the time `for_`.

        It fails as after all tries of boto3. The test itself still sees the tables.
        """
        until = self.now + duration(for_)
        self._work.tables_down_until = max(self._work.tables_down_until, until)
        self.processes.watch.looks.failed(until)
        self._stack.note("the tables are down for {}", for_)

    def resubmit_in_bulk(self, orders: Sequence[str], terms: Terms | None = None) -> str:
        """Start a bulk run that resubmits these orders. Returns its id.

        The supervisors carry it out, as one of `roundsman resubmit`. Without `terms`, it has the
        usual rate and canary. Raises ValueError if the terms are not allowed.
        """
        terms = terms or Terms()
        if isinstance(orders, str):
            raise ValueError(f"orders must be a list of ids, such as [{orders!r}]")
        if not terms.allowed:
            raise ValueError(f"a bulk run cannot have these terms: {terms}")
        runs = self.processes.bulk_runs
        run_id = f"b-{len(runs.listed()) + 1:08x}"
        event = Resubmit(CommandSource(run_id, "operator"))
        starter = self.operator.sender or ""
        run = Run(run_id, event, "operator", starter, "", "", self.now, len(orders), terms)
        runs.begin(run, [PlannedOrder(order) for order in orders])
        self._stack.note("{} resubmits {} orders", run_id, len(orders))
        return run_id

    def bulk_run(self, run_id: str) -> BulkRecord:
        """The record of a bulk run. Raises LookupError if there is no such run."""
        found = self.processes.bulk_runs.find(run_id)
        if found is None:
            raise LookupError(f"there is no bulk run {run_id!r}")
        return found[0]

    def backup(self) -> Backup:
        """The tables as they are now, for `restore`."""
        return self._backups.taken()

    def restore(self, backup: Backup) -> None:
        """Put the tables back, and let the orders go on, as docs/runbook/restore.md says.

        The queues of commands, replies and requests are emptied, each function begins with a new
        instance, bulk runs are paused, and the scheduler carries out the command `reconcile` for
        each open order before anything else happens. Services, statuses, alerts, dead letters and
        orders that wait for submission stay as they are.

        The invariants are checked from the restored records on. Only the records of tasks with an
        effect that was made or undone since the backup are not compared with their effects.
        """
        with self.processes.guards.in_use():
            self._course.end_invocations()
            self._checks.now()
            self._backups.restore(backup)
            self._checks.now()

    def all_is_well(self) -> None:
        """Stop all failures from now on: faults, random failures and the scripts of services.

        The tables are up again.
        """
        self.faults.stop()
        self._work.tables_down_until = 0
        self._luck.stop()
        self.services.stopped = True
        self.services.scripts.clear()

    def redrive(self) -> int:
        """Send the dead letters to their queues again, as `roundsman dlq redrive` does.

        Returns the number of messages.
        """
        dead, self.queues.dead = self.queues.dead, []
        for mail in dead:
            body, sender = mail.body, self.operator.sender
            if mail.queue == ORDERS:
                body = with_signal_id(body, mail.message_id)
            self.queues.send(mail.queue, body, to=mail.to, sender=sender)
        return len(dead)

    # --- running -----------------------------------------------------------------------------

    def run(
        self, *, for_: timedelta | None = None, until: Callable[[], bool] | None = None
    ) -> "World":
        """Run until nothing is left to happen, for the time `for_`, or until `until()` is true.

        Of the two it ends at whichever comes first; `until` that is true already moves no clock. It
        is false while it reads the task of an order whose event still waits.
        Nothing is left when all queues are empty, no task has a due entry, and no failure group has
        an alert to send. Returns the world. Raises InvariantBroken if an invariant is broken, and
        AssertionError if nothing is left to happen and `until()` is still false.
        """
        __tracebackhide__ = True
        with self.processes.guards.in_use():
            self._course.run(None if for_ is None else self.now + duration(for_), until)
        return self

    def follow(self, now: int) -> None:
        """Handle what is due up to an instant (epoch ms), which is the present afterwards.

        For a world that people look at and operate while another clock leads it. The supervisor
        makes a pass whenever its interval is over, also if there is nothing to do. The invariants
        are not checked: a person may say what is not true.
        """
        with self.processes.guards.in_use():
            self._course.follow(now)

    # --- checking ----------------------------------------------------------------------------

    def failed(self, what: str) -> str:
        """The end of a failed run in words, for a test that finds something wrong itself."""
        return self._checks.failed(what)

    def check_all_ended(self) -> None:
        """Raises InvariantBroken if an accepted order has not ended, or a failure has no alert."""
        __tracebackhide__ = True
        self._checks.all_ended()

    def give_results(self, result: Json = None) -> None:
        """Let a person give each missing result that an order waits for, until none is missing.

        Call it after `run`: an order that waits for a result only a person can give does not end.
        """
        while found := [
            (order_id, name, task.version)
            for order_id, task in self.processes.watch.tasks.items()
            if not task.ended and task.ending is None
            for name, record in task.steps.items()
            if record.awaits_result
        ]:
            before = self.processes.watch.decisions
            for order_id, name, seen in found:  # the first of an order may end what others are at
                self.operator.resolve(order_id, name, did=True, result=result, seen=seen)
            self.run()
            if self.processes.watch.decisions == before:
                return

    # --- results -----------------------------------------------------------------------------

    def task(self, order_id: str) -> Task:
        """The record of the task; the last record if it was removed.

        Its method `step` raises ValueError for a step that its workflow does not have. Raises
        LookupError if the order was never accepted. The message lists the rejected messages.
        """
        if order_id not in self.processes.watch.tasks:
            aside = "".join(f"; rejected: {found}" for found in self.post.put_aside)
            name = order_id if TASK_ID.fullmatch(order_id) else repr(order_id)
            said = f"{name} was never taken{aside}"
            if self.queues.waiting and not aside:
                raise NotYetTaken(f"{said}; run() has it taken")
            raise LookupError(said)
        task = self.processes.watch.tasks[order_id]
        return checked(task, self.processes.plans.plan(task.plan))

    def orders(self) -> list[str]:
        """The ids of the orders that were accepted, oldest first, also of those that were removed.

        Of a message that has no id, such as an event of S3, this is how a test finds its order.
        """
        return list(self.processes.watch.tasks)

    def search(self, field: str, value: Json) -> list[str]:
        """The ids of the orders that operators find by this value of a field, oldest first.

        `field` is one that `Workflow.search` names, such as `input.customerId`. Raises ValueError
        for a value by which no order can be found, such as None.
        """
        text = value_text(value)
        if not text:
            raise ValueError(f"no order is found by {value!r}: give a text, a number or a bool")
        return self.processes.found(field.removeprefix("input."), text)

    def history(self, order_id: str) -> list[HistoryRow]:
        """The history rows of the task, oldest first."""
        return self.processes.store.history(order_id)

    def standing(self, order_id: str) -> list[str]:
        """The steps whose effects stand at the services, in the order of the effects."""
        return [effect.step for effect in self.services.ledger.standing(order_id)]

    def statuses(self, order_id: str) -> list[Status]:
        """The statuses that the application received for its order, repeated ones included."""
        return [status for status in self.post.statuses if status.order_id == order_id]
