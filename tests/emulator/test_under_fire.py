"""The deployed stack under fire: 500 orders while AWS, its workers and the services fail.

AWS's own failures come from a fault proxy between the functions and the emulator (proxy.py);
`fire.py` says what else goes wrong, and when. Once it is out, each claim is a test of its own.

The emulator keeps its state when it is asked to end, and only then: its restart is in the middle
of the work, with calls and messages under way, but never a power cut, after which it is empty.
"""

import faulthandler
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest

from roundsman.supervisor.supervisor import UNDONE_COUNT
from roundsman_dev.local import LocalAws
from roundsman_dev.local.emulator import free_port
from roundsman_testing.remote_services import RemoteServices
from tests.emulator.aftermath import Aftermath, Row, gather
from tests.emulator.conftest import PROJECT, SUPERVISOR_INTERVAL, DeployedStack
from tests.emulator.fire import Fire, summed
from tests.emulator.projects import WORKFLOWS, copied, replace
from tests.emulator.proxy import KINDS, fault_proxy

pytestmark = [pytest.mark.stack, pytest.mark.verify]

SEED = 20261
OPERATORS = "operators"
AGENTS = ("Inventory", "Payment", "Shipping", "Mail")
PARAMETERS = {
    "SupervisorIntervalSeconds": SUPERVISOR_INTERVAL,
    # A call that hangs, on a busy machine, is not the end of its batch; a message whose worker
    # died comes again soon.
    "Engine.SubmissionTimeoutSeconds": 20,
    "Engine.SchedulerTimeoutSeconds": 20,
    "Engine.SubmissionVisibilitySeconds": 30,
    "Engine.SchedulerVisibilitySeconds": 30,
    # One attempt of one order opens a circuit, so an outage costs no order more than that.
    **{f"{block}.BreakerFailures": 3 for block in AGENTS},
    **{f"{block}.BreakerRecoverySeconds": 5 for block in AGENTS},
    # What these allow together is some thirty sandboxes of 50 MB.
    "Engine.SubmissionConcurrency": 2,
    "Engine.SchedulerConcurrency": 3,
    **{f"{block}.Concurrency": 4 for block in AGENTS},
    **{f"{block}.UrgentConcurrency": 2 for block in AGENTS},
}


@pytest.fixture(scope="module")
def aftermath(
    session_without_real_aws: None,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Aftermath]:
    # A test's bound is ten minutes; a busy machine needs more for this, whose waits have theirs.
    faulthandler.cancel_dump_traceback_later()
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        with capture.global_and_fixture_disabled():
            sys.stdout.write(f"\n  {line}")
            sys.stdout.flush()

    port, log = free_port(), tmp_path_factory.mktemp("fire") / "proxy.log"
    with (
        RemoteServices(port=0) as services,
        fault_proxy(PROJECT, port, log, SEED) as proxy,
        LocalAws.up(
            port=port,
            services=services.url,
            parameters={name: str(value) for name, value in PARAMETERS.items()},
            project=impatient(tmp_path_factory.mktemp("fire") / "project"),
            emulator_environment={"AWS_ENDPOINT_URL": proxy.url, "PERSIST_STATE": "1"},
        ) as aws,
    ):
        stack = DeployedStack(aws, services)
        subscribe(stack)
        name = f"{stack.output('ReplyQueuePrefix')}fire"
        reply_to = stack.sqs.create_queue(QueueName=name)["QueueUrl"]
        fire = Fire(stack, proxy, reply_to, SEED, say)
        try:
            fire.rage()
            found = gather(fire, OPERATORS)
        finally:
            shutil.copy(aws.log, log.with_name("emulator.log"))  # it goes with the emulator
        say(found.report())
        say(f"the logs are in {log.parent}")
        yield found


def impatient(folder: Path) -> Path:
    """The project with shorter times for what a worker's death would make the test wait for.

    And with more attempts: a call that hung, a worker that died, and a request that a busy machine
    read too late can come together on one step, which then rightly fails after three.
    """
    project = copied(folder)
    workflow = project / WORKFLOWS / "order_fulfilment.py"
    for refund_or_shipment in ("minutes=5", "minutes=2"):
        replace(workflow, refund_or_shipment, "minutes=1")
    replace(workflow, "max_attempts=5", "max_attempts=10")
    replace(workflow, "max_attempts=3", "max_attempts=10")
    for agent in ("inventory", "shipping"):
        bound = f'agent="{agent}",'
        replace(workflow, bound, f"{bound} retry=Retry(max_attempts=10),")
    return project


def subscribe(stack: DeployedStack) -> None:
    """The operators' queue gets what the AlertTopic gets."""
    url = stack.sqs.create_queue(QueueName=OPERATORS)["QueueUrl"]
    found = stack.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    stack.sns.subscribe(
        TopicArn=stack.output("AlertTopicArn"),
        Protocol="sqs",
        Endpoint=found["Attributes"]["QueueArn"],
    )


def differing(found: Mapping[str, object], expected: Mapping[str, object]) -> list[str]:
    return [name for name in {**found, **expected} if found.get(name) != expected.get(name)]


