"""The policies for people against the calls of the commands, both ways.

Each command is typed at a stack on moto, and each of its calls to AWS is held against the policies
that its users have: none lacks a right, and no right is there that no command uses.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import cast

import boto3
import pytest
from starlette.testclient import TestClient
from typer.testing import Result

from roundsman.aws.dynamodb import settled
from roundsman.aws.outputs import nested_settings
from roundsman.client import Client
from roundsman.model.instants import iso
from roundsman.wire.commands import START, Command
from roundsman_console.aws.stack import find_stack
from roundsman_console.base import clock as polling
from roundsman_console.faces.web.access.one_browser import BrowserSession
from roundsman_console.faces.web.application import PAGES, application
from roundsman_console.facts.application import application_events
from roundsman_console.facts.set_aside import peek
from roundsman_console.inspector import Inspector
from roundsman_testing.stack import Clock, Services, Stack
from tests.console.bulk_stories import archived
from tests.console.operators import Operator, Patience, in_retry, let_go_is_seen_at_once
from tests.console.searched import SEARCHED
from tests.console.test_answering import waits_for_approval
from tests.console.test_reconciling import stop_supervisor
from tests.console.test_schedules import event, made_schedules
from tests.console.verbs import STACK_VERBS, options_of, split_verb
from tests.moto.orders import order
from tests.project import TEMPLATE, deployed_project, of_each_agent
from tests.support.personal_rights import (
    ANSWERER,
    BULK,
    OPERATOR,
    SUBMITTER,
    VIEWER,
    Parameters,
    RecordedRights,
    Right,
    allows,
    documents_of,
    grants,
    is_allowed,
)
from workflows.registry import WORKFLOWS

POLICIES_OF = {
    VIEWER: (VIEWER,),
    OPERATOR: (VIEWER, OPERATOR),
    BULK: (VIEWER, OPERATOR, BULK),
    SUBMITTER: (SUBMITTER,),
    ANSWERER: (ANSWERER,),
}
"""The policies of each kind of user, named by the one that makes the difference."""

READING = {
    *(
        "agents",
        "alerts",
        "audit",
        "bulk ls",
        "bulk show",
        "bulk watch",
        "dlq ls",
        "dlq show",
        "doctor",
        "export",
    ),
    *("diff", "groups ls", "groups show", "ls", "rejected ls", "rejected show", "shift", "show"),
    "schedules ls",
    *("stats", "timeline", "watch", "why", "workflows health"),
}
ON_ONE = {
    *(
        "answer",
        "cancel",
        "dlq drop",
        "dlq redrive",
        "erase",
        "extend",
        "groups note",
        "hold",
        "lift",
        "move",
        "rejected drop",
    ),
    *("rejected resend", "release", "resolve", "resubmit", "run", "signal", "smoke", "submit"),
    *(f"schedules {verb}" for verb in ("backfill", "pause", "resume", "run")),
    "undo",
}
ON_MANY = {"bulk pause", "bulk resume", "bulk stop", "reconcile"}
OF_DEPLOYERS = {"delete", "restore prepare", "restore replace", "restore start", "rollback"}
"""Commands of those who deploy, and who may delete tables."""
OF_LOG_READERS = {"workflows agent-versions"}
"""Commands that ask the logs: whether a viewer may is the account's to say, since it costs money.
"""

NEVER_CALLED = {
    "ListsTheResourcesOfTheStack: cloudformation:ListStackResources on"
    " arn:aws:cloudformation:us-east-1:123456789012:stack/roundsman-*": (
        "the stack on moto has no nested stacks, whose resources `doctor` lists too"
    ),
    "ChecksTheFunctions: lambda:ListTags on"
    " arn:aws:lambda:us-east-1:123456789012:function:roundsman-*": (
        "`doctor` reads them of functions whose newest version is not the one that runs"
    ),
}
"""What no recorded call uses, with the reason."""
ROWS_OF_LIMITS = " limit#*"
"""Rows that only an application with a limit has: tests/console/test_order_limits.py has one."""
CALLED_BY_AWS = {"kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey"}
"""Actions that a service calls for the user, by the condition of their statements."""


@dataclass
class Users:
    """The users of one stack on moto, and the rights that their calls needed."""

    operator: Operator
    rights: dict[str, RecordedRights] = field(default_factory=dict)
    typed: dict[str, set[str]] = field(default_factory=dict)

    def types(self, user: str, *words: str, code: int = 0) -> Result:
        """One command of that kind of user, which must end with this exit code."""
        verb, _ = split_verb(words)
        self.typed.setdefault(user, set()).add(verb)
        asked = "--reason" in options_of(verb) and "--reason" not in words
        reason = ("--reason", "routine") if asked else ()
        with self.rights[user].recording():
            result = self.operator.types(*words, *reason)
        assert result.exit_code == code, (words, result.output)
        return result

    def reads(self, user: str, field: str, *words: str) -> list[dict[str, object]]:
        """The rows of a list as a command says them in JSON."""
        self.typed.setdefault(user, set()).add(split_verb(words)[0])
        with self.rights[user].recording():
            found = self.operator.reads(*words)
        return cast("list[dict[str, object]]", found[field])

    def calls(self, user: str, call: Callable[[], object]) -> None:
        """Anything else that this kind of user does."""
        with self.rights[user].recording():
            call()


@contextmanager
def before_a_stack(services: Services, clock: Clock) -> Iterator[Users]:
    """Users of each kind, who have done nothing yet."""
    parameters = {**of_each_agent("BreakerFailures", "100"), "Engine.SearchFields": "3"}
    with (
        deployed_project(services, clock, parameters) as world,
        let_go_is_seen_at_once(world),
        pytest.MonkeyPatch.context() as patched,
    ):
        works = [False]

        def run() -> None:
            works[0] = True
            world.run()
            works[0] = False

        patched.setattr(polling, "time", patience := Patience(run))
        patched.setattr(peek, "LONG_POLL", 0)
        patched.setitem(WORKFLOWS, SEARCHED.name, SEARCHED)
        for limit in ("FEW_STEPS", "ROW_FROM", "ROW_UP_TO"):  # every task has rows of steps
            patched.setattr(settled, limit, 0)
        patched.chdir(TEMPLATE.parent)
        found = Users(Operator(world, patience))
        for user in POLICIES_OF:
            found.rights[user] = RecordedRights(lambda: works[0] or bool(world.running))
        yield found


@pytest.fixture(scope="module")
def users(
    roundsman_services: Services, roundsman_clock: Clock, session_without_real_aws: None
) -> Iterator[Users]:
    """All commands have been typed once, each by the least of the users that may use it."""
    with before_a_stack(roundsman_services, roundsman_clock) as found:
        world = found.operator.world
        of_submitter(found, world)
        world.start_over()
        of_answerer(found, world)
        world.start_over()
        of_orders(found, world)
        of_messages(found, world)
        of_groups(found, world)
        of_schedules(found)
        of_doctors(found, world)
        yield found


def of_submitter(users: Users, world: Stack) -> None:
    token = waits_for_approval(users.operator)

    def call() -> None:
        client = Client.of_stack("roundsman")
        client.submit({"orderId": "ord-2"})
        client.cancel("ord-2")
        client.signal("ord-1", "paid")
        client.answer(token, {"chargeId": "ch_7"})
        client.status("ord-1")
        client.wait("ord-3", timeout=timedelta(0))  # there is none

    users.calls(SUBMITTER, call)
    world.run()


def of_answerer(users: Users, world: Stack) -> None:
    waits_for_approval(users.operator)

    def call() -> None:
        Client.of_stack("roundsman").answer(order_id="ord-1", step="charge_card")

    users.calls(ANSWERER, call)
    world.run()


def of_orders(users: Users, world: Stack) -> None:
    token = waits_for_approval(users.operator)
    users.types(OPERATOR, "answer", token, "--result", '{"chargeId": "ch_7"}')
    in_retry_again(users, world, "ord-2")
    for verb in ("show", "timeline", "why"):
        users.types(VIEWER, verb, "ord-2")
    users.types(VIEWER, "diff", "ord-2", "ord-1")
    users.types(VIEWER, "workflows", "health", "order_fulfilment")
    for listing in ("agents", "ls", "stats"):
        users.types(VIEWER, listing)
    for value in ("customerId=c-42", "paymentToken=tok_visa", "shippingAddress.city=Ghent"):
        users.types(VIEWER, "ls", "--where", value)
    users.types(VIEWER, "watch", "--times", "1")
    users.types(VIEWER, "export", "--state", "Completed")
    users.types(VIEWER, "audit", "--deep", "--yes")
    users.types(OPERATOR, "extend", "ord-2", "--by", "10m", "--yes")
    users.types(OPERATOR, "run", "ord-2", "--yes")
    users.types(OPERATOR, "move", "ord-2", "--yes", code=1)
    users.types(OPERATOR, "resolve", "ord-2", "charge_card", "--did", "--yes", code=1)
    users.types(OPERATOR, "cancel", "ord-2", "--yes", code=1)
    users.types(OPERATOR, "undo", "ord-2", "--yes")
    users.types(OPERATOR, "smoke", "--event", "events/good.json")
    users.types(OPERATOR, "submit", "events/good.json")
    wait = ("--anyway", "--wait", "60")
    users.types(OPERATOR, "submit", "events/malformed.json", *wait, code=1)
    users.types(OPERATOR, "signal", "ord-99", "paid", code=4)
    users.types(OPERATOR, "hold", "shipping", "--for", "10m", "--yes")
    users.types(OPERATOR, "release", "shipping")
    users.types(OPERATOR, "lift", "shipping", "shop-1", "--for", "10m")
    world.run()
    users.types(OPERATOR, "erase", "ord-1", "--yes")


def in_retry_again(users: Users, world: Stack, name: str) -> None:
    world.faults({"operation": "POST /charges", "status": 503, "retryAfter": 600, "times": 1})
    world.submit(order(name))
    world.run()


def of_messages(users: Users, world: Stack) -> None:
    body = Command("ord-2", START).body()
    queues = [
        *("SubmissionDeadLetterQueue", "SchedulerDeadLetterQueue"),
        *("PaymentRequestDeadLetterQueue", "PaymentReplyDeadLetterQueue"),
    ]
    for queue in queues:
        url = world.stack.resources[queue]
        for _ in range(2):
            world.sqs.send_message(QueueUrl=url, MessageBody=body)
    users.types(VIEWER, "dlq", "ls")
    for queue in queues:
        name = queue.replace("DeadLetter", "")
        users.types(VIEWER, "dlq", "show", name)
        users.types(OPERATOR, "dlq", "redrive", name, "--limit", "1", "--anyway")
        (left,) = users.reads(OPERATOR, "messages", "dlq", "ls", name)
        users.types(OPERATOR, "dlq", "drop", str(left["messageId"]), "--yes")
    world.run()
    wrong = {**order("ord-8"), "currency": "euro"}
    world.submit(wrong, {**wrong, "orderId": "ord-9"})
    world.run()
    for message in users.reads(VIEWER, "messages", "rejected", "ls"):
        which = str(message["messageId"])
        users.types(VIEWER, "rejected", "show", which)
        if message["orderId"] == "ord-8":
            users.types(OPERATOR, "rejected", "resend", which, "--set", "currency=EUR")
    users.types(VIEWER, "rejected", "ls")
    rest = users.reads(OPERATOR, "messages", "rejected", "ls")
    users.types(OPERATOR, "rejected", "drop", str(rest[-1]["messageId"]), "--yes")
    world.run()


def of_groups(users: Users, world: Stack) -> None:
    world.start_over()
    group = archived(users.operator, 4)
    users.types(VIEWER, "groups", "ls")
    users.types(OPERATOR, "groups", "note", group, "The bank is told.")
    users.types(VIEWER, "groups", "show", group)
    users.types(VIEWER, "alerts")
    newest = ("resubmit", "ord-1", "--plan", "newest", "--yes")
    users.types(OPERATOR, *newest)
    users.types(BULK, "resubmit", "--group", group, "--go", "--no-wait", "--yes")
    (run,) = users.reads(VIEWER, "runs", "bulk", "ls")
    run_id = str(run["runId"])
    users.types(BULK, "bulk", "pause", run_id)
    world.pass_time(70)
    users.types(VIEWER, "bulk", "show", run_id, "--orders")
    users.types(VIEWER, "shift")
    users.types(VIEWER, "bulk", "watch", run_id, code=4)
    users.types(BULK, "bulk", "resume", run_id)
    world.pass_time(70)
    users.types(BULK, "bulk", "stop", run_id)
    users.calls(VIEWER, lambda: every_page(group, run_id))
    stop_supervisor(world)
    at = iso(world.clock() - 60_000)
    users.types(BULK, "reconcile", "--restored-to", at, "--as", "ops", "--go")


def of_schedules(users: Users) -> None:
    with (
        pytest.MonkeyPatch.context() as patched,
        made_schedules(users.operator, event(overlap="skip"), patched),
    ):
        users.types(VIEWER, "schedules", "ls")
        users.types(OPERATOR, "schedules", "pause", "weekly")
        users.types(OPERATOR, "schedules", "run", "weekly", "--yes")
        users.types(OPERATOR, "schedules", "resume", "weekly")
        begin = iso(users.operator.world.clock() - 24 * 3_600_000)
        users.types(OPERATOR, "schedules", "backfill", "weekly", "--from", begin, "--go", "--yes")


def every_page(group: str, run: str) -> None:
    session = BrowserSession(8901)
    app = application(Inspector(find_stack(None, application_events())), session)
    with TestClient(app, base_url=session.address) as browser:
        browser.get(session.link_to())
        for page in PAGES:
            address = page.path.format(
                order="ord-1",
                group=group,
                run=run,
                plan="0" * 64,
                agent="payment",
                work="w-1",
                result="r-1",
            )
            assert browser.get(address).status_code in (200, 404), address


def of_doctors(users: Users, world: Stack) -> None:
    world.start_over()
    in_retry(users.operator)
    world.clock.now += 3_600_000  # its next attempt is overdue
    users.types(VIEWER, "doctor", "--deep", code=1)
    with users.rights[OPERATOR].recording():
        users.operator.types("doctor", "--fix", "--yes")


@pytest.fixture(scope="module")
def documents(users: Users) -> dict[str, Parameters]:
    return documents_of(users.operator.world.stack)


@pytest.mark.exhaustive
def test_no_call_of_a_submitter_nor_of_a_small_run_of_commands_lacks_a_right(
    roundsman_services: Services, roundsman_clock: Clock
) -> None:
    with before_a_stack(roundsman_services, roundsman_clock) as found:
        world = found.operator.world
        of_submitter(found, world)
        world.start_over()
        of_answerer(found, world)
        for words in (("ls",), ("show", "ord-1"), ("stats",)):
            found.types(VIEWER, *words)
        found.types(OPERATOR, "hold", "payment", "--for", "10m", "--yes")
        found.types(OPERATOR, "release", "payment")
        policies = documents_of(world.stack)
        assert {*policies} <= {*nested_settings(world.stack.outputs)}, "each policy has its ARN"
        for user, recorded in found.rights.items():
            assert recorded.rights or user == BULK
            own = [policies[name] for name in POLICIES_OF[user]]
            assert [str(right) for right in recorded.rights if not is_allowed(own, right)] == []


@pytest.mark.exhaustive
def test_each_command_is_one_for_a_kind_of_user_and_was_typed(users: Users) -> None:
    kinds = (READING, ON_ONE, ON_MANY, OF_DEPLOYERS, OF_LOG_READERS)
    assert sorted(verb for kind in kinds for verb in kind) == sorted(STACK_VERBS)
    assert users.typed[VIEWER] == READING
    assert users.typed[OPERATOR] == ON_ONE | {"dlq ls", "rejected ls"}
    assert users.typed[BULK] >= ON_MANY


@pytest.mark.exhaustive
@pytest.mark.parametrize("user", POLICIES_OF)
def test_no_call_of_a_user_lacks_a_right(
    users: Users, documents: dict[str, Parameters], user: str
) -> None:
    own = [documents[name] for name in POLICIES_OF[user]]
    assert users.rights[user].rights
    assert [
        str(right)
        for right in sorted(users.rights[user].rights, key=str)
        if not is_allowed(own, right)
    ] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("policy", POLICIES_OF)
def test_no_right_is_there_that_no_command_uses(
    users: Users, documents: dict[str, Parameters], policy: str
) -> None:
    called = users.rights[policy].rights
    unused = {
        str(grant)
        for grant, statement in grants(documents[policy])
        if grant.action not in CALLED_BY_AWS
        and not any(allows(grant, statement, right) for right in called)
    }
    of_limits = {one for one in unused if one.endswith(ROWS_OF_LIMITS)}
    assert bool(of_limits) is (policy in (VIEWER, OPERATOR))
    assert unused - of_limits == (set(NEVER_CALLED) if policy == VIEWER else set())


@pytest.mark.exhaustive
def test_a_call_beyond_the_policies_is_refused(
    documents: dict[str, Parameters], users: Users
) -> None:
    outputs = users.operator.world.stack.outputs
    control = f"arn:aws:dynamodb:us-east-1:123456789012:table/{outputs['ControlTableName']}"
    tasks = f"arn:aws:dynamodb:us-east-1:123456789012:table/{outputs['TasksTableName']}"
    queues = "arn:aws:sqs:us-east-1:123456789012"
    everybody = [documents[name] for name in POLICIES_OF]
    for right in (
        Right("dynamodb:UpdateItem", control, frozenset({"breaker#payment"})),
        Right("dynamodb:UpdateItem", control, frozenset({"plan#1"})),
        Right("dynamodb:PutItem", control, frozenset({"holds"})),
        Right("dynamodb:GetItem", control, frozenset({"rate#payment"})),
        Right("dynamodb:PutItem", control, frozenset({"rejected#order#ord-1"})),
        Right("dynamodb:PutItem", control, frozenset({"notes#f-00000000"})),
        Right("dynamodb:DeleteItem", control, frozenset({"notes#f-00000000"})),
        Right("dynamodb:DeleteItem", tasks, frozenset({"ord-1"})),
        Right("dynamodb:PutItem", tasks, frozenset({"ord-1"})),
        Right("dynamodb:UpdateItem", tasks, frozenset({"ord-1"})),
        Right("sqs:ReceiveMessage", f"{queues}:roundsman-SubmissionQueue"),
        Right("sqs:DeleteMessage", f"{queues}:roundsman_PaymentReplyQueue"),
        Right("sqs:SendMessage", f"{queues}:roundsman-RejectedQueue"),
        Right("sqs:SendMessage", f"{queues}:other-SchedulerQueue"),
        Right("sqs:PurgeQueue", f"{queues}:roundsman-RejectedQueue"),
        Right(
            "lambda:InvokeFunction", "arn:aws:lambda:us-east-1:123456789012:function:roundsman-x"
        ),
    ):
        assert not is_allowed(everybody, right), right
    changes = Right("sqs:SendMessage", f"{queues}:roundsman-SchedulerQueue")
    notes = Right("dynamodb:UpdateItem", control, frozenset({"notes#f-00000000"}))
    for name in (VIEWER, BULK, SUBMITTER, ANSWERER):
        assert not is_allowed([documents[name]], changes), name
        assert not is_allowed([documents[name]], notes), name
    assert is_allowed([documents[OPERATOR]], changes)
    orders = f"arn:aws:dynamodb:us-east-1:123456789012:table/{outputs['OrdersTableName']}"
    for attributes, may in (({"OrderID"}, True), ({"OrderID", "Content"}, False), (set(), False)):
        reads = Right("dynamodb:GetItem", orders, frozenset({"ord-1"}), frozenset[str](attributes))
        assert is_allowed([documents[SUBMITTER]], reads) is may


@pytest.mark.exhaustive
def test_a_bulk_run_is_started_and_stopped_in_ones_own_name_only(
    documents: dict[str, Parameters], users: Users
) -> None:
    name_of_table = users.operator.world.stack.outputs["ControlTableName"]
    table = f"arn:aws:dynamodb:us-east-1:123456789012:table/{name_of_table}"
    own_id = boto3.client("sts").get_caller_identity()["UserId"]

    def put(key: str) -> Right:
        return Right("dynamodb:PutItem", table, frozenset({key}))

    own = f"bulk-by#{own_id}#b-00000001"
    assert is_allowed([documents[BULK]], put(own))
    assert is_allowed([documents[BULK]], put(f"{own}#request"))
    for name in (VIEWER, OPERATOR, SUBMITTER, ANSWERER):
        assert not is_allowed([documents[name]], put(own)), name
    for foreign in (
        "bulk-by#AROAOTHER:eve#b-00000001",
        f"bulk-by#{own_id}x#b-00000001",
        "bulk#b-00000001",  # the supervisor's
        "leases",
    ):
        assert not is_allowed([*documents.values()], put(foreign)), foreign


@pytest.mark.exhaustive
def test_without_a_key_of_ones_own_no_policy_names_one(documents: dict[str, Parameters]) -> None:
    named = {
        name: [
            one["Sid"]
            for one in cast("list[Parameters]", document["Statement"])
            if "kms:" in json.dumps(one["Action"])
        ]
        for name, document in documents.items()
    }
    assert named == {
        VIEWER: [],
        OPERATOR: ["EncryptsTheAlertsItPublishes"],
        BULK: [],
        SUBMITTER: [],
        ANSWERER: [],
    }
