"""Reading a JSON object field by field, keeping every problem instead of stopping at the first."""

from collections.abc import Mapping, Sequence

from roundsman.errors import InvalidMessage, Problem
from roundsman.model.json import Json


class Fields:
    """The fields of one object; a wrong one is noted and read as an empty value.

    `done` raises InvalidMessage if anything was noted, so nothing is used half-read.
    """

    def __init__(
        self, value: Mapping[str, Json], path: str = "", problems: list[Problem] | None = None
    ) -> None:
        self._value = value
        self._path = path
        self._problems: list[Problem] = [] if problems is None else problems

    def problem(self, name: str, message: str) -> None:
        """Note that a field is wrong."""
        self._problems.append(Problem(f"{self._path}{name}", message))

    def done(self) -> None:
        """Raises InvalidMessage with all that was noted."""
        if self._problems:
            raise InvalidMessage(self._problems)

    def any(self, name: str) -> Json:
        """A field that must be there, whatever it is."""
        if name not in self._value:
            self.problem(name, "missing")
        return self._value.get(name)

    def optional(self, name: str) -> Json:
        """A field that may be absent: None then."""
        return self._value.get(name)

    def text(self, name: str, *, empty: bool = False) -> str:
        """A string, not empty unless that is said to be fine."""
        value = self.any(name)
        if isinstance(value, str) and (value or empty):
            return value
        if name in self._value:
            self.problem(name, "must be a string that is not empty")
        return ""

    def optional_text(self, name: str) -> str | None:
        """A string, or None where it is absent or null."""
        return None if self._value.get(name) is None else self.text(name)

    def number(self, name: str) -> int:
        """A whole number, 0 or more."""
        value = self.any(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        if name in self._value:
            self.problem(name, "must be a whole number of 0 or more")
        return 0

    def optional_number(self, name: str) -> int | None:
        """A whole number, or None where it is absent or null."""
        return None if self._value.get(name) is None else self.number(name)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings; none where it is absent or null."""
        value = self._value.get(name) or []
        if isinstance(value, list) and all(isinstance(item, str) and item for item in value):
            return tuple(value)
        self.problem(name, "must be a list of strings that are not empty")
        return ()

    def flag(self, name: str, *, absent: bool = False) -> bool:
        """True or false; `absent` where it is not there."""
        value = self._value.get(name, absent)
        if isinstance(value, bool):
            return value
        self.problem(name, "must be true or false")
        return False

    def one_of(self, name: str, allowed: Sequence[str]) -> str:
        """One of a few strings; an empty one where it is not."""
        value = self.any(name)
        if isinstance(value, str) and value in allowed:
            return value
        if name in self._value:
            self.problem(name, f"must be one of {', '.join(allowed)}")
        return ""

    def mapping(self, name: str) -> Mapping[str, Json]:
        """An object, whatever it holds."""
        value = self.any(name)
        if isinstance(value, Mapping):
            return value
        if name in self._value:
            self.problem(name, "must be an object")
        return {}

    def optional_object(self, name: str) -> "Fields | None":
        """An object to read field by field, or None where it is absent or null."""
        if self._value.get(name) is None:
            return None
        return Fields(self.mapping(name), f"{self._path}{name}.", self._problems)