def test_there_was_a_fire(aftermath: Aftermath) -> None:
    """Or all that follows would prove little."""
    fire = aftermath.fire
    fired, calls = fire.proxy.fired(), fire.proxy.calls()
    assert set(calls) == {"dynamodb", "sqs", "sns"}, "functions call nothing else"
    assert set(summed(fired, 0)) == {"dynamodb", "sqs", "sns"}
    assert set(summed(fired, 1)) == {kind.name for kind in KINDS}
    assert fired.total() / calls.total() > 0.02  # gusts come by time, so a quick machine has fewer
    assert fire.kills.total() >= 10
    assert len(fire.restarts) == 1
    assert {"503", "loseAnswer", "truncate", "hang"} <= set(+fire.struck)
    kinds = Counter(row["Kind"] for row in aftermath.history)
    assert kinds["requeued"] > 0
    assert kinds["held"] > 0, "payment was down"


def test_no_order_is_lost_and_each_ends_as_its_kind_must(
    aftermath: Aftermath, record_property: Callable[[str, object], None]
) -> None:
    record_property("orders", len(aftermath.tasks))
    expected = {order_id: ending.state for order_id, ending in aftermath.fire.orders.items()}
    states = {order_id: task["State"] for order_id, task in aftermath.tasks.items()}
    assert states == expected, aftermath.stories(differing(states, expected))


def test_no_effect_happened_twice_and_nothing_stands_of_what_was_undone(
    aftermath: Aftermath,
) -> None:
    """By the services' own ledger: each effect of an order's kind once, and no other."""
    endings = aftermath.fire.orders.items()
    expected = {order_id: ending.effects for order_id, ending in endings if ending.effects}
    found = {order_id: effects for order_id, effects in aftermath.ledger.items() if effects}
    assert found == expected, aftermath.stories(differing(found, expected))


def test_messages_that_come_again_when_all_is_over_have_no_effect(aftermath: Aftermath) -> None:
    assert aftermath.duplicates.total() > 0, "no worker died over a message"
    assert aftermath.ledger == aftermath.ledger_at_the_end


def test_every_archived_orders_group_was_alerted_with_its_reason_and_no_other(
    aftermath: Aftermath,
) -> None:
    """One group, since all are refused alike: its alert stands for each of them."""
    archived = by_group(aftermath, "Archived")
    about = [alert for alert in aftermath.alerts if alert["alert"] == "task_archived"]
    assert {alert["group"] for alert in about if alert["news"] == "first"} == set(archived)
    for alert in about:
        assert alert["news"] in ("first", "update"), "no archived order has gone on"
        assert (alert["step"], alert["how"]) == ("send_confirmation", "archived")
        assert alert["severity"] == "error"
        members = archived[str(alert["group"])]
        assert cast("int", alert["count"]) <= len(members)
        assert sampled(alert) <= members
        assert cast("Row", alert["overSamples"])["undoFailed"] == {}


def test_undone_orders_were_alerted_only_where_many_were_undone_alike(
    aftermath: Aftermath,
) -> None:
    """How many came within ten minutes is the machine's; that fewer than so many did is not."""
    undone = by_group(aftermath, "Undone")
    about = [alert for alert in aftermath.alerts if alert["alert"] == "orders_undone"]
    firsts = {alert["group"] for alert in about if alert["news"] == "first"}
    assert {alert["group"] for alert in about} == firsts
    assert firsts <= {group for group, members in undone.items() if len(members) >= UNDONE_COUNT}
    for alert in about:
        members = undone[str(alert["group"])]
        clear = alert["news"] == "clear"
        assert alert["how"] == "undone"
        assert alert["severity"] == ("info" if clear else "warning")
        assert cast("int", alert["count"]) <= len(members)
        assert cast("int", alert["count"]) >= UNDONE_COUNT or alert["news"] != "first"
        assert clear or sampled(alert) <= members
        assert clear or cast("Row", alert["overSamples"])["undoFailed"] == {}


def test_nothing_else_was_alerted_than_failures_and_circuits(aftermath: Aftermath) -> None:
    about_orders, about_agents = (
        ("task_archived", "orders_undone"),
        ("breaker_opened", "breaker_closed"),
    )
    others = [
        alert
        for alert in aftermath.alerts
        if alert["alert"] not in (about_orders if "group" in alert else about_agents)
    ]
    assert others == []


def by_group(aftermath: Aftermath, state: str) -> dict[str, set[str]]:
    """The orders that ended in this state, by the group of their failure."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for order_id, task in aftermath.tasks.items():
        if task["State"] == state:
            found[str(task["FailureGroup"]).partition("#")[0]].add(order_id)
    return dict(found)


def sampled(alert: Row) -> set[str]:
    """The orders that an alert names; by their ids alone where they could not be read just then."""
    samples = cast("list[Row | str]", alert["samples"])
    return {each if isinstance(each, str) else str(each["orderId"]) for each in samples}


def test_every_application_got_the_ends_of_all_its_orders(aftermath: Aftermath) -> None:
    """Each status at least once; one that came twice was the same."""
    statuses: defaultdict[object, dict[int, object]] = defaultdict(dict)
    for status in aftermath.statuses:
        seq = cast("int", status["seq"])
        assert statuses[status["orderId"]].setdefault(seq, status["status"]) == status["status"]
    in_order = {task: [found[seq] for seq in sorted(found)] for task, found in statuses.items()}
    assert in_order == {
        order_id: ["received", "started", end]
        for order_id, end in aftermath.fire.ends_by_order.items()
    }


def test_nothing_is_left_aside(aftermath: Aftermath) -> None:
    """No message was unreadable; what was given up in the fire was handled once it was out.

    On a calm machine nothing is given up. On one that is busy with other things, a function may
    not come to its work five times in a row: such messages are redriven, counted and reported.
    """
    assert {queue: found for queue, found in aftermath.put_aside.items() if found} == {}
