"""The checks of queues and of what reads them. Each is a pure function."""

from collections.abc import Iterator

from roundsman_console.inspector.doctor.facts import Finding, StackFacts
from roundsman_console.inspector.documents.doctor import FindingKind


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


def _messages(number: int) -> str:
    return "1 message" if number == 1 else f"{number} messages"
