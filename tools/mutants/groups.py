"""The guards of failure groups: that there is one alert for every failure."""

from tools.mutants.mutant import Mutant

TESTS = "tests/unit/alerts/test_census.py"
PURE = "tests/unit/alerts/test_group.py"

GROUPS = (
    Mutant(
        name="a-failure-is-settled-only-once-its-group-is-open",
        file="layers/core/roundsman/alerts/reporter.py",
        old="                found = self._groups.open(group)\n",
        new="                found = group\n",
        tests=(
            "tests/unit/scheduler/test_owed.py::test_a_failure_is_settled_once_its_group_is_open_and_not_before",
        ),
        why="an archived order without an alert",
    ),
    Mutant(
        name="a-pass-alerts-of-a-group-without-an-alert",
        file="layers/core/roundsman/alerts/group.py",
        old="    if group.alerted_at is None and not group.undone:\n        return _alert(",
        new="    if False:\n        return _alert(",
        tests=(
            f"{TESTS}::test_a_group_whose_opener_dies_is_alerted_by_the_next_pass_once_it_may_be",
        ),
        why="a crash between opening a group and alerting loses the alert",
    ),
    Mutant(
        name="only-whoever-stored-its-alerting-alerts",
        file="layers/core/roundsman/alerts/census.py",
        old="        if self._groups.change(verdict.group, seen=group.version):\n",
        new="        if self._groups.change(verdict.group, seen=group.version) or True:\n",
        tests=(f"{TESTS}::test_of_two_passes_that_see_one_unreported_group_one_alerts",),
        why="two supervisors both alert",
    ),
    Mutant(
        name="a-group-in-which-one-more-fails-is-not-calm",
        file="layers/core/roundsman/alerts/group.py",
        old="    if group.clear_since is None:\n        return None\n",
        new="    if group.clear_since is None or True:\n        return None\n",
        tests=(
            f"{TESTS}::test_what_fails_into_a_calm_group_takes_its_calm_back_so_it_is_not_closed_under_it",
        ),
        why="a group is closed over an order that has just failed in it",
    ),
    Mutant(
        name="a-closed-group-is-opened-anew",
        file="layers/core/roundsman/alerts/reporter.py",
        old="            if found.closed_at is not None:\n",
        new="            if False:\n",
        tests=(
            f"{TESTS}::test_what_fails_into_a_group_that_was_just_closed_opens_it_anew_and_alerts",
        ),
        why="an order fails into a group that is forgotten a moment later",
    ),
    Mutant(
        name="the-all-clear-waits",
        file="layers/core/roundsman/alerts/group.py",
        old="    if quiet < CLEAR_FOR:\n",
        new="    if quiet < 0:\n",
        tests=(f"{PURE}::test_the_all_clear_comes_once_no_member_was_there_for_some_minutes",),
        why="a canary that fails is an all-clear and an alert, again and again",
    ),
    Mutant(
        name="an-open-group-is-remembered",
        file="layers/core/roundsman/alerts/reporter.py",
        old="            if self._known.get(group.id, 0) > now:\n",
        new="            if False:\n",
        tests=(
            f"{TESTS}::test_ten_thousand_failures_alike_cost_one_instance_a_read_every_few_seconds",
        ),
        why="each failing order reads all groups",
    ),
    Mutant(
        name="a-pass-counts-a-bounded-number-of-groups",
        file="layers/core/roundsman/alerts/census.py",
        old="waiting[:MOST_LOOKS]",
        new="waiting",
        tests=(f"{TESTS}::test_a_pass_reads_the_groups_once_and_counts_a_bounded_number_of_them",),
        why="a hundred groups leave a pass no time for the orders",
    ),
    Mutant(
        name="what-stands-in-the-overflow-says-so",
        file="layers/core/roundsman/scheduler/owed.py",
        old="            task = replace(task, failure=stands_in)\n",
        new="            pass\n",
        tests=(
            f"{TESTS}::test_beyond_a_hundred_kinds_the_rest_are_one_group_and_say_so_in_their_records",
        ),
        why="the overflow group has no members, so it is reported as cleared",
    ),
    Mutant(
        name="a-row-of-groups-has-its-bound",
        file="layers/core/roundsman/aws/dynamodb/groups.py",
        old='ConditionExpression=f"{IS_NOT_OPEN} AND {THERE_IS_ROOM}"',
        new="ConditionExpression=IS_NOT_OPEN",
        tests=(
            "tests/contract/test_groups.py::test_orders_that_are_undone_leave_room_for_failures[dynamodb_local]",
        ),
        why="texts that never repeat fill the row, and then nothing is alerted",
    ),
    Mutant(
        name="words-are-inert",
        file="layers/core/roundsman/wire/alert_email.py",
        old='c if c.isprintable() else "?" for c in text',
        new="c for c in text",
        tests=(
            "tests/unit/alerts/test_group_alert.py::test_nothing_from_outside_moves_a_cursor_hides_a_line_or_turns_the_writing_round",
        ),
        why="an error's message writes its own commands into the mail",
    ),
)
