"""The guards of an audit: it accuses no order of what only seems so."""

from tools.mutants.mutant import Mutant

READING = "console/roundsman_console/facts/audit/reading.py"
TESTS = "tests/console/test_audit.py"
CHECKS = "tests/unit/console/audit/test_checks.py"

AUDIT = (
    Mutant(
        name="an-order-that-seems-to-break-a-promise-is-read-again",
        file=READING,
        old="if isinstance(found, UnreadOrder) or not found[1].broken:",
        new="if True:",
        tests=(f"{TESTS}::test_an_order_that_changes_while_it_is_read_is_read_again",),
        why="an order that is cancelled between two reads is called a violation",
    ),
    Mutant(
        name="what-keeps-changing-is-not-judged",
        file=READING,
        old="if not isinstance(found, UnreadOrder) and _is_same(before, found[0]):",
        new="if not isinstance(found, UnreadOrder):",
        tests=(f"{TESTS}::test_what_keeps_changing_or_cannot_be_read_is_not_judged",),
        why="two reads of two versions are held against each other",
    ),
    Mutant(
        name="a-row-that-cannot-be-read-is-not-missing",
        file=READING,
        old="return UnreadOrder(before.task.task_id, NO_ROW)",
        new="pass",
        tests=(f"{TESTS}::test_a_row_that_cannot_be_read_is_not_taken_for_a_missing_one",),
        why="an order row of a newer version is reported as lost",
    ),
    Mutant(
        name="the-times-of-an-undo-are-not-those-of-a-perform",
        file="console/roundsman_console/facts/audit/record_checks.py",
        old="if record.process_state in CLAIMED and begun > SKEW:",
        new="if begun > SKEW:",
        tests=(f"{CHECKS}::test_an_item_that_is_undone_after_its_time_was_not_begun_then",),
        why="an item that was left out counts as begun after the task's time",
    ),
    Mutant(
        name="contents-are-left-out-of-what-is-judged",
        file="console/roundsman_console/facts/audit/stored_order.py",
        old='return text if text in ("", ERASED) else LEFT_OUT',
        new="return text",
        tests=(f"{CHECKS}::test_nothing_of_an_order_is_left_in_what_the_checks_see",),
        why="the file of an audit has the reasons of failures and commands",
    ),
)
