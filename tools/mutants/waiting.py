"""The guards of waiting for an order: what became of it, and the rejections that are kept."""

from tools.mutants.mutant import Mutant

CLIENT = "layers/core/roundsman/client.py"
SUBMISSION = "layers/core/roundsman/submission/submission.py"
HANDLER = "layers/core/roundsman/aws/handlers/submission.py"
REJECTIONS = "layers/core/roundsman/aws/dynamodb/rejections.py"
KEPT = "layers/core/roundsman/submission/rejections.py"

TESTS = "tests/unit/test_client.py"
STACK_TESTS = "tests/moto/test_client.py"
ROW_TESTS = "tests/contract/test_rejections.py"
ORDER_FIRST = f"{TESTS}::test_an_order_counts_before_a_rejection_of_another_event_with_its_id"

WAITING = (
    Mutant(
        name="an-order-counts-before-a-rejection",
        file=CLIENT,
        old="            if not self._store().has_order(order_id):\n",
        new="            if rejected or not self._store().has_order(order_id):\n",
        tests=(ORDER_FIRST,),
        why="an order that was charged is called rejected, and is sent again under another id",
    ),
    Mutant(
        name="an-order-that-was-just-stored-is-read-again",
        file=CLIENT,
        old="            status = self.status(order_id)  # order and task",
        new="            # order and task",
        tests=(f"{TESTS}::test_an_order_that_is_stored_between_two_reads_has_not_ended",),
        why="an order that has just begun is called ended and removed",
    ),
    Mutant(
        name="an-order-that-was-never-stored-has-not-ended",
        file=CLIENT,
        old="                return rejected\n",
        new="                return rejected or OrderRemoved(order_id)\n",
        tests=(f"{TESTS}::test_an_order_that_is_never_known_is_waited_for_to_the_end",),
        why="an order whose event waits in the queue is called ended",
    ),
    Mutant(
        name="the-last-read-of-a-wait-raises",
        file=CLIENT,
        old="                if left <= 0:\n                    raise\n",
        new="",
        tests=(f"{TESTS}::test_a_read_that_fails_to_the_end_is_raised",),
        why="a table that cannot be read looks as an order that was never heard of",
    ),
    Mutant(
        name="a-rejection-is-that-of-the-event-sent",
        file=CLIENT,
        old="        message_id = message_id or self._sent.get(order_id)\n",
        new="",
        tests=(f"{STACK_TESTS}::test_a_rejection_is_that_of_the_event_that_was_sent",),
        why="a corrected order is called rejected because of the event before",
    ),
    Mutant(
        name="a-rejection-ends-after-a-day",
        file=REJECTIONS,
        old="        if rejected_at + REJECTION_KEPT_FOR <= now:\n            return None\n",
        new="",
        tests=(f"{ROW_TESTS}::test_a_rejection_is_kept_for_a_day",),
        why="how long a rejection counts depends on when DynamoDB removes its row",
    ),
    Mutant(
        name="a-rejection-has-a-row-of-its-message",
        file=REJECTIONS,
        old="for row in (_of_message(rejection.message_id), _of_order(rejection.order_id)):",
        new="for row in (_of_order(rejection.order_id),):",
        tests=(
            f"{ROW_TESTS}::test_a_later_rejection_of_an_order_leaves_that_of_the_earlier_message",
        ),
        why="a sender never learns of its rejection, because another event has its id",
    ),
    Mutant(
        name="a-rejection-that-is-kept-is-short",
        file=KEPT,
        old=(
            "    kept = [Problem(one.path[:LONGEST_PATH], one.message[:LONGEST_PROBLEM]) "
            "for one in problems]\n"
        ),
        new="    kept = list(problems)\n",
        tests=(f"{ROW_TESTS}::test_a_rejection_that_is_long_is_cut",),
        why="the rejection of a large event is larger than what DynamoDB stores",
    ),
    Mutant(
        name="only-an-order-has-a-rejection",
        file=HANDLER,
        old="    if rejected.order_id is None or not rejected.is_order:\n",
        new="    if rejected.order_id is None:\n",
        tests=(f"{STACK_TESTS}::test_no_rejection_is_kept_of_what_is_no_order",),
        why="who waits for an order on its way learns that a signal to it was wrong",
    ),
    Mutant(
        name="a-rejection-that-cannot-be-kept-is-one",
        file=HANDLER,
        old="    except (TryAgain, CallRefused) as error:\n        logger().warning(",
        new="    except ZeroDivisionError as error:\n        logger().warning(",
        tests=(f"{STACK_TESTS}::test_an_order_is_rejected_also_if_that_cannot_be_kept",),
        why="a wrong order comes again and again while ControlTable refuses writes",
    ),
    Mutant(
        name="a-signal-waits-for-its-order",
        file=SUBMISSION,
        old="        if waited_since is not None and now - waited_since >= WAITS_FOR_ORDER:\n",
        new="        if True:\n",
        tests=(
            "tests/unit/submission/test_submission.py::test_a_message_that_comes_before_its_order_is_tried_again_for_five_minutes",
        ),
        why="a payment that overtakes its order is rejected",
    ),
)
