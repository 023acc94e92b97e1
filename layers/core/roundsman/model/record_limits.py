"""The limits of what a task's record holds, so that DynamoDB never refuses it.

An item has at most 400 KB (RECORD_LIMIT). A record above that could not be written any more, and
its task could not end. So each part that can grow has a limit. They are here together because
their sum counts; `tests/contract/test_largest_record.py` builds the largest record that they allow,
with text that cannot be compressed. It is packed, and what is not text takes little space then:

- the results, the corrections and the data of unread signals: RESULTS_LIMIT, and the corrections
  32 KB of it;
- what is said of results that were left out: LONGEST_WHY_LEFT_OUT of each step;
- the ids and names of unread signals: MOST_SIGNALS of them;
- the errors of steps: ERRORS_LIMIT, and 300 bytes for each further one;
- the records of steps: MOST_RECORDS, each with MOST_AGENTS at most;
- those of added steps, which are in rows beside the record once they are settled: MOST_OPEN_ADDED
  that are not, and MOST_ADDED_UNDOS that were and are undone;
- the names of added steps that are not settled: ADDED_LIMIT, and in rows those of all:
  ALL_ADDED_LIMIT;
- the used rounds: MOST_USED_ROUNDS; the statuses and alerts that are owed: MOST_OWED; the rejected
  messages that are owed for signals, with the unread signals: MOST_SIGNALS;
- texts of people and of the engine: LONGEST_WHY, LONGEST_DETAIL, and the limits of
  `roundsman.wire.commands`.
"""

from typing import Final

RECORD_LIMIT: Final = 400 * 1024
"""The maximum size of a DynamoDB item in bytes."""
RESULTS_LIMIT: Final = 200 * 1024
"""The maximum size of all results of a task, with its corrections and its unread signals, in bytes
of JSON."""
LARGEST_RESULT: Final = 32 * 1024
"""The maximum size of one result in a record, in bytes of JSON; a plan may say less. A larger one
is left out, and its step is done."""
LARGEST_KEPT_RESULT: Final = 256 * 1024
"""The maximum size of a result that was left out and is kept in a row beside the record, in bytes
of JSON. An agent sends no larger one."""
LARGEST_RESULT_ROW: Final = 384 * 1024
"""The maximum size of all results in one of these rows, in bytes of JSON."""
MOST_RESULT_ROWS: Final = 4
"""The maximum number of these rows of one task: a transaction has room for so many beside those of
settled steps and of inputs. A result for which there is no room is left out without being kept."""
LONGEST_WHY_LEFT_OUT: Final = 200
"""The maximum length of the reason for which a result was left out, in bytes of UTF-8. The record
of a step that is done has it in place of an error. The history has the whole reason."""
LARGEST_SIGNAL: Final = 4 * 1024
"""The maximum size of the data of one signal, in bytes of JSON."""
LARGEST_PAYLOAD: Final = 50_000_000
"""The maximum size of what one reference leads to in the PayloadBucket, in bytes."""
PAYLOAD_KEY: Final = r"[A-Za-z0-9._~-]{1,128}/[0-9a-f]{64}"
"""The key of an object of the PayloadBucket: the id of its order, and its SHA-256."""
LONGEST_SIGNAL_ID: Final = 64
"""The maximum length of the id of a signal, in characters of ASCII. A record has the id of each
signal that has ended a step."""
MOST_SIGNALS: Final = 10
"""The maximum number of signals of one task that have ended no step yet. Those that no step can
read any more count until their rejected messages are sent."""
ERRORS_LIMIT: Final = 28 * 1024
"""The size of all errors in the records of steps, in bytes, above which the messages of further
ones are shortened to SHORT_MESSAGE."""
LONGEST_MESSAGE: Final = 1_000
"""The maximum length of the message of an error, in bytes of UTF-8."""
LOOKED_AT: Final = 4
"""How many times as long as it may become, a text is looked at for masked values. The rest is cut
off first; if more of it were, half of a value could be left at its end."""
SHORT_MESSAGE: Final = 200
"""The maximum length of a message, in bytes of UTF-8, if the record has many errors: the parts that
differ between orders are left out. The history has the whole message."""
MOST_RECORDS: Final = 250
"""The maximum number of records of steps: those of the plan, with its items and the added steps
that are not settled, and those of items that a former run of the task had."""
MOST_OPEN_ADDED: Final = 100
"""The maximum number of added steps of one task that are not settled. A reply that adds more is
wrong."""
MOST_ADDED_UNDOS: Final = 50
"""The maximum number of undos of added steps of one task that are in progress or have failed. The
others begin after them. If so many have failed, the task is Archived, and a person decides."""
MOST_PART: Final = 200
"""The maximum number of steps of a part of a task that is undone."""
ADDED_LIMIT: Final = 16 * 1024
"""The maximum size of the names of added steps that are not settled, with those of the steps that
added them and that they come after, in bytes."""
ALL_ADDED_LIMIT: Final = 160 * 1024
"""The maximum size of these names of all added steps of a task, in bytes."""
LARGEST_STEP_INPUT: Final = 16 * 1024
"""The maximum size of the input of one added step, in bytes of JSON. It is not in the record, but
in a row with those of others."""
MOST_AGENTS: Final = 8
"""The maximum number of agents of one step. A record has the names of those that were tried."""
MOST_USED_ROUNDS: Final = 200
"""The maximum number of steps that changes of the plan have removed, and whose keys were used."""
MOST_OWED: Final = 16
"""The maximum number of statuses and alerts that are stored until they are sent. If none can be
sent for so long that there would be more, the oldest are dropped."""
LONGEST_DETAIL: Final = 1_500
"""The maximum length of the reason in a status or an alert that is owed, in bytes of UTF-8."""
LONGEST_WHY: Final = 4_000
"""The maximum length of the reason of a task's end, in bytes of UTF-8."""


def cut(text: str, size: int) -> str:
    """Return the text, cut to at most `size` bytes of UTF-8; lone surrogates become `?`."""
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")
