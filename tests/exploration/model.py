"""One task, its messages, its processes and its remote services: every state, and what may follow.

The engine is real (`shells`), the world around it is modelled here:

- a message is delivered at any time and in any order, or never, where it is asked for also two
  replies to one process at once; while the budget for it lasts, also
  without being acknowledged, and then it comes again;
- a Start and an Inspect may come at any time, sent or not: more than the real ones can do, and
  nothing about them need be remembered;
- an agent's call lands at any time: with effect and answer, with effect and its answer lost, with
  an answer that it failed, or refused for good. Where the service does not fence late performs, it
  lands before complete-by and the skew of clocks are over, which is all that the design asks for;
- where somebody outside is asked, who has the token may answer at any time, Yes or No, or never;
  a reminder of that is sent, and its agent does not reply;
- an agent is held, and takes work again, at any time, and a plan cannot be read;
- a service finds an effect by its key for as long as its workflow says, from when that was first
  sent; after that, an undo finds nothing, and says that it is done;
- a person says what is true when it is heard: that an effect stands, or that none does;
- a process dies after any call that had an effect, while the budget lasts;
- schedulers and supervisors read, and act on what they read while others act in between;
- where it is asked for, a scheduler's first read finds what was there before the last write, a
  supervisor looks at a task that an old index shows as due, and the scheduler is behind;
- time goes on to the next instant that anything depends on, whatever else might have happened.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import TypeVar

from roundsman.definition.plan import Plan
from roundsman.engine.due import Lane
from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.model.events import OperatorEvent, Resolve
from roundsman.model.instants import SKEW
from roundsman.model.situations import WithoutAgent
from roundsman.model.task import PERFORM, REJECTION, UNDO, Task, idempotency_key, step_of
from roundsman.wire.messages import AgentRequest
from tests.exploration.answers import ENDINGS
from tests.exploration.canonical import FRESH, NAMES, T0, Records, name_of, token_of
from tests.exploration.course import Course
from tests.exploration.explorer import Breaks
from tests.exploration.rules import GIVEN_ONCE, Rules
from tests.exploration.settling import CALLS, STALE, Settling
from tests.exploration.shells import TASK_ID, Defect, Fault, Ran, Shells, World
from tests.exploration.state import INSPECT, KEPT, PASS, START, Batch, Mail, Read, State, in_words

REPLY_TO = "https://queue.example/replies"
HELD_FOR = 60_000
"""How long a process may sit on what it read: longer than any of the functions may run."""

MOST_AT_ONCE = 2
"""Decisions in one write: an inspection, and the Start that follows from it; or two replies."""

WRITES = frozenset({"save", "clear_owed", "rearm"})

COUNTED = "an attempt whose reply waits is not counted"
UNPROVED = "while the scheduler is behind, one look at its queue is no proof that no reply waits"

USUAL = ("done", "answer lost", "unavailable", "refused")
OUTSIDE = ("yes", "yes, and it is lost", "no")
WITHIN = 60_000
"""How long an agent says that somebody outside has."""


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A plan, what may go wrong with it, and how often.

    `repeats` messages come again without being acknowledged, and `crashes` processes die. With
    `copies`, so many requests are read once more though they were answered, and `repeats` is of
    other messages alone.
    `schedulers` and `supervisors` are how many of them may have read and not yet written at once;
    with none, each acts in one piece. `commands` are what a person asks, each once at most.
    `near_end` says that the task's own complete-by is within reach. `tick` is the most ms that
    pass at once, where things are to happen between the instants that matter, too. Each of the
    agents `held` may be held, `holds` times in all; `loses_plan`: it may not be found at any time.
    `outcomes`: what is known of effects is part of a state, see `Records`. `together`: two replies
    may be handed to one process at once, which stores them by one write if it can. `looks`: a
    process can read whether replies wait, and an attempt whose reply waits is never counted.
    `behind`: any process may find that commands wait for the scheduler, and have waited long.
    `stale`: any eventually consistent read may find what was there before the last write: the
    first read of a message, and the entries of what is due. Not with processes in pieces.
    """

    plan: Plan
    waits: int = 0
    """The longest wait between two attempts in ms, where it is long."""
    endings: tuple[str, ...] = USUAL
    undo_endings: tuple[str, ...] = USUAL
    repeats: int = 0
    copies: int = 0
    crashes: int = 0
    schedulers: int = 0
    supervisors: int = 0
    commands: Mapping[str, OperatorEvent] = field(default_factory=dict)
    near_end: bool = False
    tick: int | None = None
    held: tuple[str, ...] = ()
    holds: int = 0
    loses_plan: bool = False
    outcomes: bool = False
    together: bool = False
    looks: bool = False
    behind: bool = False
    stale: bool = False


