"""The clock of a world."""


class WorldClock:
    """A clock that goes from event to event, and so skips the waits between them."""

    def __init__(self, now: int) -> None:
        """Begin at the instant `now`, in epoch ms."""
        self.now = now

    def __call__(self) -> int:
        """The present in epoch ms."""
        return self.now
