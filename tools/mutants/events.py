"""The guards of events of SNS, S3 and EventBridge: whose are opened, and which order each is."""

from tools.mutants.mutant import Mutant

OPENED = "layers/core/roundsman/submission/service_events.py"
READER = "layers/core/roundsman/submission/events.py"
SOURCES = "layers/core/roundsman/aws/sqs/event_sources.py"

TESTS = "tests/unit/submission/test_service_events.py"
SOURCE_TESTS = "tests/unit/aws/sqs/test_event_sources.py"

EVENTS = (
    Mutant(
        name="an-envelope-is-opened-for-a-listed-source",
        file=OPENED,
        old="    if problems:\n        raise RejectedOrder(problems)\n",
        new="    if not problems:\n        return\n",
        tests=(f"{TESTS}::test_an_envelope_of_a_source_that_is_not_listed_is_rejected_whole",),
        why="an envelope of any topic is an order",
    ),
    Mutant(
        name="an-order-is-no-envelope",
        file=OPENED,
        old="    return ORDER_ID not in message and (\n",
        new="    return bool(message) and (\n",
        tests=(f"{TESTS}::test_an_order_may_look_like_an_envelope_if_it_has_an_order_id",),
        why="an order that was accepted before is rejected after an upgrade",
    ),
    Mutant(
        name="the-hash-is-that-of-the-event",
        file=READER,
        old="            if event.content_hash is not None and isinstance(asked, ValidOrder):\n",
        new="            if event.content_hash is None and isinstance(asked, ValidOrder):\n",
        tests=(
            f"{TESTS}::test_the_input_is_what_its_expression_gives_and_the_hash_stays_that_of_the_event",
        ),
        why="the same event is another order after a change of the expression",
    ),
    Mutant(
        name="the-parts-of-an-arn-are-compared-one-by-one",
        file=OPENED,
        old="    return all(map(is_like, wanted[3:], given[3:]))\n",
        new="    return is_like(pattern, arn or '')\n",
        tests=(
            f"{TESTS}::test_a_source_may_be_listed_by_a_pattern_that_does_not_cross_the_parts_of_an_arn",
        ),
        why="submission lists what the policy of the queue does not, or the other way round",
    ),
    Mutant(
        name="the-policy-is-read-again-before-an-event-is-refused",
        file=SOURCES,
        old="        if self._known is not None and self._known.lists(service, arn):\n"
        "            return True\n",
        new="        if self._known is not None:\n"
        "            return self._known.lists(service, arn)\n",
        tests=(f"{SOURCE_TESTS}::test_it_is_read_again_before_an_event_is_refused",),
        why="events of a source that was just listed are rejected for hours",
    ),
    Mutant(
        name="a-refused-envelope-asks-for-the-list-once",
        file=OPENED,
        old='                problems.append(Problem(f"{RECORDS}[{number}].s3.bucket.arn", '
        "UNLISTED_BUCKET))\n                break\n",
        new='                problems.append(Problem(f"{RECORDS}[{number}].s3.bucket.arn", '
        "UNLISTED_BUCKET))\n",
        tests=(f"{TESTS}::test_an_envelope_of_many_records_is_refused_after_one_look_at_the_list",),
        why="a message with many records keeps its function busy until it is stopped",
    ),
    Mutant(
        name="another-id-of-its-own-is-another-event",
        file=OPENED,
        old="    identified: Json = order_id if own == order_id else [order_id, own]\n",
        new="    identified: Json = order_id\n",
        tests=(f"{TESTS}::test_an_event_with_another_id_of_its_own_is_another_event",),
        why="the second of two orders is taken for the first one again, and lost",
    ),
)