class TaskModel:
    """The model of a configuration. A configuration's model is used for one exploration."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        endings = (*configuration.endings, *configuration.undo_endings)
        self.records = Records(
            configuration.plan,
            near_end=configuration.near_end,
            outcomes=configuration.outcomes,
            looks=configuration.looks,
            holds=bool(configuration.held)
            or any(ENDINGS[e].says.startswith("held") for e in endings),
            awaits="done, and adds what it may not" in configuration.endings,
        )
        # Where the task's end is within reach, no time is given back: each amount would be a state.
        self.shells = Shells(
            self.records, configuration.commands, credits=not configuration.near_end
        )
        self._rules = Rules(self.records)
        self.course = Course(self)
        steps = {**configuration.plan.steps, **configuration.plan.kinds}
        self._lifetimes = {
            name: step.key_lifetime
            for name, step in steps.items()
            if step.compensation is not None and step.key_lifetime is not None
        }
        self._fenced = frozenset(name for name, step in steps.items() if step.fences_late_performs)
        answers = {
            ENDINGS[ending].says
            for ending in (*configuration.endings, *configuration.undo_endings, *OUTSIDE, "fenced")
        }
        self._settling = Settling(self.records, self.shells, self._fenced, answers - {""})

    def start(self) -> State:
        """The task is stored and nothing has happened to it."""
        task = new_task(
            self.configuration.plan, TASK_ID, ProcessingOptions(reply_to=REPLY_TO), T0, shards=1
        )
        owes_nothing = replace(task, owed=())  # `received` is submission's to send
        number, _ = self.records.canonical(owes_nothing, T0)
        budget = self.configuration
        return State(
            record=number,
            mail=(),
            standing=frozenset(),
            spent=frozenset(),
            reported=frozenset(),
            reads=(),
            repeats=budget.repeats,
            copies=budget.copies,
            crashes=budget.crashes,
            commands=frozenset(budget.commands),
            holds=budget.holds,
            held=frozenset(),
            closed=frozenset(),
        )

    def broken(self, state: State) -> str | None:
        """The invariant that does not hold."""
        try:
            return (
                self._rules.broken(state)
                or self._settling.broken(state)
                or self.course.broken(state)
            )
        except Defect as problem:
            return str(problem)

    def in_words(self, state: State) -> str:
        """The record, what is on its way and what stands, in a line."""
        return in_words(self.records, state)

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Everything that may happen next."""
        try:
            for job, rest in self._jobs(state):
                yield from self._done(state, job, rest, self.world(state))
                if self.configuration.behind:
                    yield from self._found_behind(state, job, rest)
            if self.configuration.stale:
                yield from self._looked_too_early(state)
                yield from self._read_too_early(state)
            yield from self._done_together(state)
            yield from self._read(state)
            yield from self._acted_on(state)
            yield from self._landed(state)
            yield from self._held(state)
            yield from self._later(state)
        except Defect as problem:
            raise Breaks(str(problem)) from problem

    def world(self, state: State) -> World:
        """What a process finds besides the record."""
        if not self.configuration.looks:
            return World(state.held)
        return World(state.held, replies_wait=any(mail.kind == "reply" for mail in state.mail))

    # --- Processes ---------------------------------------------------------------------------

    def handled(self, state: State, job: Mail, rest: State) -> State:
        """A process reads, decides, writes, sends and acknowledges, in one piece."""
        ran = self.shells.run(state.record, job, world=self.world(state))
        return self._after(rest, ran)

    def _jobs(self, state: State) -> Iterator[tuple[Mail, State]]:
        """What a process could take up, and the state without it."""
        task = self.records.tasks[state.record]
        if task.lane.startswith(Lane.OPEN) and task.due_at <= T0:
            yield PASS, state
        yield START, state
        yield INSPECT, state
        for name in sorted(state.commands):
            after = by_hand(task, state, self.configuration.commands[name])
            if after is None:
                continue
            job = Mail("command", name)
            if after is not state and not self.shells.run(state.record, job).effects:
                after = state  # a person who is refused, because it is too early, did nothing
            yield job, after._replace(commands=state.commands - {name})
        for mail in dict.fromkeys(state.mail):
            if mail.kind not in CALLS:
                yield mail, without(state, mail)

    def _done(
        self, state: State, job: Mail, rest: State, world: World, read: Read | None = None
    ) -> Iterator[tuple[str, State]]:
        """Well; or not acknowledged; or dead after any of its effects; or one of them failed."""
        ran = self.shells.run(state.record, job, read=read, world=world)
        self._check_replies_count(rest, job, ran, world)
        who = _who(job if read is None else read.job._replace(name=FRESH))
        if self.configuration.loses_plan:
            lost = self.shells.run(
                state.record, job, read=read, world=world._replace(has_plan=False)
            )
            if not lost.comes_again and (lost.effects or job.kind == "command"):
                yield f"{who}, and finds no plan", self._after(rest, lost)
        if ran.effects or rest.mail != state.mail or read is not None:
            yield who, self._after(rest, ran)
        if ran.effects and state.repeats and job is not PASS:
            kept = _kept(rest._replace(repeats=state.repeats - 1), job)
            yield f"{who}, and does not acknowledge it", self._after(kept, ran)
        for number, effect in enumerate(ran.effects, 1) if state.crashes else ():
            kept = rest._replace(crashes=state.crashes - 1)
            cut = self.shells.run(state.record, job, Fault(after=number), read, world)
            died = f"{who}, and dies after {effect} ({number} of {len(ran.effects)})"
            yield died, self._after(_kept(kept, job), cut)
            if effect in ("alert", "status", REJECTION):
                failed = self.shells.run(state.record, job, Fault(fails=number), read, world)
                yield f"{who}, and cannot send the {effect}", self._after(kept, failed)

    def _check_replies_count(self, state: State, job: Mail, ran: Ran, world: World) -> None:
        """Raise Breaks if an attempt is given up although its reply waits in the queue, or may."""
        if not self.configuration.looks or job not in (PASS, START, INSPECT):
            return
        before, after = self.records.tasks[state.record], self.records.tasks[ran.record]
        if before.ending is not None:
            return  # the step is undone, whatever its reply says
        waits = {(mail.step, mail.lock) for mail in state.mail if mail.kind == "reply"}
        for name, record in before.steps.items():
            if not record.under_way or after.step(name).under_way:
                continue
            if (name, record.locked_by) in waits:
                raise Breaks(COUNTED)
            if world.behind:
                raise Breaks(UNPROVED)

    def _found_behind(self, state: State, job: Mail, rest: State) -> Iterator[tuple[str, State]]:
        """A process that finds that messages wait for the scheduler, where that matters to it."""
        world = self.world(state)
        behind = world._replace(behind=True)
        ran = self.shells.run(state.record, job, world=behind)
        self._check_replies_count(rest, job, ran, behind)
        if ran != self.shells.run(state.record, job, world=world):
            for cause, after in self._done(state, job, rest, behind):
                yield f"{cause}, as the scheduler is behind", after

    def _looked_too_early(self, state: State) -> Iterator[tuple[str, State]]:
        """A supervisor looks at an entry that was due before the last write."""
        world = self.world(state)._replace(old_entry=True)
        for cause, after in self._done(state, PASS, state, world):
            yield f"{cause}, at an old entry", after

    def _read_too_early(self, state: State) -> Iterator[tuple[str, State]]:
        """A process writes, and the first read for the next message finds what was there before."""
        for job, rest in self._jobs(state):
            ran = self.shells.run(state.record, job, world=self.world(state))
            if not WRITES.intersection(ran.effects):
                continue
            for following, left in self._jobs(rest):
                if following is PASS or _is_resolve(self.configuration, following):
                    continue  # a supervisor's read is the latest; what a person says may be no more
                name = _unused(left) if following.name == FRESH else following.name
                read = Read(following._replace(name=name), state.record)
                written = self._after(left._replace(reads=(*left.reads, read)), ran, keeps=True)
                for stale in written.reads:
                    others = written._replace(reads=_without(written.reads, stale))
                    world = self.world(others)._replace(stale=True)
                    for cause, after in self._done(written, stale.job, others, world, stale):
                        yield f"{_who(job)}; {cause}, by a stale read", after

    def _done_together(self, state: State) -> Iterator[tuple[str, State]]:
        """Two replies that were not handled before, by one process; it lives or dies for both."""
        if not self.configuration.together:
            return
        fresh = [mail for mail in state.mail if mail.kind == "reply" and mail.name == FRESH]
        for first, other in dict.fromkeys(permutations(fresh, 2)):
            rest = without(without(state, first), other)
            second = other._replace(name=_unused(state))
            batch, world = Batch(first, second), self.world(state)
            ran = self.shells.run(state.record, batch, world=world)
            who = f"{_who(first)}, and with it {second.step}'s {second.outcome}"
            yield who, self._after(rest, ran)
            back = (first._replace(name=KEPT), second)
            if ran.effects and state.repeats:
                kept = rest._replace(repeats=state.repeats - 1, mail=(*rest.mail, *back))
                yield f"{who}, and acknowledges none", self._after(kept, ran)
            for number, effect in enumerate(ran.effects, 1) if state.crashes else ():
                kept = rest._replace(crashes=state.crashes - 1, mail=(*rest.mail, *back))
                cut = self.shells.run(state.record, batch, Fault(after=number), world=world)
                died = f"{who}, and dies after {effect} ({number} of {len(ran.effects)})"
                yield died, self._after(kept, cut)

    def _read(self, state: State) -> Iterator[tuple[str, State]]:
        """A process reads the record, and others may act before it does."""
        room = {
            True: self.configuration.supervisors,
            False: self.configuration.schedulers,
        }
        if not any(room.values()):
            return
        for read in state.reads:
            room[read.job.kind == "pass"] -= 1
        for job, rest in self._jobs(state):
            if room[job is PASS] > 0 and self.shells.run(state.record, job).effects:
                in_hand = job._replace(name=_unused(state)) if job.name == FRESH else job
                reads = (*state.reads, Read(in_hand, state.record))
                yield f"{_who(job)}: reads", self._settled(rest._replace(reads=reads))

    def _acted_on(self, state: State) -> Iterator[tuple[str, State]]:
        for read in dict.fromkeys(state.reads):
            rest = state._replace(reads=_without(state.reads, read))
            for cause, after in self._done(state, read.job, rest, self.world(state), read):
                yield f"{cause}, on what it read", after
            ran = self.shells.run(state.record, read.job, read=read)
            if not read.committed and ran.effects[:1] == ("save",) and len(ran.effects) > 1:
                cut = self.shells.run(state.record, read.job, Fault(after=1), read)
                committed = read._replace(committed=True)
                after = self._after(rest._replace(reads=(*rest.reads, committed)), cut)
                who = _who(read.job._replace(name=FRESH))
                yield f"{who}, on what it read, and has yet to send", after

    def _after(self, rest: State, ran: Ran, *, keeps: bool = False) -> State:
        """What a run has left, with what it sent; `keeps`: also with what is read and outdated."""
        rest = _without_locks_given_anew(rest, ran)
        ended = self.records.tasks[ran.record].ended
        reported = rest.reported if ended and not ran.ends_anew else frozenset[str]()
        # Of a reminder nothing comes: its agent does not reply.
        asked = [request for request in ran.requests if request.reminder is None]
        sent = tuple(self._mail(request, ran.now) for request in asked)
        after = rest._replace(
            record=ran.record,
            mail=rest.mail + sent,
            reported=reported | ran.reports if ended else reported,
            reads=tuple(_behind(read, ran.decisions) for read in rest.reads),
            found_until=self._found_until(rest, asked),
        )
        names = dict(ran.names)
        if FRESH in names:
            names[KEPT] = names[FRESH]
        return self._settling.settled(after, names, keeps=keeps)

    def _found_until(
        self, state: State, asked: Iterable[AgentRequest]
    ) -> frozenset[tuple[str, int]]:
        """Until when each key is found, if its service may have stored it when it was sent."""
        known = {key for key, _ in state.found_until}
        new = {
            (request.idempotency_key, T0 + self._lifetimes[step_of(request.step)])
            for request in asked
            if request.operation == PERFORM and step_of(request.step) in self._lifetimes
        }
        return state.found_until | {(key, until) for key, until in new if key not in known}

    def _mail(self, request: AgentRequest, now: int) -> Mail:
        ends_by = request.complete_by - now + T0
        if request.operation == UNDO:
            until = ends_by if step_of(request.step) in self._lifetimes else 0
        else:
            until = ends_by + SKEW if self._lands_in_time(request.step) else 0
        return Mail(
            "request",
            request.step,
            request.operation,
            request.idempotency_key,
            request.lock,
            until,
        )

    def _lands_in_time(self, step: str) -> bool:
        """Whether no call lands after its request's end. Where it is fenced, one may hang."""
        if step_of(step) in self._lifetimes:
            return True  # a service that forgets keys cannot fence a call that hangs for longer
        return self.records.is_bounded(step) and step_of(step) not in self._fenced

    # --- Agents and their services -----------------------------------------------------------

    def _landed(self, state: State) -> Iterator[tuple[str, State]]:
        for request in dict.fromkeys(state.mail):
            if request.kind not in CALLS:
                continue
            rest = without(state, request)
            again = self._read_again(state)
            for ending in self.endings(state, request):
                what = f"{request.step}: {request.operation}: {ending}"
                yield what, self.answered(rest, request, ending)
                if again is not None and request.kind == "request":
                    yield f"{what}; not acknowledged", self.answered(again, request, ending)

    def _read_again(self, state: State) -> State | None:
        """The state with one less of the copies of requests that may still come."""
        if state.copies:
            return state._replace(copies=state.copies - 1)
        if state.repeats and not self.configuration.copies:
            return state._replace(repeats=state.repeats - 1)
        return None

    def endings(self, state: State, request: Mail) -> Iterable[str]:
        """How the call may end."""
        outside = request.kind == "token"
        if request.lock in state.closed:  # its outcome is known, and the same is replied
            return [name for name in self.configuration.endings if ENDINGS[name].proves]
        if request.operation == UNDO:
            return self.configuration.undo_endings
        spent = request.key in state.spent
        if spent and step_of(request.step) in self._fenced:
            return ("no, since it was undone",) if outside else ("fenced",)
        if outside and request.key in state.closed:
            return ("no",)
        found = OUTSIDE if outside else self.configuration.endings
        stands = (request.step, request.key) in state.standing  # the service knows the key
        return [
            name
            for name in found
            if not (stands and ENDINGS[name].refuses)
            and not ((stands or spent) and ENDINGS[name].proves)
            and not (request.outcome and ENDINGS[name].goes_on)
        ]

    def answered(self, rest: State, request: Mail, ending: str) -> State:
        """The state after the call, and with its answer on its way."""
        end = ENDINGS[ending]
        standing, spent, closed = rest.standing, rest.spent, rest.closed
        if end.acts and request.operation == PERFORM:
            forgotten = request.key in _forgotten(rest)
            # It is performed once more, and nobody knows of it.
            standing |= {(request.step, f"{request.key} again" if forgotten else request.key)}
        elif end.acts and (perform_key := _perform_key(request)) not in _forgotten(rest):
            standing -= {(request.step, perform_key)}
            spent |= {perform_key}
        mail = rest.mail
        if end.proves:
            closed |= {request.lock}
            mail = tuple(m for m in mail if m.kind not in CALLS or m.key != request.key)
        if request.kind == "token" and end.refuses:
            closed |= {request.key}
        if end.goes_on:
            mail = (*mail, request._replace(outcome=end.says))
        until = T0 + WITHIN if end.asks else 0
        if end.asks:
            acts_until = until + SKEW if self._lands_in_time(request.step) else 0
            mail = (*mail, request._replace(kind="token", until=acts_until, outcome=""))
        if end.says:
            mail = (*mail, request._replace(kind="reply", until=until, outcome=end.says))
        after = rest._replace(mail=mail, standing=standing, spent=spent, closed=closed)
        return self._settled(after)

    def _held(self, state: State) -> Iterator[tuple[str, State]]:
        for agent in self.configuration.held:
            if agent in state.held:
                yield f"{agent} takes work again", state._replace(held=state.held - {agent})
            elif state.holds:
                held = state.held | {agent}
                yield f"{agent} is held", state._replace(held=held, holds=state.holds - 1)

    # --- Time --------------------------------------------------------------------------------

    def _later(self, state: State) -> Iterator[tuple[str, State]]:
        by = self.to_next_instant(state)
        if self.configuration.tick is not None:
            by = min(by, self.configuration.tick)
        if by and all(read.age + by <= HELD_FOR for read in state.reads):
            yield f"{by / 1000:g} s pass", self.later(state, by)

    def to_next_instant(self, state: State) -> int:
        """How many ms it is to the next instant that anything depends on; 0 where there is none."""
        instants = self.records.instants(state.record)
        instants |= {mail.until for mail in state.mail if mail.until > T0}
        instants |= {until for _, until in state.found_until if until > T0}
        return min(instants, default=T0) - T0

    def later(self, state: State, by: int) -> State:
        """The state when `by` ms have passed, and nothing else has happened."""
        record, names = self.records.canonical(self.records.tasks[state.record], T0 + by)
        mail = tuple(_later(m, by) if m.until else m for m in state.mail)
        reads = tuple(read._replace(age=read.age + by) for read in state.reads)
        found = frozenset((key, max(until - by, T0)) for key, until in state.found_until)
        after = state._replace(record=record, mail=mail, reads=reads, found_until=found)
        return self._settled(after, names)

    def _settled(self, state: State, names: Mapping[str, str] | None = None) -> State:
        return self._settling.settled(state, names)


