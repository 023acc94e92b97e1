"""What the checks of `roundsman preflight` find: each row of its table, and what is just none."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from roundsman.aws.outputs import StackDescription
from roundsman_console.aws.subscriptions import Subscriptions
from roundsman_console.aws.versions import MOST_SNAPSHOTS, FunctionVersions
from roundsman_console.facts.finding.table import FindingKind, Severity, Trouble
from roundsman_dev.preflight.checks import (
    PlannedStack,
    Quota,
    check_alerts,
    check_concurrency,
    check_keys,
    check_name,
    check_orders,
    check_parameters,
    check_snapstart,
    check_stack,
    check_versions,
)
from roundsman_dev.preflight.documents import CheckOutcome, CheckStatus
from roundsman_dev.preflight.open_orders import Function, OrdersRead
from roundsman_dev.preflight.table import Obstacle
from tests.support.machine_world import World, plan, step

FREE = Quota(1000, 1000, [])
TOPIC = "arn:aws:sns:eu-west-1:1:alerts"


def planned(  # the columns of a plan that a check reads
    cap: int = 2,
    *,
    reserved: int = 0,
    alarm_at: int | None = None,
    snap_starts: int = 0,
    names: tuple[str, ...] = (),
    required: tuple[str, ...] = (),
    sources: dict[str, list[str]] | None = None,
    placeholders: tuple[str, ...] = (),
    **parameters: str,
) -> PlannedStack:
    queues = [f"{agent}{queue}" for agent in "ABCD" for queue in ("RequestQueue", "ReplyQueue")]
    return PlannedStack(
        stack="shop",
        environment="default",
        caps=dict.fromkeys([*queues, "SubmissionQueue", "SchedulerQueue"], cap),
        others=1,
        reserved=reserved,
        alarm_at=alarm_at,
        snap_starts=snap_starts,
        name_problems=names,
        required=required,
        event_accounts=sources or {},
        placeholders=placeholders,
        parameters=parameters,
    )


def room(
    quota: Quota,
    *,
    exists: bool = False,
    cap: int = 2,
    reserved: int = 0,
    alarm_at: int | None = None,
) -> CheckOutcome:
    """The check of the account's concurrency: the stack needs 21 instances with caps of 2."""
    wanted = planned(cap, reserved=reserved, alarm_at=alarm_at)
    return check_concurrency(wanted, quota, exists=exists)


def deployed(protection: str, *outputs: str) -> StackDescription:
    """The stack as it is deployed."""
    return StackDescription(
        arn="arn:aws:cloudformation:eu-west-1:1:stack/shop/0a1b",
        status="UPDATE_COMPLETE",
        outputs=dict.fromkeys(outputs, "x"),
        parameters={"DeletionProtection": protection},
    )


def updated(given: str, kept: str) -> CheckOutcome:
    """The check of a stack that is deployed, with this protection of its tables."""
    wanted = planned(DeletionProtection=given)
    return check_stack(wanted, deployed(kept, "TasksTableName"))


def created(given: str) -> CheckOutcome:
    return check_stack(planned(DeletionProtection=given), None)


def told(*pending: str, confirmed: int = 0) -> CheckOutcome:
    return check_alerts(planned(), TOPIC, Subscriptions(confirmed, pending))


def versions(*numbers: int, running: int, snapshots: bool = False) -> FunctionVersions:
    kept = numbers if snapshots else ()
    return FunctionVersions("Pay", "shop-Pay", running, numbers, snapshots=kept)


def snaps(region: str, *found: FunctionVersions, functions: int = 6) -> CheckOutcome:
    return check_snapstart(planned(snap_starts=functions), region, found)


def losing(*kept: Function) -> CheckOutcome:
    world = World(plan(step("a")))
    return check_orders(kept, OrdersRead([world.task], {world.plan.hash: world.plan}))


