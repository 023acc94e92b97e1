"""What a proof judges of the run as a whole, beside the promises to each order."""

from enum import StrEnum


class RunPromise(StrEnum):
    """The promises by name. Each value is the sentence that states the promise."""

    ACCEPTED = "each order that was sent is stored, once, and no other order is"
    ENDED = "no order is without an end"
    AS_ANSWERED = "each order ends in the state to which the answers of its services lead"
    STANDING = "the effects that stand are those of the order's end, and no others"
    NOT_AFTER_UNDO = "no effect comes about under a key that was undone"
    NOTHING_WAITS = "no queue has a message when every order has ended"
    NOT_GIVEN_UP = "no order event, command or reply was given up or rejected"
    NOT_LOGGED = "no line of a log has contents of an order, or a credential"
    NO_OTHER_FAILURE = "no function failed or logged an error, but for the faults that were made"
    FAILURES_LOGGED = "an agent that the services made fail has that in its log"
    ADDS_UP = "as many orders have ended, and as many effects stand, as were to"