T = TypeVar("T")


def without(state: State, mail: Mail) -> State:
    """The state without one such message."""
    return state._replace(mail=_without(state.mail, mail))


def _without(items: tuple[T, ...], item: T) -> tuple[T, ...]:
    place = items.index(item)
    return items[:place] + items[place + 1 :]


def _later(mail: Mail, by: int) -> Mail:
    """The message when so much has passed; a wait that is over is over."""
    until = mail.until - by
    return mail._replace(until=max(until, T0) if mail.kind == "reply" else until)


def _perform_key(undo: Mail) -> str:
    return undo.key.replace(f"/{UNDO}", f"/{PERFORM}")


def _forgotten(state: State) -> set[str]:
    """The keys under which a service finds nothing any more, so that an undo undoes nothing."""
    return {key for key, until in state.found_until if until <= T0}


def by_hand(task: Task, state: State, event: OperatorEvent) -> State | None:
    """The state in which a person can truthfully report that; None where there is none.

    Who says of an undo that it happened has made it by hand, as the service itself would.
    """
    if not isinstance(event, Resolve):
        return state
    record = task.step(event.step)
    if isinstance(record.situation, WithoutAgent):
        return state  # who ends such a wait says nothing about effects
    stands = any(step == event.step for step, _ in state.standing)
    if record.operation == PERFORM:
        return state if stands == event.did else None
    key = idempotency_key(task.task_id, event.step, PERFORM, record)
    standing = state.standing - {(event.step, key)}
    return state._replace(standing=standing, spent=state.spent | {key}) if event.did else None


