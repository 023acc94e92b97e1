"""A parameter as a template declares it, and what is wrong with a value."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class DeclaredParameter:
    """A parameter as the template declares it."""

    properties: Mapping[str, object] = field(default_factory=dict)
    """As in the template: `Type`, `Default`, `AllowedValues` and so on."""
    computed: bool = False
    """Whether its block has a value that is known only when the stack is deployed."""

    @property
    def default(self) -> str | None:
        """None for a parameter that needs a value."""
        default = self.properties.get("Default")
        return None if default is None else _text(default)

    def objection(self, value: str) -> str | None:
        """Return the problem with a value; None if the template accepts the value."""
        allowed = self.properties.get("AllowedValues")
        if isinstance(allowed, list) and value not in map(_text, allowed):
            return f"it must be one of {', '.join(map(_text, allowed))}"
        if self.properties.get("Type") == "Number":
            try:
                return self._outside("Value", float(value), "")
            except ValueError:
                return "it must be a number"
        pattern = self.properties.get("AllowedPattern")
        if objection := self._outside("Length", len(value), " characters long"):
            return objection
        if pattern is not None and not re.fullmatch(str(pattern), value):
            return f"it must match {pattern}"
        return None

    def _outside(self, of: str, number: float, unit: str) -> str | None:
        """Return whether a number is outside of the bounds, `MinValue` and `MaxValue` for example.

        The number may be NaN, which is within no bounds.
        """
        least, most = self.properties.get(f"Min{of}"), self.properties.get(f"Max{of}")
        if least is not None and not number >= float(str(least)):
            return f"it must be at least {float(str(least)):g}{unit}"
        if most is not None and not number <= float(str(most)):
            return f"it must be at most {float(str(most)):g}{unit}"
        return None


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
