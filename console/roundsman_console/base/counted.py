"""Numbers with their nouns, in words."""


def counted(number: int, noun: str) -> str:
    """Return `1 order`, or `3 orders`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
