"""How messages come from the queues of a world to its functions, and what becomes of them."""

from collections.abc import Sequence
from functools import partial

from roundsman_testing.world.capacity import SCHEDULER, SimulatedInvocation, reader_of
from roundsman_testing.world.queues import EFFECTS, REPLIES, QueuedMessage
from roundsman_testing.world.simulated_stack import SimulatedStack
from roundsman_testing.world.versions import Version
from roundsman_testing.world.work import ProcessWork, WorkEnd

MOST_TOGETHER = 10
"""The most replies that one invocation of the scheduler gets: the template's batch size."""


class Deliveries:
    """Lets functions read messages and handle them, each in an invocation."""

    def __init__(self, stack: SimulatedStack, work: ProcessWork) -> None:
        self._stack = stack
        self._work = work

    def next(self) -> tuple[int | None, QueuedMessage | None]:
        """The message that is delivered next, and when (epoch ms): a function may be busy or down.

        Of the queues that one function reads, the message that was visible first goes first.
        """
        if not self._stack.functions.limited:
            mail = self._stack.queues.first()
            return (None if mail is None else mail.visible_at), mail
        heads = [(self._stack.functions.free_at(mail), mail) for mail in self._stack.queues.heads()]
        free = [(max(at, mail.visible_at), mail) for at, mail in heads if at is not None]
        return min(free, default=(None, None))

    def ready(self) -> list[QueuedMessage]:
        """The messages that are visible now and whose function can read them, earliest first."""
        visible = self._stack.queues.visible()
        if not self._stack.functions.limited:
            return visible
        heads = [(self._stack.functions.free_at(mail), mail) for mail in visible]
        return [mail for at, mail in heads if at is not None and at <= self._stack.clock.now]

    def deliver_in_turn(self, mail: QueuedMessage) -> None:
        """Deliver this message, or by chance another one that is ready."""
        self.deliver(self._stack.luck.first(mail, self.ready))

    def deliver(self, mail: QueuedMessage) -> None:
        """Let the function of the message read it, with others if it takes a batch."""
        function = reader_of(mail)
        capacity = self._stack.functions.capacity_of(function)
        most = [mail] if capacity else self._batch_with(mail)
        batch = [each for each in most if self._receive(each)]
        if capacity is not None and batch:
            others = self._stack.queues.next_of(mail, capacity.batch - 1)
            batch += [each for each in others if self._receive(each)]
        if not batch or self._stack.functions.throttles(function):
            return
        self._stack.functions.count(function, len(batch))
        run = SimulatedInvocation(function, batch, self._version(function))
        if capacity is None:
            self._handle_batch(run)
        else:
            self._stack.functions.begin(run, self._stack.clock.now)

    def deliver_alone(self, mail: QueuedMessage) -> None:
        """Let the newest version of the scheduler handle this message, if it is not dead."""
        if self._receive(mail):
            self._handle_batch(SimulatedInvocation(SCHEDULER, [mail], self._stack.versions.newest))

    def end(self, run: SimulatedInvocation) -> None:
        """Go on when an instance has taken its time, or when the calls of an agent have ended.

        A message that was read again in the meantime is not deleted, as in SQS.
        """
        if not run.calls:
            self._handle_batch(run)
            return
        for mail, receives in run.handled:
            if mail.receives == receives and not mail.gone:
                self._delete(mail)

    def _version(self, function: str) -> Version:
        """The code of an invocation that begins now: during a deployment, the old or the new."""
        if not self._stack.versions.two:
            return self._stack.versions.newest
        self._stack.post.agents = self._stack.versions.agents_with_queues(self._stack.clock.now)
        version = self._stack.versions.of_invocation(self._stack.clock.now)
        if version is not self._stack.versions.newest and function not in (SCHEDULER, EFFECTS):
            self._stack.note("  by the old version")
        return version

    def _receive(self, mail: QueuedMessage) -> bool:
        received = self._stack.queues.receive(mail)
        dead = f" was read {mail.receives} times and is dead"
        self._stack.note("{}{}", mail, "" if received else dead)
        return received

    def _batch_with(self, mail: QueuedMessage) -> list[QueuedMessage]:
        """The messages that one invocation gets: replies of one task that are visible together.

        Replies of other tasks in the batch would be handled as if they came alone. A reply that was
        received before comes alone as well.
        """
        others = [other for other in self._stack.queues.visible() if other.queue == REPLIES]
        if mail.queue != REPLIES or mail.receives or len(others) == 1:
            return [mail]
        task_id = self._stack.processes.task_of_reply(mail)
        if task_id is None:
            return [mail]
        others = [
            other
            for other in others
            if other is not mail
            and not other.receives
            and self._stack.processes.task_of_reply(other) == task_id
        ][: MOST_TOGETHER - 1]
        return [mail, *self._stack.luck.some_of(others)]

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
            task_id = self._stack.processes.task_of_reply(mail) if came_before == 1 else None
            groups.setdefault(task_id or mail.message_id, []).append(mail)
        for group in groups.values():
            ended = self._handle_group(group, run)
            if ended is WorkEnd.DIED:
                self._died(run)
                return
            if came_before > 1 and run.handled:
                self._delete(run.handled.pop()[0])
        if not (run.spent and self._stack.functions.calling(run, self._stack.clock.now)):
            for mail, _ in run.handled:
                self._delete(mail)

    def _handle_group(self, group: Sequence[QueuedMessage], run: SimulatedInvocation) -> WorkEnd:
        if len(group) > 1:
            return self._handle_together(group, run)
        ended = self._work.ends(partial(self._handle, group[0], run), group[0], group)
        if ended is WorkEnd.WELL:
            run.handled.append((group[0], group[0].receives))
        elif ended is WorkEnd.FAILED:
            self._stack.processes.handling_failed(group[0])
        return ended

    def _handle(self, mail: QueuedMessage, run: SimulatedInvocation) -> None:
        result = self._stack.processes.handle(mail, self._stack.post, run)
        self._stack.note("  {}: {}", mail, result)

    def _handle_together(self, batch: Sequence[QueuedMessage], run: SimulatedInvocation) -> WorkEnd:
        """Handle replies of one task in one invocation, which lives or dies for all of them."""
        results = list[str | Exception]()

        def handle() -> None:
            results.extend(self._stack.processes.handle_replies(batch, self._stack.post))

        ended = self._work.ends(handle, batch[0], batch)
        if ended is WorkEnd.DIED:
            return ended
        for number, mail in enumerate(batch):
            note = partial(self._note_result, mail, results[number] if results else None)
            if ended is WorkEnd.WELL and self._work.ends(note, mail, [mail]) is WorkEnd.WELL:
                run.handled.append((mail, mail.receives))
            else:
                self._stack.processes.handling_failed(mail)
        return ended

    def _note_result(self, mail: QueuedMessage, result: str | Exception | None) -> None:
        if isinstance(result, Exception):
            raise result
        self._stack.note("  {}: {}", mail, result)

    def _died(self, run: SimulatedInvocation) -> None:
        """Let all messages of an invocation come again, those that were handled before, too."""
        run.handled.clear()
        for mail in run.batch:
            if not mail.gone:
                self._stack.processes.handling_failed(mail)

    def _delete(self, mail: QueuedMessage) -> None:
        again = None if mail.queue == EFFECTS else self._stack.luck.again()
        if again is None:
            self._stack.queues.delete(mail)
            return
        self._stack.queues.delay(mail, again)
        self._stack.note("  {} will come once more", mail)
