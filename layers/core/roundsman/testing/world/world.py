"""A whole Roundsman in one process, on a clock that skips whatever nobody needs to wait for.

    world = World(order_fulfilment)
    world.on("charge_card").refuses("CardDeclined")
    order_id = world.submit({"total": "39.80"})
    world.run()
    assert world.task(order_id).state is TaskState.UNDONE

The real submission, scheduler, agent and supervisor run over stores and queues in memory. After
each event every invariant is held (`roundsman.testing.invariants`); the first that does not hold
ends the run with the seed and the trace of all that happened. The same seed repeats it.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from random import Random

from roundsman.agents.agent import Agent
from roundsman.agents.callbacks import failed_reply, succeeded_reply
from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import CallRefused, PermanentError, TransientError, TryAgain
from roundsman.model.events import HistoryRow
from roundsman.model.holds import BREAKER, OPERATOR, Hold
from roundsman.model.instants import milliseconds
from roundsman.model.json import Json
from roundsman.model.task import PERFORM, Task
from roundsman.model.workflow import Workflow
from roundsman.submission.submission import CancelAsked
from roundsman.testing.faults import Crash, Faults, Hit
from roundsman.testing.invariants.rules import Broken, Invariant, of_open
from roundsman.testing.world.agents import all_agents
from roundsman.testing.world.application import Application, ReadEvent
from roundsman.testing.world.mishaps import NONE, Mishaps, RandomFaults, RandomServices, some_delay
from roundsman.testing.world.operator import Operator
from roundsman.testing.world.outbox import Status, WorldOutbox
from roundsman.testing.world.processes import Processes, check_settings
from roundsman.testing.world.queues import (
    COMMANDS,
    EFFECTS,
    MOST_RECEIVES,
    ORDERS,
    REPLIES,
    Fate,
    QueuedMessage,
    Queues,
)
from roundsman.testing.world.services import Script
from roundsman.testing.world.trace import InvariantBroken, Trace
from roundsman.wire.messages import TASK_ID

MORNING = 1_800_000_000_000
"""When a world begins: 2027-01-15T08:00:00Z."""

LATENCY = 5
"""ms from one event to the next."""

MOST_EVENTS = 2_000
"""For each order: what takes more goes on for ever."""


class World:
    """Orders, the stack that carries them, the services behind it, and the clock.

    Steps without a given agent have a stand-in, whose service honours keys; what a call does is
    said by `on`. `read` is what submission reads events with (`functions/submission/app.py`);
    without one, any JSON object is an order. Durations of `interval` and `skew` are timedeltas:
    how often supervisors come, and by how much the clocks of `submission`, `scheduler` or
    `supervisor` are ahead. Each message has a new instance of the scheduler; with `instances`, so
    many live on from message to message, with what they keep, until their process dies.
    """

    def __init__(
        self,
        *workflows: Workflow,
        agents: Iterable[Agent] = (),
        seed: int = 0,
        mishaps: Mishaps = NONE,
        faults: Faults | None = None,
        supervisors: int = 1,
        interval: timedelta = timedelta(minutes=1),
        skew: Mapping[str, timedelta] | None = None,
        read: ReadEvent | None = None,
        instances: int | None = None,
    ) -> None:
        """Raises ValueError for no workflow, two of one name, or mishaps of calls beside faults."""
        if faults is not None and mishaps.of_calls:
            raise ValueError("mishaps of calls are drawn where no faults are given: give either")
        check_settings(supervisors, interval, skew or {}, instances)
        self.now = MORNING
        self.seed = seed
        self.mishaps = mishaps
        self.instances = instances
        self.chance = Random(seed)  # noqa: S311  # repeatable is what it must be
        self._application = Application(workflows, read, self._send_order, self.clock)
        self.workflows = self._application.workflows
        self.faults = faults or RandomFaults(self.chance, mishaps)
        self.services = RandomServices(self.chance, mishaps)
        self.trace = Trace(self.now)
        self.queues = Queues(self.clock)
        known = all_agents(workflows, agents)
        self.post = WorldOutbox(self._post, known)
        self.events = 0
        self.processes = Processes(
            agents=known,
            services=self.services,
            faults=self.faults,
            chance=self.chance,
            clock=self.clock,
            interval=milliseconds(interval),
            skew={part: milliseconds(ahead) for part, ahead in (skew or {}).items()},
            instances=instances,
        )
        self.processes.watch.on_reopened = self.post.reopened
        self.post.on_alert = self.processes.watch.on_alert
        self.operator = Operator(self._send_command, self.task, self.services.ledger)
        self._supervisors = supervisors
        self._ticked_at = self.now
        self._depth = 0
        self._cause: Exception | None = None
        self.faults.on_hit(self._note_hit)
        if mishaps.meetings:
            self.faults.before_each(self._meet)

    def clock(self) -> int:
        """The present in epoch ms."""
        return self.now

    # --- saying what happens -----------------------------------------------------------------

    def on(self, step: str, operation: str = PERFORM) -> Script:
        """How a step's next calls (perform, undo, probe) end; `pick[1]` is an item's.

        Raises ValueError for a step or an operation that there is not.
        """
        self._application.check_step(step, operation)
        return self.services.script(step, operation)

    def mail(self, queue: str, containing: str = "") -> Fate:
        """What becomes of the next messages to a queue (orders, commands, requests, replies)."""
        return self.queues.fate(queue, containing)

    def submit(
        self,
        order: Mapping[str, Json] | None = None,
        *,
        workflow: str | None = None,
        options: ProcessingOptions | None = None,
    ) -> str:
        """Send an order; its id, which is made where `order` has no `orderId`.

        Of several workflows it is for the first, unless `workflow` names another. With `read`,
        the order is sent as its event, which says both workflow and wishes itself. Sending one
        id twice is a repeated event, or with other content one that is put aside.
        """
        return self._application.submit(order, workflow, options)

    def cancel(self, order_id: str, *, undo: bool = True, reason: str = "") -> None:
        """As the application that sent the order."""
        self._application.cancel(CancelAsked(order_id, undo, reason))

    def answer(
        self,
        order_id: str,
        step: str,
        result: Json = None,
        *,
        error: PermanentError | TransientError | None = None,
        asked: int | None = None,
    ) -> None:
        """What an outside system answers to a step that waits for its callback.

        A step that is attempted again asks again, with another token: `asked` says which time is
        answered, counted from 1; without it, the last. With a result, the outside system does at
        this moment what it was asked for; where it fences and an undo came first, it says so.

        Raises ValueError for a step that never waited (`waits_for_answer`), or not so often.
        """
        tokens = self.processes.tokens.get((order_id, step), [])
        if not tokens:
            raise ValueError(f"{step} of {order_id} has returned no Callback so far")
        if asked is not None and not 1 <= asked <= len(tokens):
            raise ValueError(f"{step} of {order_id} has asked {len(tokens)} times, not {asked}")
        one = tokens[-1 if asked is None else asked - 1]
        if error is None and not self.services.ledger.perform(one.effect, fenced=one.fenced):
            error = PermanentError("KeyUndone", "an undo has spent this key")
        if error is not None:
            self._post(REPLIES, failed_reply(one.token, error, clock=self.clock))
            return
        self.processes.watch.touched(order_id)
        self._post(REPLIES, succeeded_reply(one.token, result, clock=self.clock))

    def waits_for_answer(self, order_id: str, step: str) -> bool:
        """Whether the step's agent has asked an outside system, and returned a Callback."""
        return (order_id, step) in self.processes.tokens

    def hold(self, agent: str, for_: timedelta, reason: str = "", kind: str = OPERATOR) -> None:
        """Let an agent take no work for so long; `kind` BREAKER: its circuit is open.

        Raises ValueError for an agent that there is not.
        """
        self._check_hold(agent, kind)
        until = self.now + milliseconds(for_)
        self.processes.holds.hold(Hold(agent, kind, self.now, until, reason, "operator"))
        self.trace.note(self.now, "{} is held: {}", agent, reason)

    def release(self, agent: str, kind: str = OPERATOR) -> None:
        """End a hold. Raises ValueError for an agent that there is not."""
        self._check_hold(agent, kind)
        self.processes.holds.release(agent, kind)
        self.trace.note(self.now, "{} is released", agent)

    def _check_hold(self, agent: str, kind: str) -> None:
        if agent not in self.post.agents:
            raise ValueError(f"no agent {agent!r}; there are {', '.join(self.post.agents)}")
        if kind not in (OPERATOR, BREAKER):
            raise ValueError(f"a hold is of kind {OPERATOR} or {BREAKER}, not {kind!r}")

    def all_is_well(self) -> None:
        """From now on nothing goes wrong any more: no fault, no trouble at a service."""
        self.faults.stop()
        self.services.stopped = True
        self.services.scripts.clear()
        self.mishaps = NONE

    def redrive(self) -> int:
        """Put the dead letters back into their queues, as an operator would; how many."""
        dead, self.queues.dead = self.queues.dead, []
        for mail in dead:
            self.queues.send(mail.queue, mail.body, to=mail.to)
        return len(dead)

    # --- letting it happen -------------------------------------------------------------------

    def run(
        self, *, for_: timedelta | None = None, until: Callable[[], bool] | None = None
    ) -> "World":
        """Until nothing is on its way and nothing is watched, or so long, or until that is so.

        Raises InvariantBroken, and AssertionError where all is over and `until` is still not so.
        """
        end = None if for_ is None else self.now + milliseconds(for_)
        most = self.events + MOST_EVENTS * (
            len(self.processes.watch.tasks) + len(self.queues.waiting)
        )
        while not (until is not None and until()):
            if not self._step(end):
                if until is not None and end is None:
                    raise AssertionError(f"what was waited for never is so\n\n{self.trace}")
                break
            self._check()
            if self.events > most:
                open_tasks = [task.task_id for task in self.processes.watch.open_tasks()]
                self._break(Invariant.ENDS, " ".join(open_tasks), f"{self.events} events, and on")
        if end is not None:
            self.now = max(self.now, end)
            self._check()
        return self

    def _step(self, end: int | None) -> bool:
        """One event; False where there is none before `end`."""
        mail, tick = (
            self.queues.first(),
            self.processes.next_tick(self._ticked_at, bounded=end is not None),
        )
        comes = mail.visible_at if mail is not None else None
        at = min((at for at in (comes, tick) if at is not None), default=None)
        if at is None or (end is not None and at > end):
            return False
        self.now = max(self.now + LATENCY, at)
        self.events += 1
        if mail is not None and mail.visible_at == at:
            self._deliver(self._overtaking(mail))
        else:
            self._ticked_at = self.now
            self._make_pass()
        return True

    def _overtaking(self, mail: QueuedMessage) -> QueuedMessage:
        """Any of those that can be read may come first: a standard queue keeps no order."""
        if self.mishaps.overtakes and self.chance.random() < self.mishaps.overtakes:
            return self.chance.choice(self.queues.visible())
        return mail

    def _make_pass(self) -> None:
        number = self.chance.randrange(self._supervisors) if self._supervisors > 1 else 0
        self.trace.note(self.now, "supervisor {} makes a pass", number + 1)
        self._survives(lambda: self._pass(number), f"supervisor {number + 1}")

    def _pass(self, number: int) -> None:
        report = self.processes.make_pass(number, self.post)
        for task_id, reason in report.reasons:
            self.trace.note(self.now, "  {}: {}", task_id, reason)

    def _deliver(self, mail: QueuedMessage) -> None:
        if not self.queues.receive(mail):
            self.trace.note(self.now, "{} was read {} times and is dead", mail, MOST_RECEIVES)
            return
        self.trace.note(self.now, "{}", mail)
        if self._survives(lambda: self._handle(mail), mail):
            self._delete(mail)
        else:
            self.processes.handling_failed(mail)

    def _handle(self, mail: QueuedMessage) -> None:
        said = self.processes.handle(mail, self.post, self._application.read)
        self.trace.note(self.now, "  {}: {}", mail, said)

    def _delete(self, mail: QueuedMessage) -> None:
        if mail.queue != EFFECTS and self.chance.random() < self.mishaps.repeats:
            self.queues.delay(mail, some_delay(self.chance, self.mishaps.longest_delay))
            self.trace.note(self.now, "  {} will come once more", mail)
            return
        self.queues.delete(mail)

    def _survives(self, act: Callable[[], None], who: object) -> bool:
        """Whether an invocation came to its end; otherwise its message comes again."""
        try:
            act()
        except Crash as crash:
            self.trace.note(self.now, "  the process dies: {}", crash)
            return False
        except (TryAgain, CallRefused) as problem:
            self.trace.note(self.now, "  it comes again: {}", problem)
            return False
        except Exception as problem:  # noqa: BLE001  # whatever breaks it, it must not
            self._note_trouble(str(who), problem)
            return False
        return True

    def _note_hit(self, hit: Hit) -> None:
        self.processes.watch.looks.failed(self.now)
        self.trace.note(self.now, "  call {}, {}: {}", *hit)

    def _note_trouble(self, where: str, problem: Exception) -> None:
        self._cause = problem
        what = f"{type(problem).__name__}: {problem}"
        self.processes.watch.broken.append(Broken(Invariant.HANDLED, where, what))

    def _meet(self, name: str) -> None:
        """Before some call of a process, another one acts: they race."""
        if self._depth or self.faults.stopped or self.chance.random() >= self.mishaps.meetings:
            return
        ready = self.queues.visible()
        self._depth += 1
        try:
            self.trace.note(self.now, "  meanwhile, before {}:", name)
            if ready and self.chance.random() < 0.8:
                self._deliver(self.chance.choice(ready))
            else:
                self._make_pass()
        finally:
            self._depth -= 1

    def _post(self, queue: str, body: str, delay: int = 0, to: str = "") -> None:
        if queue != EFFECTS and self.chance.random() < self.mishaps.delays:
            delay += some_delay(self.chance, self.mishaps.longest_delay)
        self.queues.send(queue, body, delay=delay, to=to)

    def _send_order(self, body: str) -> None:
        self._post(ORDERS, body)

    def _send_command(self, body: str) -> None:
        self._post(COMMANDS, body)

    # --- holding it against the invariants ---------------------------------------------------

    def _check(self) -> None:
        watch = self.processes.watch
        watch.look(self.post.told)
        watch.broken += watch.looks.late(self.now)
        for task_id, problem in self.processes.troubles:
            if not isinstance(problem, CallRefused | TryAgain):
                self._note_trouble(task_id, problem)
        self.processes.troubles.clear()
        if watch.broken:
            raise InvariantBroken(watch.broken, self.seed, self.trace) from self._cause

    def _break(self, invariant: Invariant, task_id: str, what: str) -> None:
        raise InvariantBroken([Broken(invariant, task_id, what)], self.seed, self.trace)

    def check_all_ended(self) -> None:
        """Raises InvariantBroken where an order that was taken has not come to an end.

        Or where a failure was not told of.
        """
        for task in self.processes.watch.open_tasks():
            self._break(Invariant.ENDS, task.task_id, f"it is {task.state}")
        for group in self.processes.groups.groups():
            for broken in of_open(group):
                self._break(broken.invariant, broken.task_id, broken.what)

    # --- looking -----------------------------------------------------------------------------

    def task(self, order_id: str) -> Task:
        """The task's record as it is stored, or as it was when it was removed.

        Raises LookupError for an order that was never taken, with what was put aside.
        """
        if order_id not in self.processes.watch.tasks:
            aside = "".join(f"; put aside: {found}" for found in self.post.put_aside)
            waits = "; run() has it taken" if self.queues.waiting and not aside else ""
            name = order_id if TASK_ID.fullmatch(order_id) else repr(order_id)
            raise LookupError(f"{name} was never taken{aside}{waits}")
        return self.processes.watch.tasks[order_id]

    def history(self, order_id: str) -> list[HistoryRow]:
        """The rows of the task's history, oldest first."""
        return self.processes.store.history(order_id)

    def standing(self, order_id: str) -> list[str]:
        """The steps whose effects stand at the services, in the order in which they came about."""
        return [effect.step for effect in self.services.ledger.standing(order_id)]

    def statuses(self, order_id: str) -> list[Status]:
        """What the application was told of its order, repeated statuses included."""
        return [status for status in self.post.statuses if status.order_id == order_id]
