"""What a visitor may do next: a few sentences on top of each page, each with the way to do it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class GuideStep:
    """One thing to do."""

    sentence: str
    done: bool
    """Whether it was done, as the data say."""
    title: str
    """What the link or the button says."""
    address: str = ""
    """The address of the page on which it is done; empty if the button does it."""


class Guide(Protocol):
    """Leads a visitor through the console."""

    def steps(self) -> Sequence[GuideStep]:
        """Return what there is to do, in its order, as the data say now."""

    def ending(self) -> str:
        """Return the sentence that is shown once all is done."""

    def press(self) -> None:
        """Do what the step with a button is about."""