MANY = versions(1, 2, 3, 4, running=4, snapshots=True)
FEW = versions(*range(1, MOST_SNAPSHOTS + 1), running=MOST_SNAPSHOTS, snapshots=True)
NOBODY: dict[str, object] = {"key": {"Statement": []}}

FOUND: dict[Trouble, tuple[Callable[[], CheckOutcome], ...]] = {
    Obstacle.NAME_REFUSED: (lambda: check_name(planned(names=("too long",))),),
    Obstacle.PARAMETERS_REFUSED: (lambda: check_parameters(planned(required=("Url",)), {}),),
    Obstacle.SOURCES_FOREIGN: (
        lambda: check_parameters(planned(sources={"9": ["topic of SNS"]}), {}, "1"),
    ),
    Obstacle.PLACEHOLDERS_LEFT: (
        lambda: check_parameters(planned(placeholders=("Url",), Url="https://example.com"), {}),
    ),
    Obstacle.ANOTHER_STACK: (lambda: check_stack(planned(), deployed("true", "Website")),),
    Obstacle.PROTECTED_TOO_EARLY: (lambda: created("true"),),
    Obstacle.PROTECTION_LOST: (lambda: updated("later", "true"),),
    Obstacle.PROTECTION_GIVEN_UP: (lambda: updated("false", "true"),),
    FindingKind.PROTECTION_OFF: (lambda: updated("later", "later"),),
    Obstacle.NO_CONCURRENCY: (lambda: room(Quota(10, 0, [])), lambda: room(Quota(1000, 0, []))),
    # Lambda keeps 100 for functions without a reservation; what is reserved already stays.
    Obstacle.RESERVATION_REFUSED: (
        lambda: room(Quota(10, 10, []), reserved=2),
        lambda: room(Quota(100, 100, []), reserved=2),
        lambda: room(Quota(102, 100, []), reserved=2),
    ),
    Obstacle.CONCURRENCY_SHARED: (
        lambda: room(Quota(10, 10, ["a"])),
        lambda: room(Quota(10, 10, None, "refused")),
    ),
    Obstacle.CONCURRENCY_SHORT: (lambda: room(Quota(10, 10, []), cap=3),),
    Obstacle.CONCURRENCY_LEAST: (lambda: room(Quota(10, 10, [])), lambda: room(Quota(10, 1, []))),
    Obstacle.ALARM_NEVER_RAISED: (
        lambda: room(Quota(100, 100), alarm_at=800),
        lambda: room(Quota(100, 100), alarm_at=100),
    ),
    Obstacle.CONCURRENCY_CROWDED: (lambda: room(Quota(21, 21)),),
    Obstacle.ALERTS_NOT_SENT: (lambda: check_alerts(planned(), "", None),),
    Obstacle.SUBSCRIPTIONS_PENDING: (
        lambda: told("email a@b"),
        lambda: told("email a@b", confirmed=1),
    ),
    FindingKind.ALERTS_UNHEARD: (told,),
    Obstacle.KEYS_REFUSE: (lambda: check_keys(NOBODY),),
    Obstacle.SNAPSTART_UNKNOWN: (lambda: snaps("ap-east-2"), lambda: snaps("ap-southeast-6")),
    FindingKind.SNAPSHOTS_PILE_UP: (lambda: snaps("eu-west-1", FEW, MANY),),
    FindingKind.ORPHAN_VERSION: (lambda: check_versions([versions(1, 2, running=1)]),),
    Obstacle.FUNCTIONS_LOST: (losing,),
}
"""Each row that a check finds, with what has it."""

