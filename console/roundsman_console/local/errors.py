"""The exception of the local AWS."""


class LocalError(Exception):
    """The local AWS cannot do what the user requested.

    The message is a sentence: the problem and, if known, its solution.
    """
