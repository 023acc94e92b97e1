"""The checks of queues, their functions, and the order of their times. Each is a pure function."""

from collections.abc import Iterator

from roundsman.model.instants import SECOND, format_duration
from roundsman_console.inspector.doctor.facts import Finding, FunctionFact, QueueFact, StackFacts
from roundsman_console.inspector.documents.doctor import FindingKind

LEAST_RECEIVES = 2
"""The minimum of `maxReceiveCount`: with 1, the first failure makes a message a dead letter."""

TIMES_THE_TIMEOUT = 6
"""AWS recommends a visibility timeout of six times the function's timeout (decision 0126)."""

BEHIND_AFTER = 1200
"""The age in seconds from which a message counts as late, if the stack has no parameter
OldestMessageAlarmSeconds."""


def put_aside(facts: StackFacts) -> Iterator[Finding]:
    """Find messages in dead-letter queues and in the RejectedQueue."""
    for queue in facts.dead_letter_queues:
        if number := queue.waiting + queue.in_flight:
            lost = any(
                source.dead_letters_to == queue.arn and source.url == facts.submission_queue
                for source in facts.work_queues
            )
            evidence = _messages(number) + (": orders that were never accepted" if lost else "")
            yield Finding(FindingKind.DEAD_LETTERS, queue.name, evidence, "roundsman dlq ls")
    rejected = facts.rejected_queue
    if rejected is not None and (number := rejected.waiting + rejected.in_flight):
        yield Finding(
            FindingKind.REJECTED, rejected.name, _messages(number), "roundsman rejected ls"
        )


def missing(facts: StackFacts) -> Iterator[Finding]:
    """Find queues that the stack's outputs name and that do not exist."""
    for name in facts.missing_queues:
        yield Finding(FindingKind.QUEUE_MISSING, name, "does not exist")


def readers(facts: StackFacts) -> Iterator[Finding]:
    """Find queues that no function reads."""
    if facts.mappings is None:
        return
    for queue in facts.work_queues:
        its = [mapping for mapping in facts.mappings if mapping.queue_arn == queue.arn]
        if any(mapping.state in _READS for mapping in its):
            continue
        state = f"its mapping is {its[0].state}" if its else "it has no mapping"
        waiting = f"; {_messages(queue.waiting)} waiting" if queue.waiting else ""
        command = (
            f"aws lambda update-event-source-mapping --uuid {its[0].uuid} --enabled"
            if its
            else None
        )
        yield Finding(FindingKind.QUEUE_UNREAD, queue.name, state + waiting, command)


_READS = frozenset({"Enabled", "Enabling", "Updating", "Creating"})


def backlogs(facts: StackFacts) -> Iterator[Finding]:
    """Find queues whose oldest message is older than the stack's alarm allows."""
    given = facts.parameters.get("OldestMessageAlarmSeconds", "")
    most = int(given) if given.isdecimal() else BEHIND_AFTER
    for queue in facts.work_queues:
        # One redelivery is not late: a message that was read is hidden for that long.
        if queue.oldest is not None and queue.oldest > max(most, queue.visibility):
            evidence = f"the oldest message is {format_duration(queue.oldest * SECOND)} old"
            evidence += f", {_messages(queue.waiting)} waiting"
            yield Finding(FindingKind.QUEUE_BEHIND, queue.name, evidence, "roundsman agents")


def delays(facts: StackFacts) -> Iterator[Finding]:
    """Find queues that delay every message."""
    for queue in facts.work_queues:
        if queue.delay:
            command = _set(queue, "DelaySeconds", 0)
            yield Finding(
                FindingKind.QUEUE_DELAYS, queue.name, f"delayed by {queue.delay} s", command
            )


def redrives(facts: StackFacts) -> Iterator[Finding]:
    """Find queues without a dead-letter queue, or whose `maxReceiveCount` is too low."""
    for queue in facts.work_queues:
        if queue.dead_letters_to is None:
            yield Finding(FindingKind.NO_REDRIVE, queue.name, "it has no redrive policy")
        elif queue.max_receives is not None and queue.max_receives < LEAST_RECEIVES:
            evidence = f"maxReceiveCount is {queue.max_receives}"
            yield Finding(FindingKind.REDRIVE_TOO_SOON, queue.name, evidence)


def visibilities(facts: StackFacts) -> Iterator[Finding]:
    """Find queues whose visibility timeout is too short for the timeout of their function."""
    for queue, function in _read_by(facts):
        evidence = (
            f"visible again after {queue.visibility} s; the timeout of {function.name} is "
            f"{function.timeout} s"
        )
        if queue.visibility <= function.timeout:
            command = _set(queue, "VisibilityTimeout", TIMES_THE_TIMEOUT * function.timeout)
            yield Finding(FindingKind.VISIBILITY_TOO_SHORT, queue.name, evidence, command)
        elif queue.visibility < TIMES_THE_TIMEOUT * function.timeout:
            yield Finding(FindingKind.VISIBILITY_SHORT, queue.name, evidence)


def retentions(facts: StackFacts) -> Iterator[Finding]:
    """Find queues whose retention period is too short.

    A queue must keep a message for all its deliveries, and a dead-letter queue for longer than its
    queue: SQS counts the retention of a dead letter from when the message was first sent.
    """
    dead = {queue.arn: queue for queue in facts.dead_letter_queues}
    for queue in facts.work_queues:
        wait = queue.visibility * (queue.max_receives or 1)
        if queue.retention <= wait:
            evidence = (
                f"kept for {format_duration(queue.retention * SECOND)}; its deliveries take up to "
                f"{format_duration(wait * SECOND)}"
            )
            yield Finding(FindingKind.RETENTION_TOO_SHORT, queue.name, evidence)
        target = dead.get(queue.dead_letters_to or "")
        if target is not None and target.retention <= queue.retention:
            evidence = (
                f"kept for {format_duration(target.retention * SECOND)} from when they were "
                "first sent, "
                f"no longer than in {queue.name}"
            )
            command = _set(target, "MessageRetentionPeriod", 1_209_600)
            yield Finding(FindingKind.RETENTION_TOO_SHORT, target.name, evidence, command)


def _read_by(facts: StackFacts) -> Iterator[tuple[QueueFact, FunctionFact]]:
    by_name = {function.physical: function for function in facts.functions}
    for queue in facts.work_queues:
        for mapping in facts.mappings or ():
            if mapping.queue_arn == queue.arn and mapping.function in by_name:
                yield queue, by_name[mapping.function]


def _messages(number: int) -> str:
    return "1 message" if number == 1 else f"{number} messages"


def _set(queue: QueueFact, attribute: str, value: int) -> str:
    return f"aws sqs set-queue-attributes --queue-url {queue.url} --attributes {attribute}={value}"