WELL: tuple[Callable[[], CheckOutcome], ...] = (
    lambda: check_name(planned()),
    lambda: check_parameters(planned(required=("Url",)), {"Url": "x"}),
    lambda: check_parameters(planned(sources={"1": ["topic of SNS"]}), {}, "1"),
    lambda: check_parameters(planned(sources={"9": ["topic of SNS"]}), {}),
    lambda: created("later"),
    lambda: created("false"),
    lambda: updated("true", "later"),
    lambda: updated("true", "true"),
    lambda: updated("false", "later"),
    lambda: room(FREE),
    lambda: room(Quota(102, 102, []), reserved=2),
    lambda: room(Quota(102, 100, []), reserved=2, exists=True),
    lambda: room(Quota(100, 100), alarm_at=99),
    lambda: check_alerts(planned(AlertEmail="ops@shop.test"), "", None),
    lambda: told(confirmed=1),
    lambda: check_keys({}),
    lambda: snaps("ap-east-2", functions=0),
    lambda: snaps("eu-west-1", MANY, functions=0),
    lambda: snaps("eu-west-1", FEW),
    lambda: check_versions([versions(1, running=1)]),
    lambda: losing(Function("worker", "a", "perform")),
)
"""What is just no trouble."""


@pytest.mark.parametrize(
    ("row", "outcome"), [(row, each) for row, all_of in FOUND.items() for each in all_of]
)
def test_a_check_says_its_row_with_what_it_knows(
    row: Trouble, outcome: Callable[[], CheckOutcome]
) -> None:
    found = outcome()
    assert (found.finding, found.page) == (row, row.page)
    stops = isinstance(row, Obstacle) and row.severity is Severity.CRITICAL
    assert found.status is (CheckStatus.FAULT if stops else CheckStatus.WARNING)
    assert found.do
    assert "{" not in f"{found.sentence} {found.do}".replace("${AWS::AccountId}", "")


@pytest.mark.parametrize("outcome", WELL)
def test_what_is_just_no_trouble_is_ok(outcome: Callable[[], CheckOutcome]) -> None:
    found = outcome()
    assert (found.status, found.finding, found.do) == (CheckStatus.OK, None, None)


def test_a_small_account_says_what_happens_under_load_and_what_is_lower() -> None:
    found = room(Quota(10, 10, []))
    assert found.sentence == (
        "The stack runs at most 21 instances at once; 10 of the account's 10 are not reserved. No "
        "other function shares them, so that under load orders come late, and none fails."
    )
    assert "Until then" not in str(found.do), "nothing can be lower"
    larger = room(Quota(10, 10, []), cap=3)
    assert larger.sentence.endswith("and a step with few attempts may fail.")
    assert "Until then: set SmallAccount of the block Engine to true" in str(larger.do)
    assert "--desired-value 1000." in str(found.do), "the usual quota, or more"
    assert "--desired-value 2502." in str(room(Quota(1000, 1000, []), cap=200).do)
    silent = room(Quota(100, 100), alarm_at=100)
    assert silent.do == "Set ConcurrencyAlarmInstances of the block Engine to 80."


def test_snapshots_that_pile_up_have_the_command_that_removes_them() -> None:
    found = snaps("eu-west-1", MANY)
    assert found.details == ["Pay: 4 versions keep a snapshot each"]
    assert "for v in 1 2; do" in str(found.do), "3 ran before, and rollback needs it"
    assert versions(1, 2, 3, 4, 5, running=4, snapshots=True).superfluous == [1, 2], "gone back"


def test_the_command_that_removes_versions_is_one_for_each(tmp_path: Path) -> None:
    """It is run by a shell, with another program in place of the AWS CLI."""
    aws = tmp_path / "aws"
    aws.write_text('#!/bin/sh\necho "$@"\n')
    aws.chmod(0o755)
    found = check_versions([versions(6, 7, 8, 9, running=7), versions(1, running=1)])
    assert found.details == ["Pay: version 9 is newer than 7, which runs"]
    line = str(found.do)[str(found.do).index("for v in ") :]
    shell = ["/bin/sh", "-c", line]
    done = subprocess.run(shell, env={"PATH": str(tmp_path)}, capture_output=True, check=True)
    assert done.stdout.decode().splitlines() == [
        "lambda delete-function --function-name shop-Pay --qualifier 8",
        "lambda delete-function --function-name shop-Pay --qualifier 9",
    ]
