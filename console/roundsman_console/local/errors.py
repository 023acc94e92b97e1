"""What the local AWS says when it cannot do what was asked."""


class LocalError(Exception):
    """One sentence for a person: what is wrong, and what to do about it where that is known."""
