"""One order carried through the real functions with one fault at one of their calls to AWS."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from io import StringIO
from typing import cast

import boto3

from roundsman.aws.dynamodb.groups import DynamoGroups
from roundsman.aws.dynamodb.settled import row_ids
from roundsman.model.states import TaskState
from roundsman_testing.stack import AwsCall, AwsFault, InjectedFault, Stack
from tests.crash.scenarios import ORDER, Scenario, ended
from tests.moto.orders import ALL_EFFECTS, order

# Each with how many tries of the call it strikes: one, which botocore's next try mends, or all.
FAULTS: Mapping[str, tuple[AwsFault, int | None]] = {
    "dies-before": (AwsFault.DIES_BEFORE, None),
    "dies-after": (AwsFault.DIES_AFTER, None),
    "throttled-once": (AwsFault.THROTTLED, 1),
    "broken": (AwsFault.BROKEN, None),
    "answer-lost": (AwsFault.ANSWER_LOST, 1),
    "in-conflict": (AwsFault.IN_CONFLICT, None),
}
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems")
READS = ("GetItem", "BatchGetItem", "Query", "GetQueueUrl", "GetQueueAttributes")
PATIENCE = 6 * 3600  # seconds until an order that has not ended never will
ROUNDS = 100


@dataclass(frozen=True)
class Outcome:
    """How it came out. Only `failures`, by step, may depend on what failed on the way."""

    state: TaskState
    steps: Mapping[str, str]
    effects: Mapping[str, int]
    statuses: tuple[str, ...]
    alerts: frozenset[str]
    failures: Mapping[str, int] = field(compare=False)


@dataclass(frozen=True)
class Run:
    """One fault at one call, by its number in the undisturbed run."""

    number: int
    call: AwsCall
    fault: str

    def strike(self) -> InjectedFault:
        fault, tries = FAULTS[self.fault]
        return InjectedFault(fault, after=self.number - 1, tries=tries)

    @property
    def name(self) -> str:
        return f"{self.number}:{self.fault}:{self.call.function}:{self.call.operation}"

    def __str__(self) -> str:
        return f"CRASH_ONLY={self.name}: {FAULTS[self.fault][0]}"


def runs_of(calls: list[AwsCall], faults: Sequence[str]) -> Iterator[Run]:
    """Each call with each fault that it can meet."""
    for number, call in enumerate(calls, start=1):
        for name in faults:
            if _meets(call, FAULTS[name][0]):
                yield Run(number, call, name)


def runs_in_turn(calls: list[AwsCall], faults: Sequence[str], turns: int) -> Iterator[Run]:
    """Each call with one of the faults that it can meet, which take turns from that number on."""
    for number, call in enumerate(calls, start=1):
        able = [name for name in faults if _meets(call, FAULTS[name][0])]
        yield Run(number, call, able[(number + turns) % len(able)])


def _meets(call: AwsCall, fault: AwsFault) -> bool:
    """Whether the call can meet the fault; a read whose answer is lost is as one refused."""
    if fault is AwsFault.IN_CONFLICT:
        return call.operation in WRITES
    return fault is not AwsFault.ANSWER_LOST or call.operation not in READS


class Stage:
    """A stack on which orders are played, one after the other, each as the first there ever was."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self._replies = stack.reply_queue("web")
        self._alerts = stack.alert_queue()
        self._unfounded: list[str] = []
        if boto3.DEFAULT_SESSION is not None:
            events = boto3.DEFAULT_SESSION.events
            for operation in ("SendMessage", "SendMessageBatch"):
                events.register(f"provide-client-params.sqs.{operation}", self._look_at_requests)

    def play(self, scenario: Scenario, strike: InjectedFault | None = None) -> Outcome:
        """Carry one order to its end. Raises AssertionError for whatever must never be."""
        stack = self.stack
        stack.start_over()
        self._unfounded.clear()
        stack.faults(*scenario.rules)
        stack.clock.spans = list(scenario.takes)
        if strike is not None:
            stack.aws.strikes.append(strike)
        with redirect_stdout(StringIO()):  # what functions log
            stack.submit(scenario.event(self._replies), *map(order, scenario.beside))
            scenario.story(stack)
            for each in (ORDER, *scenario.beside):
                stack.pass_time_until(partial(ended, stack, each), within=PATIENCE)
            stack.supervise()  # at least once in each run, so that its calls fail too
            self._let_all_come_again()
            self._let_all_be_alerted()
        assert not stack.aws.strikes, "the call was never made"
        self._check(ORDER)
        for each in scenario.beside:
            self._check(each)
            assert stack.task(each).state is TaskState.COMPLETED
            assert stack.effects(each) == ALL_EFFECTS
        return self._outcome()

    def _look_at_requests(self, params: Mapping[str, object], **_rest: object) -> None:
        """A request goes out only after its claim is stored: no effect without its record."""
        self.stack.aws.running, running = "", self.stack.aws.running
        for entry in cast("list[dict[str, str]]", params.get("Entries", [params])):
            request = json.loads(entry["MessageBody"])
            if "lock" not in request or "outcome" in request:
                continue  # a command, a status, or a reply
            step = self.stack.task(request["taskId"]).step(request["step"])
            if step.locked_by != request["lock"]:
                self._unfounded.append(f"{request['step']} was sent with no such claim stored")
        self.stack.aws.running = running

    def _let_all_come_again(self) -> None:
        """What died messages were hidden for passes, and each is read again."""
        for _ in range(ROUNDS):
            at = self.stack.next_message_at()
            if at is None:
                return
            self.stack.clock.now = max(self.stack.clock(), at)
            self.stack.run()
        raise AssertionError(f"messages come again and again: {self.stack.stuck()}")

    def _let_all_be_alerted(self) -> None:
        """The next passes alert of a failure group whose opener died before it did."""
        table = self.stack.stack.outputs["ControlTableName"]
        groups = DynamoGroups(self.stack.dynamodb, control_table=table)
        for _ in range(ROUNDS):
            if all(group.alerted_at is not None or group.undone for group in groups.groups()):
                return
            self.stack.pass_time(60)
        raise AssertionError("there was no alert of a failure group")

    def _check(self, order_id: str) -> None:
        """What must be so at the end of every order."""
        self.stack.assert_nothing_is_stuck()
        assert not self._unfounded, self._unfounded
        assert not self.stack.rejected()
        task = self.stack.task(order_id)
        assert not task.owed
        assert not task.lane.startswith("open#")
        self._check_rows(order_id)
        for entry in self.stack.services.application.effects(order_id):
            assert isinstance(entry, dict)
            assert entry["effects"] in (0, 1), f"an effect happened twice: {entry}"
            if task.state is TaskState.UNDONE and entry["operation"] == "perform":
                assert entry["undone"] or not entry["effects"], f"it stands: {entry}"

    def _check_rows(self, order_id: str) -> None:
        """There are the rows of settled steps that the record lists; they expire with it."""
        table = self.stack.stack.outputs["TasksTableName"]
        found = self.stack.dynamodb.scan(TableName=table)["Items"]
        items = {item["TaskId"]["S"]: item for item in found}
        rows = {key: item for key, item in items.items() if key.startswith(f"{order_id}#")}
        assert set(rows) == set(row_ids(items[order_id]))
        expiry = items[order_id].get("ExpiresAt")
        assert all(row.get("ExpiresAt") == expiry for row in rows.values())

    def _outcome(self) -> Outcome:
        task = self.stack.task(ORDER)
        statuses = self.stack.messages(self._replies)
        seqs = {message.text("status"): message["seq"] for message in statuses}
        assert all(message["seq"] == seqs[message.text("status")] for message in statuses), statuses
        envelopes = [json.loads(body) for body in self.stack.bodies(self._alerts)]
        kinds = {envelope["MessageAttributes"]["kind"]["Value"] for envelope in envelopes}
        return Outcome(
            state=task.state,
            steps={name: str(record.process_state) for name, record in task.steps.items()},
            effects=self.stack.effects(ORDER),
            statuses=tuple(sorted(seqs, key=lambda status: int(str(seqs[status])))),
            alerts=frozenset(kind for kind in kinds if kind.startswith("task_")),
            failures={name: record.failure_count for name, record in task.steps.items()},
        )
