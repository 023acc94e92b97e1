"""Do the queues move? Finds messages that were put aside, and queues that no function reads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from roundsman.model.instants import DAY
from roundsman_console.aws.metrics import Metric, own_metrics, read_metrics, sum_of
from roundsman_console.aws.resources import event_source_mappings
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.versions import functions_of
from roundsman_console.base.clock import now
from roundsman_console.base.counted import counted
from roundsman_console.facts.finding.report import Finding, Looking
from roundsman_console.facts.finding.table import FindingKind
from roundsman_console.facts.set_aside.queues import counts, sources

_READS = frozenset({"Enabled", "Enabling", "Updating", "Creating"})
"""The states of an event source mapping in which its function reads the queue, or soon will."""


@dataclass(frozen=True, slots=True)
class MappingFact:
    """One event source mapping, which connects a queue to a function."""

    uuid: str
    queue: str
    """The name of the queue in SQS."""
    state: str


def look_at_queues(stack: DeployedStack, looking: Looking) -> list[Finding]:
    """Read the queues that functions read, their dead-letter queues, and the RejectedQueue."""
    found = list[Finding]()
    mappings = _mappings(stack, looking)
    for source in sources(stack):
        with looking.at(source.name):
            found += dead_letters(source.name, counts(stack.sqs, source.dead_url).all)
            urgent = source.name.endswith("UrgentRequestQueue")
            if mappings is not None and (stack.urgent_queues or not urgent):
                its = [each for each in mappings if each.queue == source.physical]
                found += unread(source.name, its)
    with looking.at("RejectedQueue"):
        found += rejected(counts(stack.sqs, stack.output("RejectedQueueUrl")).all)
    with looking.at("the metric SignalsWithoutId"):
        end = now()
        name, service = "SignalsWithoutId", {"service": "submission"}
        metric = Metric(own_metrics(stack.name), name, service)
        read = read_metrics(stack, {name: metric}, end - DAY, end, DAY)
        found += signals_without_id(round(sum_of(read.get(name, ()))))
    return found


def _mappings(stack: DeployedStack, looking: Looking) -> list[MappingFact] | None:
    """Read the mappings of all functions.

    None if those of a function could not be read: a mapping that was not read must not count as
    missing.
    """
    with looking.at("the mappings of functions"):
        return [
            MappingFact(
                one.get("UUID", ""),
                one.get("EventSourceArn", "").rpartition(":")[2],
                one.get("State", ""),
            )
            for function in functions_of(stack.outputs).values()
            for one in event_source_mappings(stack.lambda_client, function)
        ]
    return None


def dead_letters(queue: str, number: int) -> Iterator[Finding]:
    """Find the dead letters of a queue."""
    if number:
        lost = ": orders that were never accepted" if queue == "SubmissionQueue" else ""
        evidence = f"{counted(number, 'message')}{lost}"
        yield Finding(FindingKind.DEAD_LETTERS, queue, evidence, count=number)


def rejected(number: int) -> Iterator[Finding]:
    """Find the messages in the RejectedQueue."""
    if number:
        evidence = counted(number, "message")
        yield Finding(FindingKind.REJECTED, "RejectedQueue", evidence, count=number)


def signals_without_id(number: int) -> Iterator[Finding]:
    """Find that applications send signals without an id."""
    if number:
        evidence = f"{counted(number, 'signal')} in the last 24 hours"
        yield Finding(FindingKind.SIGNALS_WITHOUT_ID, "SubmissionQueue", evidence)


def unread(queue: str, mappings: Sequence[MappingFact]) -> Iterator[Finding]:
    """Find that no function reads the queue that has these mappings."""
    if any(mapping.state in _READS for mapping in mappings):
        return
    if not mappings:
        yield Finding(FindingKind.QUEUE_UNREAD, queue, "it has no mapping")
        return
    first = mappings[0]
    yield Finding(FindingKind.QUEUE_UNREAD, queue, f"its mapping is {first.state}", first.uuid)
