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

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from enum import Enum
from functools import partial
from random import Random

from roundsman.agents.agent import Agent
from roundsman.agents.callbacks import failed_reply, succeeded_reply
from roundsman.agents.request import StepRequest
from roundsman.definition.workflow import Workflow
from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import (
    CallRefused,
    InvalidInput,
    PermanentError,
    Throttled,
    TransientError,
    TryAgain,
)
from roundsman.model.bulk_run import BulkRecord, PlannedOrder, Run, Terms
from roundsman.model.corrections import Correction, changes_json, corrected, read_changes
from roundsman.model.events import CommandSource, HistoryRow, Reconcile, Resubmit
from roundsman.model.holds import ALL_ORDERS, BREAKER, EVERY_WORKFLOW, OPERATOR, Hold
from roundsman.model.instants import SECOND, iso, milliseconds
from roundsman.model.json import Json, canonical_json, parse_json
from roundsman.model.situations import EVERY_ORDER
from roundsman.model.task import PERFORM, TASK_ID, Task
from roundsman.submission.corrections import checked_changes
from roundsman.submission.events import with_signal_id
from roundsman.submission.newest_plan import answer_question
from roundsman.submission.service_events import ListedSources
from roundsman.submission.submission import CancelAsked
from roundsman.wire.messages import read_reply
from roundsman.wire.newest_plan import NewestPlanQuestion
from roundsman_console.facts.audit.stored_order import StoredOrder, stored_order
from roundsman_testing.faults import Crash, Faults, FunctionExits, Hit
from roundsman_testing.invariants.rules import Blame, Broken, Invariant, of_open
from roundsman_testing.tasks import checked
from roundsman_testing.world.agents import UntypedError, all_agents, check_typed
from roundsman_testing.world.application import SimulatedApplication
from roundsman_testing.world.backups import Backup, pause_runs
from roundsman_testing.world.capacity import (
    SCHEDULER,
    SUPERVISOR,
    Capacity,
    Functions,
    SimulatedInvocation,
    check_function,
    reader_of,
)
from roundsman_testing.world.endless import EndlessCheck
from roundsman_testing.world.failed_run import of_order
from roundsman_testing.world.guards import Circuit
from roundsman_testing.world.mishaps import NONE, Mishaps, RandomFaults, RandomServices, some_delay
from roundsman_testing.world.operator import Operator
from roundsman_testing.world.outbox import Status, WorldOutbox
from roundsman_testing.world.processes import Processes, check_settings, duration, effect_of
from roundsman_testing.world.queues import (
    A_FUNCTION,
    AGENT_SENDER,
    ANSWER_SENDER,
    APPLICATION_SENDER,
    COMMANDS,
    EFFECTS,
    ORDERS,
    REPLIES,
    REQUESTS,
    SERVICE_SENDER,
    SUBMISSION_SENDER,
    SUPERVISOR_SENDER,
    DeliveryRule,
    QueuedMessage,
    WorldQueues,
)
from roundsman_testing.world.services import Script
from roundsman_testing.world.trace import InvariantBroken, Trace, failed_text
from roundsman_testing.world.versions import Version, Versions

MORNING = 1_800_000_000_000
"""The start of a world, unless it is told another, in epoch ms: 2027-01-15T08:00:00Z."""

LATENCY = 5
"""The least time between two events, in ms."""

MOST_TOGETHER = 10
"""The most replies that one invocation of the scheduler gets: the template's batch size."""


class BatchOutcome(Enum):
    """How the work of a process on some messages ended."""

    WELL = "they are done"
    FAILED = "they come again"
    DIED = "the process died"


class NotYetTaken(LookupError):
    """The order has no task yet: its event may still wait in a queue."""


