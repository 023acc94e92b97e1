"""What is left when a fire is out: the records, the ledger, and every message of every queue."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast
from urllib.request import urlopen

from roundsman_testing.remote_services import RemoteServices
from tests.emulator.conftest import DeployedStack
from tests.emulator.fire import Fire, summed
from tests.emulator.helpers import rows

Row = dict[str, object]
Ledger = dict[str, dict[str, int]]

MAX_RECEIVE_COUNT = 5  # of requests; an order, a command or a reply is received more often
LONG = 900  # seconds; only ever used up when something is broken
WORKING_QUEUES = ("SubmissionQueue", "SchedulerQueue", "RequestQueue", "ReplyQueue")
ASIDE = ("DeadLetterQueue", "RejectedQueue")


@dataclass
class Aftermath:
    """Every order has ended, nothing is owed any more, and late duplicates were handled too."""

    fire: Fire
    tasks: dict[str, Row]
    ledger: Ledger  # how often each operation had its effect, by order
    ledger_at_the_end: Ledger  # before the late duplicates
    redriven: Counter[str]  # how many messages, by the dead-letter queue they were in
    duplicates: Counter[str]  # how many were sent, by queue
    alerts: list[Row]
    statuses: list[Row]
    put_aside: dict[str, list[str]]  # the bodies left in dead-letter queues and the RejectedQueue
    history: list[Row]

    def report(self) -> str:
        """The figures, over several lines."""
        fire = self.fire
        calls, fired = fire.proxy.calls(), fire.proxy.fired()
        kinds = Counter(str(row["Kind"]) for row in self.history)
        uncounted = sum("no attempt counted" in str(row["Reason"]) for row in self.history)
        alerts = Counter(str(alert.get("alert")) for alert in self.alerts)
        aside = {queue: len(found) for queue, found in self.put_aside.items()}
        restarts = ", ".join(f"{seconds:.1f}" for seconds in fire.restarts)
        return "\n    ".join(
            [
                f"{fire.lasted:.0f} s of fire, {len(self.tasks)} orders: "
                + listed(Counter(str(task["State"]) for task in self.tasks.values())),
                f"{fired.total()} of {calls.total()} calls of AWS failed "
                f"({fired.total() / calls.total():.1%}): {listed(summed(fired, 0))}; "
                f"{listed(summed(fired, 1))}",
                f"workers killed: {listed(fire.kills)}; restarts of the emulator: "
                f"{len(fire.restarts)} ({restarts} s)",
                f"failed calls of the services: {listed(fire.struck)}",
                f"history: {listed(kinds)}; {uncounted} of them counted no attempt",
                f"alerts: {listed(alerts)}; statuses: {len(self.statuses)}",
                f"redriven from dead-letter queues: {listed(self.redriven)}",
                f"messages that were still hidden, sent again: {listed(self.duplicates)}",
                f"put aside: {listed(aside)}",
            ]
        )

    def stories(self, order_ids: Sequence[str]) -> str:
        """What is known of some orders: their records, histories and effects."""
        lines = []
        for order_id in order_ids:
            history = [row for row in self.history if row["TaskId"] == order_id]
            lines += [f"{order_id}: {self.tasks.get(order_id)}", f"  {self.ledger.get(order_id)}"]
            lines += [f"  {row}" for row in sorted(history, key=lambda row: str(row["At"]))]
        return "\n".join(lines)


def listed(counts: "Counter[str] | dict[str, int]") -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()) if count) or "none"


def gather(fire: Fire, operators: str) -> Aftermath:
    """Wait until all is over, send what is hidden once more, and read everything.

    `operators` is the name of the queue that alerts come to.
    """
    stack, replies = fire.stack, fire.reply_to.rpartition("/")[2]
    redriven: Counter[str] = Counter()
    _await_the_end(fire, redriven)
    _await_what_is_owed(fire)
    ended = ledger_of(stack.services)
    duplicates = _send_again_what_is_hidden(stack)
    _await_what_is_owed(fire)
    _redrive(stack, redriven)
    messages = messages_of(stack)
    alerts = [body_of(message)["Message"] for message in messages[operators]]
    return Aftermath(
        fire,
        tasks=tasks_of(stack),
        ledger=ledger_of(stack.services),
        ledger_at_the_end=ended,
        redriven=redriven,
        duplicates=duplicates,
        alerts=[cast("Row", json.loads(str(alert))) for alert in alerts],
        statuses=[body_of(message) for message in messages[replies]],
        put_aside={
            queue: [str(message["Body"]) for message in found]
            for queue, found in messages.items()
            if any(aside in queue for aside in ASIDE)
        },
        history=rows(stack, "HistoryTableName"),
    )


def _await_the_end(fire: Fire, redriven: Counter[str]) -> None:
    def all_have_ended() -> bool:
        fire.report()
        _redrive(fire.stack, redriven)
        return fire.ended() == len(fire.orders)

    fire.stack.wait_for("every order's end", all_have_ended, LONG, every=3)


def _await_what_is_owed(fire: Fire) -> None:
    """Statuses are sent after the decision, and again while the record says so; alerts while the
    row of failure groups has one without an alert."""

    def nothing_is_owed() -> bool:
        [groups] = [
            row for row in rows(fire.stack, "ControlTableName") if row["ControlId"] == "groups"
        ] or [Row()]
        found = [cast("Row", each) for name, each in groups.items() if name.startswith("f-")]
        is_reported = all("ToldAt" in group or group["How"] == "undone" for group in found)
        return is_reported and not any(task.get("Owed") for task in tasks_of(fire.stack).values())

    fire.stack.wait_for("alerts and statuses to be sent", nothing_is_owed, LONG, every=2)


def tasks_of(stack: DeployedStack) -> dict[str, Row]:
    return {str(row["TaskId"]): row for row in rows(stack, "TasksTableName")}


def ledger_of(services: RemoteServices) -> Ledger:
    """How often each operation had its effect, by order, over all keys; no zeros."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for entry in cast("list[Row]", services.application.effects()):
        counts = found[str(entry["orderId"])]
        counts[f"{entry['service']} {entry['operation']}"] += cast("int", entry["effects"])
    return {order_id: dict(+counts) for order_id, counts in found.items()}


