"""What Roundsman promises about every order, by name, as docs/explanation/reliability.md lists it.

The test kit checks each of them at every write (`roundsman_testing.Invariant`). `CHECKS` has those
that can be judged by what a stack has stored.
"""

from enum import StrEnum


class Promise(StrEnum):
    """The promises by name. Each value is the sentence that states the promise."""

    ALWAYS_DUE = "an open task has a due entry, and it is early enough"
    READY = "a step that can be started is looked at within half a minute, then less often"
    LOOKED_AT = "once faults stop, what is due is looked at within a quarter of an hour"
    SENT = "an attempt is counted as overdue only if its queue has taken its request"
    ONE_LOCK = "a step has one current lock, and a lock is given once"
    IN_TIME = "no step goes forward beyond its task's complete-by"
    IN_ORDER = "a step starts only after its predecessors"
    UNDO_IN_ORDER = "an undo begins once what came after it is finished"
    EXPLAINED = "every effect has a record that explains it"
    ONCE = "each effect comes about at most once for its key, and stands once for its step"
    ONE_INPUT = "all requests under one key have the same input, item and results"
    GIVEN = "a request has the input, the item or step input, and the earlier results of its task"
    ALL_ITEMS = "a fan-out has a step for each item of its list"
    ADDED = "a step has added all steps of the reply that is taken, and no reply adds a part"
    RESULT = "a Processed step has the result that its agent replied"
    ACTS_IN_TIME = "no agent calls its service after the complete-by of its request"
    HELD_BACK = "no agent that an operator holds calls its service"
    ORDER_HELD = "no step of an order that is on hold is begun"
    PACED = "no agent calls its service more often than its rate limit allows"
    COUNTED = "an attempt counts as failed only if its agent says so or its time is over"
    WAITS = "after a failed attempt, the next one waits as the plan or the service says"
    GIVEN_BACK = "a task has the time back for which a hold keeps its steps waiting"
    FAILED_BY = "a task fails by its service, its own order, a person or the end of its time"
    BOUNDED = "a step has no more attempts than its plan allows"
    AS_PLANNED = "a task that failed is undone or archived as its plan says"
    MOVED = "a step leaves an agent only if nothing happened there, or its effect there is undone"
    KEY_LASTS = "no request is sent that would end after the lifetime of its key"
    KNOWN = "no step is reported as without effect while its effect stands"
    UNDONE = "Undone, and Cancelled with undo, leave no effect of a step with a compensation"
    COMPLETED = (
        "Completed means that every step is Processed or Skipped, or undone by an early end or in "
        "a part taken back, and of many exactly as many as are enough are Processed"
    )
    TAKEN_BACK = "of a completed task, the part that is taken back is undone, and nothing else is"
    ALERTED = "every Archived task is in a failure group that is alerted, or owes that"
    CAUSED = "no alert is about what did not fail, and no all-clear about what stands failed"
    DISCREET = "no alert has a text of an order or of a result, and no text a masked value"
    REPORTED = "every end was reported to whoever asked for statuses"
    STARTED = "a task that was begun and has ended was reported as started"
    RISING = "a later status of an order has a higher seq"
    ENDS = "every accepted order reaches an end state in bounded time once faults stop"
    AGREES = "record and index agree"
    NOT_LOST = "no version of a record is overwritten by another of its number, or an older one"
    HANDLED = "no message breaks its handler"
    ACTS_ONCE = "a command is carried out once, however often it is delivered"
    CARRIED_OUT = (
        "a command that is carried out shows in its task's record, and only a command takes it back"
    )
    ACCOUNTED = "a signal that was accepted ends a step, or is a row of the history and is rejected"
    HISTORY = "each failed attempt and each command has its row in the history"
    ROWS = "the rows of settled steps and of inputs are those of the record, and expire with it"
    KEPT = "a task that has ended is kept for its retention"
    ORDER_KEPT = "an order stays while its task may need it, then for its retention and no longer"
    ERASED = "an erased task has none of its contents, and stays as it is"
    ERASED_BESIDE = "the order row and the history of an erased task have no contents either"
    FOUND = "an order is found by the fields that its workflow names, and an erased one by none"
    AT_ONCE = "no more orders of one value begin than the limit of their workflow lets be under way"
    RATE = "a bulk run sends no faster than its rate"
    CANARY = "a bulk run has the results of its canary before it sends more"
    STOPS = "a bulk run sends nothing if it is paused, is stopped or fails too often"
    NONE_SKIPPED = "a bulk run sends to each of its orders, or refuses it"
