"""What a probe answers: did it happen? Asked by the perform's key, before anything is repeated."""

from dataclasses import dataclass

from roundsman.values import Json


@dataclass(frozen=True, slots=True)
class Happened:
    """The effect of that key happened; `result` is what the step answers with."""

    result: Json = None


@dataclass(frozen=True, slots=True)
class DidNotHappen:
    """There is no effect of that key."""