def _is_so(until: Callable[[], bool]) -> bool:
    """Whether the condition is true; False if it reads the task of an order that still waits."""
    try:
        return until()
    except NotYetTaken:
        return False


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
        self.check_every = 1
        """The number of events between two checks of all invariants: more for hundreds of orders.
        The end of a run is always checked."""
        self.now = starts_at
        self.seed = seed
        self.mishaps = mishaps
        self.instances = instances
        self.chance = Random(seed)  # noqa: S311  # must be repeatable
        self._application = SimulatedApplication(
            workflows, self._send_order, self.clock, ListedSources(sources)
        )
        self.workflows = self._application.workflows
        self.faults = faults or RandomFaults(self.chance, mishaps)
        self.services = RandomServices(self.chance, mishaps)
        self.trace = Trace(self.now)
        self.queues = WorldQueues(self.clock)
        self._deployed, self._agents = list(workflows), {agent.name: agent for agent in agents}
        known = all_agents(workflows, agents)
        self.functions = Functions(capacity or {}, known, account)
        self.versions = Versions(Version(self._application.reader(), known), self.chance)
        self.post = WorldOutbox(self._post, known, self._post_as_supervisor)
        self.events = 0
        self.processes = Processes(
            services=self.services,
            faults=self.faults,
            chance=self.chance,
            clock=self.clock,
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
            self._send_command,
            self.task,
            self.services.ledger,
            self._checked_changes,
            self._newest_plan,
        )
        self._supervisors = supervisors
        self._tables_down_until = 0
        self._ticked_at = self.now
        self._visited_at = self.now
        if strange := sorted((circuits or {}).keys() - known.keys()):
            raise ValueError(f"no agent {strange[0]!r}; there are {', '.join(known)}")
        self._depth = 0
        self._cause: Exception | None = None
        self.faults.on_hit(self._note_hit)
        if mishaps.meetings:
            self.faults.before_each(self._meet)

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

    def send(self, message: str) -> None:
        """Send a message as a service of AWS puts it into the queue of order events.

        `roundsman_testing` has a function for each service, such as `sns_notification`. Its events
        are accepted or rejected as by the deployed submission.
        """
        self._post(ORDERS, message, sender=SERVICE_SENDER)

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
        self._post(REPLIES, body, to=reply.agent, sender=ANSWER_SENDER)

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
        self._check_hold(agent, kind)
        until = self.now + duration(for_)
        self.processes.holds.hold(Hold(agent, kind, self.now, until, reason, "operator"))
        if kind == BREAKER:
            self.processes.guards.open(agent, until)
        self.trace.note(self.now, "{} is held: {}", agent, reason)

    def release(self, agent: str, kind: str = OPERATOR) -> None:
        """End a hold. Raises ValueError if there is no such agent or kind."""
        self._check_hold(agent, kind)
        self.processes.holds.release(agent, kind)
        if kind == BREAKER:
            self.processes.guards.close(agent)
        self.trace.note(self.now, "{} is released", agent)
        if kind == OPERATOR:
            self.processes.wake_first(self.post, agent)

    def hold_all(self, for_: timedelta, reason: str = "", *, undos: bool = False) -> None:
        """Let no step of any order begin for the time `for_`; with `undos`, no undo either."""
        self._hold_orders(EVERY_WORKFLOW, for_, reason, undos)

    def hold_workflow(
        self, workflow: str, for_: timedelta, reason: str = "", *, undos: bool = False
    ) -> None:
        """Let no step of the workflow's orders begin for the time `for_`; with `undos`, no undo
        either.

        Raises ValueError if there is no such workflow.
        """
        self._check_workflow(workflow)
        self._hold_orders(workflow, for_, reason, undos)

    def release_all(self, share: int = ALL_ORDERS) -> None:
        """Let a share of the orders that `hold_all` holds go on, in percent; 100 ends the hold.

        Raises ValueError if nothing is held so, or for another share than 1 to 100.
        """
        self._release_orders(EVERY_WORKFLOW, share)

    def release_workflow(self, workflow: str, share: int = ALL_ORDERS) -> None:
        """Let a share of the orders that `hold_workflow` holds go on, like `release_all`.

        Raises ValueError also if there is no such workflow.
        """
        self._check_workflow(workflow)
        self._release_orders(workflow, share)

    def _hold_orders(self, workflow: str, for_: timedelta, reason: str, undos: bool) -> None:
        until = self.now + duration(for_)
        hold = Hold(
            "", OPERATOR, self.now, until, reason, "operator", workflow=workflow, undos=undos
        )
        self.processes.holds.hold(hold)
        self.trace.note(self.now, "{} is held: {}", hold.target, reason)

    def _release_orders(self, workflow: str, share: int) -> None:
        if not 1 <= share <= ALL_ORDERS:
            raise ValueError(f"a share is 1 to {ALL_ORDERS} percent, not {share}")
        holds = self.processes.holds
        held = next((one for one in holds.holds() if one.workflow == workflow), None)
        if held is None:
            what = "everything" if workflow == EVERY_WORKFLOW else f"workflow {workflow}"
            raise ValueError(f"{what} is not held")
        over = share == ALL_ORDERS
        holds.change(held, replace(held, until=self.now) if over else replace(held, released=share))
        self.trace.note(self.now, "{} is released: {} % of the orders", held.target, share)
        self.processes.wake_first(self.post, EVERY_ORDER)

    def wakes_are_lost(self) -> None:
        """Let the end of a hold wake nobody from now on: each order finds it by its own check."""
        self.processes.wakes_are_lost = True
        self.processes.watch.looks.wakes_are_lost()
        self.trace.note(self.now, "the end of a hold wakes nobody")

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
        self.trace.note(self.now, "{} is down for {}", function, for_)

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
        self.trace.note(self.now, "{} is killed", function)

    def tables_down(self, for_: timedelta) -> None:
        """Let every call of a function to DynamoDB fail for the time `for_`.

        It fails as after all tries of boto3. The test itself still sees the tables.
        """
        until = self.now + duration(for_)
        self._tables_down_until = max(self._tables_down_until, until)
        self.processes.watch.looks.failed(until)
        self.trace.note(self.now, "the tables are down for {}", for_)

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
        self.trace.note(self.now, "{} resubmits {} orders", run_id, len(orders))
        return run_id

    def bulk_run(self, run_id: str) -> BulkRecord:
        """The record of a bulk run. Raises LookupError if there is no such run."""
        found = self.processes.bulk_runs.find(run_id)
        if found is None:
            raise LookupError(f"there is no bulk run {run_id!r}")
        return found[0]

    def backup(self) -> Backup:
        """The tables as they are now, for `restore`."""
        tasks = dict(self.processes.watch.tasks)
        return Backup(
            self.now,
            self.processes.tables.backup(),
            tasks,
            {task_id: frozenset(names) for task_id, names in self.post.status_names.items()},
            {task_id: self.services.ledger.standing(task_id) for task_id in tasks},
        )

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
            while (ends := self.functions.next_end()) is not None:
                self.now = max(self.now, ends)
                self._end(self.functions.end())
            self.functions.forget_calls()
            self._check()
            self._restore(backup)
            self._check()

    def _restore(self, backup: Backup) -> None:
        processes, before = self.processes, self.processes.tables.backup()
        self.queues.empty(COMMANDS, REPLIES, REQUESTS)
        processes.tables.restore(backup.tables)
        processes.forget_instances()
        pause_runs(processes.bulk_runs, self.now)
        self.post.status_names = {
            task_id: set(names) for task_id, names in backup.status_names.items()
        }
        late = [mail.body for mail in self.queues.waiting if mail.queue == EFFECTS]
        processes.watch.begin_anew(
            backup.tasks,
            before,
            processes.tables.backup(),
            effects_unknown=[
                task_id
                for task_id in processes.watch.tasks
                if self.services.ledger.standing(task_id) != backup.effects.get(task_id, [])
                or any(json.dumps(task_id) in body for body in late)
            ],
        )
        self.trace.note(self.now, "the tables are restored to {}", iso(backup.at))
        for task in processes.watch.open_tasks():
            asked = self.operator.asked("the tables were restored")
            self.operator.ask(task.task_id, Reconcile(asked, backup.at))
        self._depth += 1  # no other process acts in between: the supervisor is stopped until then
        for mail in self.queues.visible():
            is_left = mail.queue == COMMANDS and not mail.gone and mail.visible_at <= self.now
            if is_left and self._receive(mail):
                self._handle_batch(SimulatedInvocation(SCHEDULER, [mail], self.versions.newest))
        self._depth -= 1

    def _check_workflow(self, name: str) -> None:
        if name not in self.workflows:
            raise ValueError(f"no workflow {name!r}; there are {', '.join(self.workflows)}")

    def _check_hold(self, agent: str, kind: str) -> None:
        known = self.versions.newest.agents
        if agent not in known:
            raise ValueError(f"no agent {agent!r}; there are {', '.join(known)}")
        if kind not in (OPERATOR, BREAKER):
            raise ValueError(f"a hold is of kind {OPERATOR} or {BREAKER}, not {kind!r}")

    def all_is_well(self) -> None:
        """Stop all failures from now on: faults, random failures and the scripts of services.

        The tables are up again.
        """
        self.faults.stop()
        self._tables_down_until = 0
        self.services.stopped = True
        self.services.scripts.clear()
        self.mishaps = NONE

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
            self._run(None if for_ is None else self.now + duration(for_), until)
        return self

    def follow(self, now: int) -> None:
        """Handle what is due up to an instant (epoch ms), which is the present afterwards.

        For a world that people look at and operate while another clock leads it. The supervisor
        makes a pass whenever its interval is over, also if there is nothing to do. The invariants
        are not checked: a person may say what is not true.
        """
        with self.processes.guards.in_use():
            while self._step(now):
                pass
            self.now = max(self.now, now)
            if self.now - self._ticked_at >= self.processes.interval:
                self._ticked_at = self.now
                self._tick()
        self.processes.watch.broken.clear()
        self.processes.troubles.clear()

    def _run(self, end: int | None, until: Callable[[], bool] | None) -> None:
        __tracebackhide__ = True
        check = EndlessCheck(self.now)
        while not (until is not None and _is_so(until)):
            if not self._step(end):
                if until is not None and end is None:
                    until()  # raises LookupError if it is about an order that was never taken
                    what = "nothing is left to happen, and the condition in `until` never holds"
                    raise AssertionError(self.failed(what))
                self._check_rest()
                self.now = max(self.now, end or self.now)
                break
            if self.events % self.check_every == 0:
                self._check()
            self._check_ends(check)
        if end is not None or self.check_every > 1:
            self._check()

    def _check_ends(self, check: EndlessCheck) -> None:
        """Raises InvariantBroken if the run would never end."""
        __tracebackhide__ = True
        watch, runs = self.processes.watch, self.processes.bulk_runs.open_now()
        found = check.after(
            self.now,
            decisions=watch.decisions,
            needed_since=watch.looks.needed_since(),
            ended=watch.ends,
        )
        things = len(watch.tasks) + len(self.queues.waiting) + len(runs)
        if found is None and check.crowded(things):
            found = check.judged(self.now)
        if found is not None:
            open_tasks = " ".join(task.task_id for task in watch.open_tasks())
            self._break(Invariant.ENDS, open_tasks, found.why, found.blame)

    def _step(self, end: int | None) -> bool:
        """Handle the next event. Returns False if there is none up to `end`."""
        comes, mail = self._next_mail()
        tick = self.processes.next_tick(self._ticked_at, bounded=end is not None)
        if tick is not None:
            tick = max(tick, self.functions.down_until(SUPERVISOR))
        visit = self.processes.next_visit(self._visited_at)
        if visit is not None:
            visit = max(visit, self.functions.down_until(SUPERVISOR))
        ends = self.functions.next_end()
        at = min((at for at in (ends, comes, tick, visit) if at is not None), default=None)
        if at is None or (end is not None and at > end):
            return False
        self.now = max(self.now + (0 if self.functions.timed else LATENCY), at)
        self.events += 1
        if ends == at:
            self._end(self.functions.end())
        elif mail is not None and comes == at:
            self._deliver(self._overtaking(mail))
        elif visit == at:
            self._visited_at = self.now
            self._ended(self._visit_holds, "a supervisor")
        else:
            self._ticked_at = self.now
            self._tick()
        return True

    def _next_mail(self) -> tuple[int | None, QueuedMessage | None]:
        """The message that is delivered next, and when (epoch ms): a function may be busy or down.

        Of the queues that one function reads, the message that was visible first goes first.
        """
        if not self.functions.limited:
            mail = self.queues.first()
            return (None if mail is None else mail.visible_at), mail
        heads = [(self.functions.free_at(mail), mail) for mail in self.queues.heads()]
        free = [(max(at, mail.visible_at), mail) for at, mail in heads if at is not None]
        return min(free, default=(None, None))

    def _ready(self) -> list[QueuedMessage]:
        """The messages that are visible now and whose function can read them, earliest first."""
        visible = self.queues.visible()
        if not self.functions.limited:
            return visible
        heads = [(self.functions.free_at(mail), mail) for mail in visible]
        return [mail for at, mail in heads if at is not None and at <= self.now]

    def _overtaking(self, mail: QueuedMessage) -> QueuedMessage:
        """The message to deliver first: at random any visible one, as in an SQS standard queue."""
        if self.mishaps.overtakes and self.chance.random() < self.mishaps.overtakes:
            return self.chance.choice(self._ready())
        return mail

    def _tick(self) -> None:
        """Let a supervisor make a pass. A tick is left out while its function is busy or down.

        One that the account has no instance for comes again after a second, as Lambda retries it.
        """
        is_free = self.functions.is_free(SUPERVISOR, SUPERVISOR)
        if not is_free or self.functions.down_until(SUPERVISOR) > self.now:
            return
        if self.functions.throttles(SUPERVISOR):
            self._ticked_at = self.now - self.processes.interval + SECOND
            return
        self.functions.count(SUPERVISOR, 0)
        if self.functions.capacity_of(SUPERVISOR) is None:
            self._make_pass()
        else:
            self.functions.begin(
                SimulatedInvocation(SUPERVISOR, (), self.versions.newest), self.now
            )

    def _make_pass(self) -> None:
        number = self.chance.randrange(self._supervisors) if self._supervisors > 1 else 0
        self.trace.note(self.now, "supervisor {} makes a pass", number + 1)
        self._ended(lambda: self._pass(number), f"supervisor {number + 1}")

    def _visit_holds(self) -> None:
        number = self.chance.randrange(self._supervisors) if self._supervisors > 1 else 0
        report = self.processes.visit_holds(number, self.post)
        for target, orders in report.woken:
            self.trace.note(self.now, "supervisor {} wakes {} of {}", number + 1, orders, target)
        for agent in report.tried:
            self.trace.note(self.now, "supervisor {} tries {}", number + 1, agent)

    def _pass(self, number: int) -> None:
        report = self.processes.make_pass(number, self.post)
        for task_id, reason in report.reasons:
            self.trace.note(self.now, "  {}: {}", task_id, reason)

    def _deliver(self, mail: QueuedMessage) -> None:
        """Let the function of the message read it, with others if it takes a batch."""
        function = reader_of(mail)
        capacity = self.functions.capacity_of(function)
        most = [mail] if capacity else self._batch_with(mail)
        batch = [each for each in most if self._receive(each)]
        if capacity is not None and batch:
            others = self.queues.next_of(mail, capacity.batch - 1)
            batch += [each for each in others if self._receive(each)]
        if not batch or self.functions.throttles(function):
            return
        self.functions.count(function, len(batch))
        run = SimulatedInvocation(function, batch, self._version(function))
        if capacity is None:
            self._handle_batch(run)
        else:
            self.functions.begin(run, self.now)

    def _version(self, function: str) -> Version:
        """The code of an invocation that begins now: during a deployment, the old or the new."""
        if not self.versions.two:
            return self.versions.newest
        self.post.agents = self.versions.agents_with_queues(self.now)
        version = self.versions.of_invocation(self.now)
        if version is not self.versions.newest and function not in (SCHEDULER, EFFECTS):
            self.trace.note(self.now, "  by the old version")
        return version

    def _end(self, run: SimulatedInvocation) -> None:
        """Go on when an instance has taken its time, or when the calls of an agent have ended.

        A message that was read again in the meantime is not deleted, as in SQS.
        """
        if run.calls:
            for mail, receives in run.handled:
                if mail.receives == receives and not mail.gone:
                    self._delete(mail)
        elif run.function == SUPERVISOR:
            self._make_pass()
        else:
            self._handle_batch(run)

    def _receive(self, mail: QueuedMessage) -> bool:
        received = self.queues.receive(mail)
        dead = f" was read {mail.receives} times and is dead"
        self.trace.note(self.now, "{}{}", mail, "" if received else dead)
        return received

    def _handle_batch(self, run: SimulatedInvocation) -> None:
        """Handle messages that one invocation has read; replies of one task are handled together.

        If the process dies, all of them come again. If one was read before, each is handled alone
        and deleted at once, forwards and backwards in turn, as in `roundsman.aws.sqs.batch`.
        """
        came_before = max(mail.receives for mail in run.batch) if len(run.batch) > 1 else 1
        groups = dict[str, list[QueuedMessage]]()
        for mail in (
            sorted(run.batch, reverse=came_before % 2 == 1) if came_before > 1 else run.batch
        ):
            task_id = self.processes.task_of_reply(mail) if came_before == 1 else None
            groups.setdefault(task_id or mail.message_id, []).append(mail)
        for group in groups.values():
            ended = self._handle_group(group, run)
            if ended is BatchOutcome.DIED:
                self._died(run)
                return
            if came_before > 1 and run.handled:
                self._delete(run.handled.pop()[0])
        if not (run.spent and self.functions.calling(run, self.now)):
            for mail, _ in run.handled:
                self._delete(mail)

    def _handle_group(
        self, group: Sequence[QueuedMessage], run: SimulatedInvocation
    ) -> "BatchOutcome":
        if len(group) > 1:
            return self._handle_together(group, run)
        ended = self._ended(partial(self._handle, group[0], run), group[0], group)
        if ended is BatchOutcome.WELL:
            run.handled.append((group[0], group[0].receives))
        elif ended is BatchOutcome.FAILED:
            self.processes.handling_failed(group[0])
        return ended

    def _died(self, run: SimulatedInvocation) -> None:
        """Let all messages of an invocation come again, those that were handled before, too."""
        run.handled.clear()
        for mail in run.batch:
            if not mail.gone:
                self.processes.handling_failed(mail)

    def _batch_with(self, mail: QueuedMessage) -> list[QueuedMessage]:
        """The messages that one invocation gets: replies of one task that are visible together.

        Replies of other tasks in the batch would be handled as if they came alone. A reply that was
        received before comes alone as well.
        """
        others = [other for other in self.queues.visible() if other.queue == REPLIES]
        if mail.queue != REPLIES or mail.receives or len(others) == 1:
            return [mail]
        task_id = self.processes.task_of_reply(mail)
        if task_id is None:
            return [mail]
        others = [
            other
            for other in others
            if other is not mail
            and not other.receives
            and self.processes.task_of_reply(other) == task_id
        ][: MOST_TOGETHER - 1]
        if others and self.mishaps != NONE:
            others = others[: self.chance.randrange(len(others) + 1)]
        return [mail, *others]

    def _handle_together(
        self, batch: Sequence[QueuedMessage], run: SimulatedInvocation
    ) -> "BatchOutcome":
        """Handle replies of one task in one invocation, which lives or dies for all of them."""
        results = list[str | Exception]()

        def handle() -> None:
            results.extend(self.processes.handle_replies(batch, self.post))

        ended = self._ended(handle, batch[0], batch)
        if ended is BatchOutcome.DIED:
            return ended
        for number, mail in enumerate(batch):
            note = partial(self._note_result, mail, results[number] if results else None)
            if ended is BatchOutcome.WELL and self._ended(note, mail, [mail]) is BatchOutcome.WELL:
                run.handled.append((mail, mail.receives))
            else:
                self.processes.handling_failed(mail)
        return ended

    def _note_result(self, mail: QueuedMessage, result: str | Exception | None) -> None:
        if isinstance(result, Exception):
            raise result
        self.trace.note(self.now, "  {}: {}", mail, result)

    def _handle(self, mail: QueuedMessage, run: SimulatedInvocation) -> None:
        result = self.processes.handle(mail, self.post, run)
        self.trace.note(self.now, "  {}: {}", mail, result)

    def _delete(self, mail: QueuedMessage) -> None:
        if mail.queue != EFFECTS and self.chance.random() < self.mishaps.repeats:
            self.queues.delay(mail, some_delay(self.chance, self.mishaps.longest_delay))
            self.trace.note(self.now, "  {} will come once more", mail)
            return
        self.queues.delete(mail)

    def _ended(
        self, act: Callable[[], None], who: object, mails: Sequence[QueuedMessage] = ()
    ) -> "BatchOutcome":
        """Let a process work. Unless it ends well, the messages `mails` come again."""
        down = self.now < self._tables_down_until
        try:
            with self.processes.tables.down(is_down=down):
                act()
        except Crash as crash:
            self.trace.note(self.now, "  the process dies: {}", crash)
            return BatchOutcome.DIED
        except (TryAgain, CallRefused) as problem:
            if isinstance(problem, Throttled):
                for mail in mails:
                    self.queues.hide_longer(mail, self.chance.random())
            self.trace.note(self.now, "  it comes again: {}", problem)
            return BatchOutcome.FAILED
        except UntypedError:
            raise  # a mistake of the author, and not of the engine
        except SystemExit as ended:
            raise FunctionExits(str(who), ended) from ended
        except Exception as problem:  # noqa: BLE001  # every other exception breaks HANDLED
            self._note_trouble(str(who), problem)
            return BatchOutcome.FAILED
        return BatchOutcome.WELL

    def _note_hit(self, hit: Hit) -> None:
        self.processes.watch.looks.failed(self.now)
        self.trace.note(self.now, "  call {}, {}: {}", *hit)

    def _note_trouble(self, where: str, problem: Exception) -> None:
        self._cause = problem
        what = f"{type(problem).__name__}: {problem}"
        self.processes.watch.broken.append(Broken(Invariant.HANDLED, where, what))

    def _meet(self, name: str) -> None:
        """Before a random call of one process, let another process act, so that the two race."""
        if self._depth or self.faults.stopped or self.chance.random() >= self.mishaps.meetings:
            return
        ready = self._ready()
        self._depth += 1
        try:
            self.trace.note(self.now, "  meanwhile, before {}:", name)
            if ready and self.chance.random() < 0.8:
                self._deliver(self.chance.choice(ready))
            else:
                self._tick()
        finally:
            self._depth -= 1

    def _post(
        self,
        queue: str,
        body: str,
        delay: int = 0,
        to: str = "",
        sender: str | None = A_FUNCTION,
    ) -> None:
        if sender == A_FUNCTION:  # submission is the only function that sends a command
            sender = AGENT_SENDER if queue == REPLIES else SUBMISSION_SENDER
        # An agent sends its reply when its visit ends; any other delay is one of the queue.
        sent_at = self.now + delay if queue == REPLIES else self.now
        if queue != EFFECTS and self.chance.random() < self.mishaps.delays:
            delay += some_delay(self.chance, self.mishaps.longest_delay)
        self.queues.send(queue, body, delay=delay, to=to, sender=sender, sent_at=sent_at)

    def _post_as_supervisor(self, body: str, delay: int) -> None:
        self._post(COMMANDS, body, delay, sender=SUPERVISOR_SENDER)

    def _send_order(self, body: str) -> None:
        self._post(ORDERS, body, sender=APPLICATION_SENDER)

    def _send_command(self, body: str, sender: str | None) -> None:
        self._post(COMMANDS, body, sender=sender)

    def _newest_plan(self, order_id: str, changes: Correction) -> str:
        """The hash of the newest plan of the order's workflow, as the deployed stack answers it."""
        task = self.task(order_id)
        row = self.processes.store.order(order_id)
        content = corrected(task.input(None if row is None else row.content), [changes])
        question = NewestPlanQuestion(task.workflow, {order_id: content})
        found = answer_question(question, self.workflows, self.processes.plans)
        if found.problems:
            raise InvalidInput(found.problems[order_id])
        if found.plan is None:
            raise ValueError(f"this world has no workflow {task.workflow!r}")
        return found.plan

    def _checked_changes(self, order_id: str, changes: Correction) -> Correction:
        task = self.task(order_id)
        row = self.processes.store.order(order_id)
        before = task.input(None if row is None else row.content)
        # As JSON, since a test may give tuples.
        given = read_changes(parse_json(canonical_json(changes_json(changes))))
        return checked_changes(self.workflows[task.workflow], before, given)

    # --- checking ----------------------------------------------------------------------------

    def _check(self) -> None:
        __tracebackhide__ = True
        watch = self.processes.watch
        watch.look(self.post.status_names, self._stored_order)
        if watch.parked:
            watch.looks.holds_ended(self.processes.ended_holds(), self.now)
        watch.broken += watch.looks.late(self.now)
        for task_id, problem in self.processes.troubles:
            if not isinstance(problem, CallRefused | TryAgain):
                self._note_trouble(task_id, problem)
        self.processes.troubles.clear()
        if watch.broken:
            raise self._broken(watch.broken)

    def _check_rest(self) -> None:
        """Check what holds once all messages are handled; a dead letter waits for a person."""
        __tracebackhide__ = True
        idle = self.queues.first() is None and self.functions.next_end() is None
        if idle and not self.queues.dead:
            self.processes.watch.at_rest(self._stored_order)
        if self.processes.watch.broken:
            self._check()

    def _stored_order(self, order_id: str) -> StoredOrder | None:
        """What is stored of an order; None if the record of its task was removed."""
        store = self.processes.store
        task = store.load(order_id, self.now)
        if task is None:
            return None
        plan, row = self.processes.plans.plan(task.plan), store.order(order_id)
        history = store.history(order_id)
        return stored_order(task, plan, row, history, at=self.now)

    def _break(self, invariant: Invariant, task_id: str, what: str, blame: Blame) -> None:
        __tracebackhide__ = True
        raise self._broken([Broken(invariant, task_id, what, blame)])

    def _broken(self, found: Sequence[Broken]) -> InvariantBroken:
        about = self._about(found[0].task_id)
        return InvariantBroken(found, self.seed, self.trace, about, self._cause)

    def _about(self, named: str) -> list[str]:
        """What the end of a failed run says of the first order that it names, or is open."""
        watch = self.processes.watch
        tasks = [watch.tasks[one] for one in named.split() if one in watch.tasks]
        tasks += watch.open_tasks() or watch.tasks.values()
        calls = self.processes.calls_of_steps
        return [line for task in tasks[:1] for line in of_order(task, calls, self.now)]

    def failed(self, what: str) -> str:
        """The end of a failed run in words, for a test that finds something wrong itself."""
        return failed_text([what], self._about(""), Blame.TEST, self.seed, str(self.trace))

    def check_all_ended(self) -> None:
        """Raises InvariantBroken if an accepted order has not ended, or a failure has no alert."""
        __tracebackhide__ = True
        for task in self.processes.watch.open_tasks():
            self._break(Invariant.ENDS, task.task_id, f"it is {task.state}", Blame.TEST)
        for group in self.processes.groups.groups():
            for broken in of_open(group):
                self._break(broken.invariant, broken.task_id, broken.what, broken.blame)

    def give_results(self, result: Json = None) -> None:
        """Let a person give each missing result that an order waits for, until none is missing.

        Call it after `run`: an order that waits for a result only a person can give does not end.
        """
        while found := [
            (order_id, name)
            for order_id, task in self.processes.watch.tasks.items()
            if not task.ended and task.ending is None
            for name, record in task.steps.items()
            if record.awaits_result
        ]:
            before = self.processes.watch.decisions
            for order_id, name in found:
                self.operator.resolve(order_id, name, did=True, result=result)
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

    def history(self, order_id: str) -> list[HistoryRow]:
        """The history rows of the task, oldest first."""
        return self.processes.store.history(order_id)

    def standing(self, order_id: str) -> list[str]:
        """The steps whose effects stand at the services, in the order of the effects."""
        return [effect.step for effect in self.services.ledger.standing(order_id)]

    def statuses(self, order_id: str) -> list[Status]:
        """The statuses that the application received for its order, repeated ones included."""
        return [status for status in self.post.statuses if status.order_id == order_id]
