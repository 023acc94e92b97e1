"""The checks of `roundsman preflight` that depend on the account's quota, region and versions."""

import subprocess
from pathlib import Path

import pytest

from roundsman_console.aws.versions import MOST_SNAPSHOTS, FunctionVersions
from roundsman_dev.preflight.documents import CheckStatus
from roundsman_dev.preflight.preflight import (
    PlannedStack,
    Quota,
    check_concurrency,
    check_snapstart,
    check_versions,
)

OK, WARNING, FAULT = CheckStatus.OK, CheckStatus.WARNING, CheckStatus.FAULT


def planned(
    cap: int = 2, *, reserved: int = 0, alarm_at: int | None = None, snap_starts: int = 0
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
    )


def test_the_least_caps_in_a_new_account_without_others_fail_no_order() -> None:
    found = check_concurrency(planned(), Quota(10, 10, []), exists=False)
    assert found.status is WARNING
    assert found.sentence == (
        "The stack runs at most 21 instances at once; 10 of the account's 10 are not reserved. No "
        "other function shares them, so that under load orders come late, and none fails."
    )
    assert "Until then" not in str(found.do), "nothing can be lower"
    larger = check_concurrency(planned(3), Quota(10, 10, []), exists=False)
    assert larger.sentence.endswith("and a step with few attempts may fail.")
    assert "Until then: set SmallAccount of the block Engine to true" in str(larger.do)


def test_what_is_asked_for_is_the_usual_quota_or_more() -> None:
    assert "--desired-value 1000." in str(
        check_concurrency(planned(), Quota(10, 10, []), exists=False).do
    )
    many = check_concurrency(planned(200), Quota(1000, 1000, []), exists=False)
    assert "--desired-value 2502." in str(many.do)


@pytest.mark.parametrize(
    ("quota", "status"),
    [
        (Quota(10, 0, []), FAULT),
        (Quota(1000, 0, []), FAULT),
        (Quota(10, 1, []), WARNING),
        (Quota(10, 10, ["a"]), FAULT),
        (Quota(10, 10, None, "refused"), FAULT),
        (Quota(21, 21, None), WARNING),
        (Quota(1000, 1000, None), OK),
    ],
)
def test_only_an_account_in_which_orders_could_not_run_or_that_is_shared_is_a_fault(
    quota: Quota, status: CheckStatus
) -> None:
    assert check_concurrency(planned(), quota, exists=False).status is status


@pytest.mark.parametrize(
    ("reserved", "quota", "exists", "status"),
    [
        (2, Quota(10, 10, []), False, FAULT),
        (2, Quota(100, 100, []), False, FAULT),
        (2, Quota(102, 102, []), False, OK),
        (2, Quota(102, 100, []), True, OK),
        (2, Quota(102, 100, []), False, FAULT),
        (0, Quota(100, 100, []), False, OK),
    ],
)
def test_a_reservation_that_lambda_refuses_is_a_fault(
    reserved: int, quota: Quota, exists: bool, status: CheckStatus
) -> None:
    """Lambda keeps 100 for functions without one; what the stack has reserved already stays."""
    assert check_concurrency(planned(reserved=reserved), quota, exists=exists).status is status


@pytest.mark.parametrize(
    ("alarm_at", "status"), [(800, WARNING), (100, WARNING), (99, OK), (None, OK)]
)
def test_an_alarm_on_the_accounts_instances_that_cannot_ring_is_a_warning(
    alarm_at: int | None, status: CheckStatus
) -> None:
    found = check_concurrency(planned(alarm_at=alarm_at), Quota(100, 100), exists=True)
    assert found.status is status
    if status is WARNING:
        assert found.do == "Set ConcurrencyAlarmInstances of the block Engine to 80."


def versions(*numbers: int, running: int, snapshots: bool = False) -> FunctionVersions:
    kept = numbers if snapshots else ()
    return FunctionVersions("Pay", "shop-Pay", running, numbers, snapshots=kept)


@pytest.mark.parametrize("region", ["ap-east-2", "ap-southeast-6"])
def test_snapstart_in_a_region_that_has_none_is_a_warning(region: str) -> None:
    assert check_snapstart(planned(snap_starts=6), region, ()).status is WARNING
    assert check_snapstart(planned(snap_starts=6), "eu-west-1", ()).status is OK
    assert check_snapstart(planned(), region, ()).status is OK, "it is off"


def test_snapshots_that_pile_up_are_a_warning_with_the_command_that_removes_them() -> None:
    few = versions(*range(1, MOST_SNAPSHOTS + 1), running=MOST_SNAPSHOTS, snapshots=True)
    assert check_snapstart(planned(snap_starts=1), "eu-west-1", [few]).status is OK
    many = versions(1, 2, 3, 4, running=4, snapshots=True)
    found = check_snapstart(planned(snap_starts=1), "eu-west-1", [many])
    assert (found.status, found.details) == (WARNING, ["Pay: 4 versions"])
    assert "for v in 1 2; do" in str(found.do), "3 ran before, and rollback needs it"
    gone_back = versions(1, 2, 3, 4, 5, running=4, snapshots=True)
    assert gone_back.superfluous == [1, 2]
    assert check_snapstart(planned(), "eu-west-1", [many]).status is OK


def test_all_versions_that_were_never_live_are_named_and_removed() -> None:
    found = check_versions([versions(6, 7, 8, 9, running=7), versions(1, running=1)])
    assert found.status is WARNING
    assert found.details == ["Pay runs version 7; versions 8, 9 were never live."]
    assert "for v in 8 9; do" in str(found.do)


def test_the_command_that_removes_versions_is_one_for_each(tmp_path: Path) -> None:
    """It is run by a shell, with another program in place of the AWS CLI."""
    aws = tmp_path / "aws"
    aws.write_text('#!/bin/sh\necho "$@"\n')
    aws.chmod(0o755)
    command = check_versions([versions(6, 7, 8, 9, running=7)]).do
    line = str(command).partition("Remove it: ")[2]
    shell = ["/bin/sh", "-c", line]
    done = subprocess.run(shell, env={"PATH": str(tmp_path)}, capture_output=True, check=True)
    assert done.stdout.decode().splitlines() == [
        "lambda delete-function --function-name shop-Pay --qualifier 8",
        "lambda delete-function --function-name shop-Pay --qualifier 9",
    ]