def _without_locks_given_anew(state: State, ran: Ran) -> State:
    """A lock that differs in its version alone is another. Raises Breaks where one is not."""
    if not ran.claims:
        return state
    given = {(step, token_of(name_of(lock), lock)) for step, lock in ran.claims}

    def with_its_lock(mail: Mail) -> Mail:
        if (mail.step, mail.lock) in ran.claims:
            raise Breaks(GIVEN_ONCE)
        return mail._replace(lock=STALE) if (mail.step, mail.lock) in given else mail

    return state._replace(
        mail=tuple(map(with_its_lock, state.mail)),
        reads=tuple(read._replace(job=with_its_lock(read.job)) for read in state.reads),
        closed=state.closed - {lock for _, lock in given},
    )


def _kept(state: State, job: Mail) -> State:
    """The message comes again; of a pass there is none."""
    if job.kind == "pass":
        return state
    again = job._replace(name=KEPT) if job.name == FRESH else job
    return state._replace(mail=(*state.mail, again))


def _behind(read: Read, decisions: int) -> Read:
    """Of a decision that is stored only whether another came after it is of interest."""
    behind = read.behind + decisions
    return read._replace(behind=min(behind, MOST_AT_ONCE + 1) if read.committed else behind)


def _is_resolve(configuration: Configuration, job: Mail) -> bool:
    return job.kind == "command" and isinstance(configuration.commands[job.step], Resolve)


def _unused(state: State) -> str:
    """A name for a message that is handled for the first time, and not at once."""
    taken = {read.job.name for read in state.reads}
    return next(name for name in reversed(NAMES) if name not in taken)


def _who(job: Mail) -> str:
    if job.kind == "pass":
        return "a supervisor looks"
    known = "" if job.name == FRESH else " again"
    if job.kind == "reply":
        return f"the scheduler gets{known} {job.step}'s {job.operation} reply: {job.outcome}"
    if job.kind == "command":
        return f"the scheduler gets{known} {job.step}"
    return f"the scheduler gets{known} {job.kind}"
