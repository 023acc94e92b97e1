"""States made comparable: equal in all that can ever come of them, equal in value.

Nonces are named in one order throughout a state, a lock that no claim can have any more is just
that, and a message that cannot change anything ever again is taken away. That the engine does
nothing about such a reply is not taken for granted: it is asked, each time, whether it does no more
for it than for a Start, which may come at any time anyway.
"""

from collections.abc import Mapping, Set
from dataclasses import replace
from functools import cache

from roundsman.model.states import ProcessState
from roundsman.model.task import PERFORM, UNDO, Task, idempotency_key, step_of
from tests.exploration.answers import ANSWERS
from tests.exploration.canonical import FRESH, NAMES, T0, Key, Records, name_of, token_of
from tests.exploration.shells import TASK_ID, Shells
from tests.exploration.state import START, Mail, Read, State

STALE = "stale"
CALLS = ("request", "token")
"""What somebody may still act on: a request, or a token that somebody outside was given."""

OVER = {
    PERFORM: (ProcessState.PROCESSED, ProcessState.SKIPPED),
    UNDO: (ProcessState.UNDONE,),
}
"""States that a step leaves for another operation or another round only, where no result of the
one before counts."""


class Settling:
    """Makes the states of one model comparable."""

    def __init__(
        self, records: Records, shells: Shells, fenced: frozenset[str], answers: Set[str]
    ) -> None:
        """`fenced` are the steps whose service fences late performs, `answers` all outcomes."""
        self._records = records
        self._shells = shells
        self._fenced = fenced
        self._answers = sorted(answers)
        self._ignored: dict[tuple[int, Mail], bool] = {}

    def settled(
        self, state: State, names: Mapping[str, str] | None = None, *, keeps: bool = False
    ) -> State:
        """The state that stands for all like it.

        `names` are the present record's nonces, as they were called in the rest of the state. With
        `keeps`, a reading that is out of date stays one.
        """
        if names is None:
            names = {name: name for name in self._records.names(state.record)}
        mail, reads = (list(state.mail), state.reads) if keeps else self._current(state)
        mail = self._without_lost_locks(state, mail, reads, names)
        mapping = dict(names)
        for read in reads:
            for name in (read.job.name, *self._records.names(read.record)):
                if name not in mapping:
                    mapping[name] = NAMES[len(set(mapping.values()))]
        mail = _named(mail, mapping)
        reads = tuple(
            read._replace(
                job=read.job._replace(name=mapping[read.job.name], lock=_lock(read.job, mapping)),
                record=self._records.renamed(read.record, mapping),
            )
            for read in reads
        )
        kept = [m for m in mail if not self._is_dead(state, m)]
        return state._replace(
            mail=tuple(sorted(kept)),
            reads=tuple(sorted(reads)),
            closed=self._still_closed(state, mapping),
        )

    def _still_closed(self, state: State, mapping: Mapping[str, str]) -> frozenset[str]:
        """Of a claim that is no longer the step's, no request is ever sent again."""
        if not state.closed:
            return state.closed
        keys = {closed for closed in state.closed if "/" in closed}
        locks = state.closed - keys
        named = {token_of(mapping[n], t) for t in locks if (n := name_of(t)) in mapping}
        return frozenset(keys | named & self._records.locks(state.record))

    def broken(self, state: State) -> str | None:
        """Whether the engine would heed a reply that is none of its business any more.

        Such a reply is taken away as long as nothing would come of it.
        """
        for mail in state.mail:
            if mail.kind != "reply" or not _is_past(self._records.tasks[state.record], mail):
                continue
            if not self._is_no_more_than_a_start(state.record, mail._replace(name=FRESH)):
                return "a reply to an earlier claim, operation or round changes nothing"
        return None

    def _current(self, state: State) -> tuple[list[Mail], tuple[Read, ...]]:
        """A process whose reading is out of date begins again: its message is in its queue."""
        mail, reads = list(state.mail), []
        for read in state.reads:
            if read.behind and not read.committed and self._shells.outdated(state.record, read):
                mail.append(read.job)
            else:
                reads.append(read)
        return [m for m in mail if m.kind != "pass"], tuple(reads)

    def _without_lost_locks(
        self, state: State, mail: list[Mail], reads: tuple[Read, ...], names: Mapping[str, str]
    ) -> list[Mail]:
        """A lock that no claim has is given to none: only that it is no claim's is of interest."""
        current = self._records.locks(state.record)
        seen = {lock for read in reads for lock in self._records.locks(read.record)}

        def is_anyones(m: Mail) -> bool:
            name = name_of(m.lock)
            if name in names and token_of(names[name], m.lock) in current:
                return True
            return token_of(name, m.lock) in seen

        # Where it was proved that nothing happened, a request of that claim can say no more.
        kept = [
            m for m in mail if m.kind != "request" or m.lock not in state.closed or is_anyones(m)
        ]
        return [m if not m.lock or is_anyones(m) else m._replace(lock=STALE) for m in kept]

    def _is_dead(self, state: State, mail: Mail) -> bool:
        """Whether nothing can come of the message any more, whatever happens."""
        if mail.kind == "reply":
            return mail.name == FRESH and self._never_counts(state.record, mail)
        if mail.until and mail.until <= T0:
            return True
        if mail.kind not in CALLS or (mail.until and mail.kind == "request"):
            return False
        perform_key = mail.key.replace(f"/{UNDO}", f"/{PERFORM}")
        stands, spent = (mail.step, perform_key) in state.standing, perform_key in state.spent
        if mail.operation == PERFORM and step_of(mail.step) in self._fenced and spent:
            outcome = "permanent" if mail.kind == "request" else "no"
            return self._never_counts(state.record, _answer(mail, outcome))
        is_done = stands if mail.operation == PERFORM else spent and not stands
        if not is_done:
            return False
        replies = (_answer(mail, outcome) for outcome in self._answers)
        return all(self._never_counts(state.record, reply) for reply in replies)

    def _never_counts(self, record: int, reply: Mail) -> bool:
        key = record, reply
        found = self._ignored.get(key)
        if found is None:
            task = self._records.tasks[record]
            found = _is_past(task, reply) and self._is_no_more_than_a_start(record, reply)
            self._ignored[key] = found
        return found

    def _is_no_more_than_a_start(self, record: int, reply: Mail) -> bool:
        ran = self._shells.run(record, reply)
        return not ran.effects or ran == self._shells.run(record, START)


