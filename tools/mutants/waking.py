"""The guards of waking what a hold has parked: in time, in its order, at the rate."""

from tools.mutants.mutant import Mutant

WAKING = (
    Mutant(
        name="an-end-by-time-is-an-end",
        file="layers/core/roundsman/model/wakes.py",
        old='        + ("" if hold.until <= now else "/in force")\n',
        new="",
        tests=(
            "tests/unit/model/test_wakes.py::test_a_hold_on_orders_that_ends_by_itself_is_another_end_than_its_share",
        ),
        why="what waits is not woken when a hold runs out after a share",
    ),
    Mutant(
        name="a-trial-is-no-end",
        file="layers/core/roundsman/supervisor/wakes.py",
        old=(
            "            elif one.on_trial:\n"
            "                self._try(one, before, wake, parked, report)\n"
        ),
        new="",
        tests=(
            "tests/unit/supervisor/test_wakes.py::test_one_order_tries_a_circuit_whose_recovery_time_is_over_and_it_is_the_urgent_one",
        ),
        why="all orders call a service that may still be down",
    ),
    Mutant(
        name="woken-when-all-know",
        file="layers/core/roundsman/supervisor/wakes.py",
        old="            begin = max(begin, wake.seen_at + KNOWN_AFTER)\n",
        new="            begin = now\n",
        tests=(
            "tests/unit/supervisor/test_wakes.py::test_what_waits_is_woken_when_every_scheduler_knows_of_the_end_at_the_rate",
        ),
        why="a scheduler with an old view parks again what was woken",
    ),
    Mutant(
        name="one-supervisor-wakes",
        file="layers/core/roundsman/supervisor/wakes.py",
        old=(
            "        if not self._ports.wakes.write(ended.target, moved_on, before=before):\n"
            "            return  # another supervisor wakes them\n"
        ),
        new="        self._ports.wakes.write(ended.target, moved_on, before=before)\n",
        tests=("tests/unit/supervisor/test_wakes.py::test_of_two_supervisors_one_sends",),
        why="two supervisors wake each order twice",
    ),
    Mutant(
        name="a-wake-is-repeated",
        file="layers/core/roundsman/supervisor/wakes.py",
        old="        done=nothing or wake.round + 1 >= LAST_ROUND,\n",
        new="        done=True,\n",
        tests=(
            "tests/unit/supervisor/test_wakes.py::test_what_still_waits_is_looked_at_by_the_supervisor_itself_after_five_minutes",
        ),
        why="an order whose wake is lost waits for an hour or a day",
    ),
    Mutant(
        name="a-visit-has-an-end",
        file="layers/core/roundsman/supervisor/wakes.py",
        old=(
            "                if self._ports.clock() >= times.stop_at:\n                    return\n"
        ),
        new="",
        tests=(
            "tests/unit/supervisor/test_wakes.py::test_a_supervisor_whose_time_is_over_looks_at_no_more",
        ),
        why="a pass is killed in the middle of a round",
    ),
    Mutant(
        name="circuit-trials-double",
        file="layers/core/roundsman/supervisor/wakes.py",
        old="        most = 2 ** min(wake.trials, MOST_TRIALS)\n",
        new="        most = 1\n",
        tests=(
            "tests/unit/supervisor/test_wakes.py::test_if_nothing_is_heard_twice_as_many_are_looked_at_each_time",
        ),
        why="a circuit whose trials are lost stays open",
    ),
    Mutant(
        name="woken-at-the-rate",
        file="layers/core/roundsman/supervisor/parked.py",
        old="            (entry.task_id, max(0, begin - now) + place * SECOND // A_SECOND)\n",
        new="            (entry.task_id, max(0, begin - now))\n",
        tests=(
            "tests/unit/supervisor/test_wakes.py::test_what_waits_is_woken_when_every_scheduler_knows_of_the_end_at_the_rate",
        ),
        why="orders that were parked starve healthy ones",
    ),
    Mutant(
        name="longest-waiting-first",
        file="layers/core/roundsman/supervisor/parked.py",
        old="        return merge(*lanes, key=lambda entry: entry.since)\n",
        new="        return (entry for lane in lanes for entry in lane)\n",
        tests=(
            "tests/unit/supervisor/test_wakes.py::test_urgent_orders_come_first_then_those_that_have_waited_longest",
        ),
        why="the order that has waited longest goes on last",
    ),
    Mutant(
        name="several-are-woken-too",
        file="layers/core/roundsman/supervisor/parked.py",
        old="            for each in (target, SEVERAL)\n",
        new="            for each in (target,)\n",
        tests=(
            "tests/unit/supervisor/test_wakes.py::test_urgent_orders_come_first_then_those_that_have_waited_longest",
        ),
        why="a task that waits for two agents is woken by neither",
    ),
    Mutant(
        name="who-is-held-is-not-woken",
        file="layers/core/roundsman/supervisor/parked.py",
        old="                if not held or self._goes_on(entry.task_id, held):\n",
        new="                if entry:\n",
        tests=(
            "tests/unit/supervisor/test_wakes.py::test_of_the_orders_that_wait_for_holds_on_orders_those_are_woken_that_none_is_on",
        ),
        why="orders are woken in vain, over and over",
    ),
)
