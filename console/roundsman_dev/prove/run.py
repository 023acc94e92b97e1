"""The course of a proof: deploy, send, make faults, wait until everything has ended, and read."""

import json
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from roundsman.aws.errors import aws_errors
from roundsman.errors import TryAgain
from roundsman_console.aws.stack import DeployedStack, find_stack
from roundsman_console.base import clock
from roundsman_console.base.errors import InspectorError
from roundsman_console.base.release import release
from roundsman_dev.prove.application.orders import ProofOrder, order_id
from roundsman_dev.prove.deployment import ProofProject
from roundsman_dev.prove.document import (
    Circumstances,
    MadeFault,
    ProofDocument,
    SentOrder,
)
from roundsman_dev.prove.faults import FAULTS, Means, made
from roundsman_dev.prove.price import read_spent
from roundsman_dev.prove.project import project_files, template_hashes
from roundsman_dev.prove.reading import Numbers, read_document, read_numbers, read_queues
from roundsman_dev.prove.removal import ProofRecord, note_resources

OPEN = 200
"""The most orders that are open at once. The agent with the most work is behind by two minutes
then, and every order can end within the time of its workflow."""

AT_ONCE = 10
"""The most events that SQS takes in one call."""

COPIES_OF = 10
"""Every so many orders, one is sent a second time."""

NOT_BILLED = "a local AWS bills nothing"

SEND_TRIES = 5
BETWEEN_LOOKS = 5.0  # seconds

QUIET_WITHIN = 420.0
"""How long, in seconds, messages may still be hidden when every order has ended: longer than a
request is hidden whose agent's process has died."""


def new_run() -> str:
    """Return a name for a proof that no other has: `prove-1a2b3c`."""
    return f"prove-{secrets.token_hex(3)}"


@dataclass(kw_only=True)
class Proof:
    """One proof. `course` goes through it once."""

    project: ProofProject
    record: ProofRecord
    orders: int
    """How many orders are sent."""
    within: float
    """The most seconds from the first order until all have ended."""
    progress: Callable[[str], None]
    sent: list[SentOrder] = field(default_factory=list)
    faults: list[MadeFault] = field(default_factory=list)
    began_at: int = 0
    ended: int = 0
    """How many orders had ended when they were last counted."""

    def course(self) -> ProofDocument:
        """Deploy the stack, send the orders among faults, and return what was seen in the end.

        Raises ConsoleError and InspectorError if it cannot be deployed or read, and the errors of
        boto3. What was made is in the record then.
        """
        self.project.write()
        self.project.deploy()
        note_resources(self.record)
        self.record.write(self.project.folder)
        stack = find_stack(self.project.run)
        self.began_at = clock.now()
        by = clock.moment() + self.within
        self._send_among_faults(stack, by)
        finished = self._all_have_ended(stack, by)
        if finished:
            self._wait_until_quiet(stack)
        self.progress("Reading the records, the ledger, the queues and the logs")
        return read_document(stack, self._circumstances(stack, finished), self.sent, self.faults)

    def _send_among_faults(self, stack: DeployedStack, by: float) -> None:
        """Send a part of the orders before each fault, and one after the last."""
        means = Means(stack, self.project)
        parts = len(FAULTS) + 1
        ends = [self.orders * part // parts for part in range(1, parts + 1)]
        for number, end in enumerate(ends):
            self._send(stack, range(len(self.sent), end), by)
            if number < len(FAULTS):
                fault = FAULTS[number]
                self.progress(f"{len(self.sent):,} orders sent. Fault: {fault.does}")
                self.faults.append(made(fault, means))

    def _send(self, stack: DeployedStack, numbers: range, by: float) -> None:
        """Send these orders, and some of them twice, with at most OPEN of all orders open."""
        for first in range(numbers.start, numbers.stop, AT_ONCE):
            if not self._has_room(stack, by):
                return  # the time is over
            self._send_some(stack, range(first, min(first + AT_ONCE, numbers.stop)))

    def _has_room(self, stack: DeployedStack, by: float) -> bool:
        """Wait until fewer than OPEN orders are open; False if the time is over before."""
        while len(self.sent) - self.ended >= OPEN:
            with suppress(TryAgain):
                self.ended = self._counted(stack).ended
            if len(self.sent) - self.ended >= OPEN:
                if clock.moment() >= by:
                    return False
                clock.pause(BETWEEN_LOOKS)
        return True

    def _counted(self, stack: DeployedStack) -> Numbers:
        found = read_numbers(stack, most=2 * self.orders)
        self.progress(f"{found.stored:,} of {self.orders:,} orders stored, {found.ended:,} ended")
        return found

    def _send_some(self, stack: DeployedStack, numbers: range) -> None:
        events: list[str] = []
        for number in numbers:
            name = order_id(self.project.run, number)
            copies = 2 if number % COPIES_OF == 0 else 1
            events += [json.dumps(ProofOrder(number).event(name))] * copies
            self.sent.append(SentOrder(name, clock.now(), copies))
        for first in range(0, len(events), AT_ONCE):
            send_events(stack, events[first : first + AT_ONCE])

    def _all_have_ended(self, stack: DeployedStack, by: float) -> bool:
        """Wait until every order has ended; False if the time is over before."""
        while True:
            with suppress(TryAgain):
                found = self._counted(stack)
                if found.ended >= self.orders and found.stored == found.ended:
                    return True
            if clock.moment() >= by:
                return False
            clock.pause(BETWEEN_LOOKS)

    def _wait_until_quiet(self, stack: DeployedStack) -> None:
        """Wait until no queue has a message that is waiting or hidden, or for QUIET_WITHIN.

        SQS counts approximately, so that two looks have to agree.
        """
        by, quiet = clock.moment() + QUIET_WITHIN, 0
        while True:
            with suppress(TryAgain):
                busy = sum(one.waiting + one.in_flight for one in read_queues(stack))
                quiet = 0 if busy else quiet + 1
                self.progress(f"Every order has ended; {busy:,} messages are left in queues")
            if quiet > 1 or clock.moment() >= by:
                return
            clock.pause(BETWEEN_LOOKS)

    def _circumstances(self, stack: DeployedStack, finished: bool) -> Circumstances:
        place = self.project.place
        spent, unpriced = ([], NOT_BILLED) if place.local else read_spent(stack, self.began_at)
        return Circumstances(
            run=self.project.run,
            region=place.region,
            local=place.local,
            version=release(),
            templates=template_hashes(project_files()),
            runtime=place.runtime,
            began_at=self.began_at,
            ended_at=clock.now(),
            finished=finished,
            spent=spent,
            unpriced=unpriced,
        )


def send_events(stack: DeployedStack, events: Sequence[str]) -> None:
    """Send order events, at most AT_ONCE. Those that SQS does not take are sent again.

    Raises InspectorError if it takes one of them never, TryAgain and CallRefused.
    """
    left = dict(enumerate(events))
    for _ in range(SEND_TRIES):
        with aws_errors("sending order events"):
            answer = stack.sqs.send_message_batch(
                QueueUrl=stack.output("SubmissionQueueUrl"),
                Entries=[{"Id": str(n), "MessageBody": body} for n, body in left.items()],
            )
        left = {int(one["Id"]): left[int(one["Id"])] for one in answer.get("Failed", [])}
        if not left:
            return
        clock.pause(1)
    raise InspectorError(f"SubmissionQueue did not take {len(left)} order events.")