def messages_of(stack: DeployedStack) -> dict[str, list[Row]]:
    """Every message there is, hidden or not, by the name of its queue. Reading changes nothing."""
    with urlopen(f"{stack.aws.endpoint}/_ministack/sqs/messages", timeout=60) as answer:
        messages = json.loads(answer.read())["messages"]
    [regions] = messages.values()
    [queues] = regions.values()
    return {url.rpartition("/")[2]: found for url, found in queues.items()}


def body_of(message: Row) -> Row:
    return cast("Row", json.loads(str(message["Body"])))


def _redrive(stack: DeployedStack, redriven: Counter[str]) -> None:
    """Do as an operator does once all is well: put back into its queue what was given up.

    A message is given up for one reason only: it was read as often as it may be, in vain.
    """
    for queue, found in messages_of(stack).items():
        if "DeadLetterQueue" not in queue or not found:
            continue
        url = stack.sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        answer = stack.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["All"]
        )
        for message in answer.get("Messages", []):
            attributes = message["Attributes"]
            # Being read here is one more.
            assert int(attributes["ApproximateReceiveCount"]) > MAX_RECEIVE_COUNT, message
            _send(stack, attributes["DeadLetterQueueSourceArn"].rpartition(":")[2], message["Body"])
            stack.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            redriven[queue.removeprefix(f"{stack.aws.stack}-").rpartition("-")[0]] += 1


def _send(stack: DeployedStack, queue: str, body: str) -> str:
    url = stack.sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    return stack.sqs.send_message(QueueUrl=url, MessageBody=body)["MessageId"]


def _send_again_what_is_hidden(stack: DeployedStack) -> Counter[str]:
    """A message whose worker died comes again when its time is over, up to half an hour later.

    Now, so that it is seen what becomes of it: its text is sent once more, to the same queue.
    """
    sent: Counter[str] = Counter()
    waited_for: set[object] = set()
    for queue, found in messages_of(stack).items():
        own = queue.startswith(stack.aws.stack) and not any(aside in queue for aside in ASIDE)
        if not own or not any(working in queue for working in WORKING_QUEUES):
            continue
        for message in found:
            waited_for.add(_send(stack, queue, str(message["Body"])))
            sent[queue.removeprefix(f"{stack.aws.stack}-")] += 1

    def all_are_handled() -> bool:
        there = {m["MessageId"] for found in messages_of(stack).values() for m in found}
        return not waited_for & there

    stack.wait_for("late duplicates to be handled", all_are_handled, LONG, every=1)
    return sent