def _is_past(task: Task, reply: Mail) -> bool:
    """Whether the reply is about a claim, an operation or a round that never comes again."""
    record = task.step(reply.step)
    keys = {idempotency_key(TASK_ID, reply.step, reply.operation, record)}
    if reply.operation == UNDO:  # it goes back through all agents that were tried
        keys |= {
            idempotency_key(TASK_ID, reply.step, UNDO, replace(record, agent=agent))
            for agent in (None, *record.tried)
            if record.tried
        }
    if reply.key not in keys:
        return True
    if record.wait_ended_at is not None and ANSWERS[reply.outcome].callback:
        return False  # the first answer is recorded
    if record.operation != reply.operation and reply.operation == PERFORM:
        return True
    if not ANSWERS[reply.outcome].reports_an_effect:
        return reply.lock == STALE
    return record.process_state in OVER[reply.operation]


@cache
def _answer(request: Mail, outcome: str) -> Mail:
    return request._replace(kind="reply", until=0, outcome=outcome)


def _named(mail: list[Mail], mapping: dict[str, str]) -> list[Mail]:
    """The messages in an order that no name decides, with names that follow from it.

    The name of a message that was handled before is kept where a lock has it: the message knows
    then which claims were its own. Without one, a Start or an Inspect is like any other.
    """
    locks = {name_of(m.lock) for m in mail if m.lock}
    kept = {m.name for m in mail if m.name in locks or m.name in mapping} - {FRESH}
    alive = kept | mapping.keys()
    if kept:
        mail = [m for m in mail if m.name in kept or m.kind not in ("start", "inspect")]
        mail.sort(key=lambda m: _unnamed(m, mapping, alive))
        for m in mail:
            if m.name in kept and m.name not in mapping:
                mapping[m.name] = NAMES[len(set(mapping.values()))]
    else:
        mail = [m for m in mail if m.kind not in ("start", "inspect")]
    return [_renamed(m, mapping, kept) for m in mail]


def _unnamed(m: Mail, mapping: Mapping[str, str], alive: Set[str]) -> Key:
    name = name_of(m.lock)
    lock = mapping.get(name, "~" if name in alive else STALE) if m.lock else ""
    return m[:4], m.until, m.outcome, mapping.get(m.name, "~"), lock


def _renamed(m: Mail, mapping: Mapping[str, str], kept: Set[str]) -> Mail:
    name = mapping[m.name] if m.name in kept else FRESH
    lock = _lock(m, mapping)
    return m if m.name == name and m.lock == lock else m._replace(name=name, lock=lock)


def _lock(m: Mail, mapping: Mapping[str, str]) -> str:
    """The lock under the present names; one that nobody can have any more is just that."""
    if not m.lock:
        return ""
    name = name_of(m.lock)
    return token_of(mapping[name], m.lock) if name in mapping else STALE
