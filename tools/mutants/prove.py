"""The guards of a proof: it removes nothing of others, and it judges by what it must."""

from tools.mutants.mutant import Mutant

REMOVAL = "console/roundsman_dev/prove/removal.py"
CHECKS = "console/roundsman_dev/prove/checks.py"
LEDGER = "console/roundsman_dev/prove/application/ledger.py"
COMMAND = "console/roundsman_dev/prove/command.py"
LOGS = "console/roundsman_dev/prove/function_logs.py"
LOG_CHECKS = "console/roundsman_dev/prove/log_checks.py"
RUN = "console/roundsman_dev/prove/run.py"
FAULTS = "console/roundsman_dev/prove/faults.py"
PROVING = "tests/console/test_proving.py"
PLANTS = "tests/unit/console/prove/test_plants.py"
FAULT_TESTS = "tests/unit/console/prove/test_faults.py"
SERVICES = "tests/unit/console/prove/test_services.py"

PROVE = (
    Mutant(
        name="a-stack-without-the-tag-of-a-proof-is-not-deleted",
        file=REMOVAL,
        old="if not _is_of_a_proof(found):",
        new="if False:",
        tests=(f"{PROVING}::test_a_stack_without_the_tag_is_not_removed_and_is_named",),
        why="a stack that somebody gave the name of a proof is deleted",
    ),
    Mutant(
        name="a-record-names-only-tables-of-its-proof",
        file=REMOVAL,
        old='if not all(one.startswith(f"{record.run}-") for one in record.tables):',
        new="if False:",
        tests=(f"{PROVING}::test_a_record_that_names_something_else_is_refused",),
        why="a file that somebody wrote into the folder deletes the tables of another stack",
    ),
    Mutant(
        name="the-record-of-what-is-left-stays",
        file=COMMAND,
        old="if left:\n        record.write(folder)",
        new="if False:\n        record.write(folder)",
        tests=(f"{PROVING}::test_what_is_left_is_named_and_its_record_stays",),
        why="what could not be removed is found by nothing any more",
    ),
    Mutant(
        name="an-undone-key-is-fenced",
        file=LEDGER,
        old='"attribute_not_exists(UndoneAt) "',
        new='"attribute_not_exists(NotAnAttribute) "',
        tests=(f"{SERVICES}::test_a_key_that_was_undone_is_refused_for_ever",),
        why="the services of a proof have an effect after its undo, and Roundsman is blamed",
    ),
    Mutant(
        name="what-could-not-be-read-is-not-lost",
        file=CHECKS,
        old="sorted(sent - stored.keys() - document.unread.keys())",
        new="sorted(sent - stored.keys())",
        tests=(f"{PLANTS}::test_what_could_not_be_read_is_no_violation",),
        why="an order that cannot be read is called lost",
    ),
    Mutant(
        name="a-log-line-with-contents-is-found",
        file=LOGS,
        old="tells = MARKER in text",
        new="tells = False",
        tests=(f"{PLANTS}::test_a_planted_fault_is_reported_by_its_promise",),
        why="a proof says that the logs have nothing of an order, whatever they have",
    ),
    Mutant(
        name="a-failure-that-no-fault-made-is-reported",
        file=LOG_CHECKS,
        old="if one.because is not None or one.what == THROTTLED:",
        new="if True:",
        tests=(f"{PLANTS}::test_a_planted_fault_is_reported_by_its_promise",),
        why="a function that fails by itself is taken for one that a fault made fail",
    ),
    Mutant(
        name="no-more-orders-are-open-than-may-be",
        file=RUN,
        old="if not self._has_room(stack, by):",
        new="if False:",
        tests=(f"{PROVING}::test_no_more_orders_are_open_than_may_be",),
        why="a backlog becomes longer than the time of a workflow, and undoes healthy orders",
    ),
    Mutant(
        name="a-table-gets-its-maximum-back",
        file=FAULTS,
        old="_surely(take_back)",
        new="pass",
        tests=(f"{FAULT_TESTS}::test_a_table_has_its_maximum_only_for_the_time_of_the_fault",),
        why="the table of a proof stays limited, and its orders do not end in time",
    ),
    Mutant(
        name="dead-requests-are-no-loss",
        file=CHECKS,
        old="if queue.dead and not queue.has_requests:",
        new="if queue.dead:",
        tests=(f"{PLANTS}::test_a_request_that_was_given_up_is_no_loss",),
        why="a request that the supervisor replaced is called a loss",
    ),
)
