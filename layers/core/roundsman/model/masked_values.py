"""Masked values: what the plan says must not be shown, found by path in data and by value in texts.

A value stands in a text as it is, or in one of these forms: with blanks, dashes or `+` at other
places, in small or capital letters, percent-encoded as in an address, or with the escapes of JSON.
So a text and a value are compared without all of these. A value with fewer than WHOLE_WORD_BELOW
characters is found only as it is and as a whole word: otherwise `1` would hide every date.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from unicodedata import category

from roundsman.model.corrections import Path, path_text
from roundsman.model.json import Json, canonical_json
from roundsman.model.record_limits import LOOKED_AT

MASK = "(masked)"
"""Stands for every masked value, whatever its length or kind."""

WHOLE_WORD_BELOW = 6
"""Characters of a value, without blanks and dashes, below which only a whole word is replaced."""

MOST_VALUES = 10_000
"""How many values are looked for. If an order has more, a text of it is replaced as a whole."""

LEAST_REST = 3
"""How many characters of a value, at the end of a text that was cut, are replaced."""

_ESCAPES = re.compile(
    r"(?P<percent>(?:%[0-9A-Fa-f]{2})+)"
    r"|(?P<unicode>(?:\\u[0-9A-Fa-f]{4})+)"
    r"|\\x(?P<byte>[0-9A-Fa-f]{2})"
    r"|\\(?P<char>[\"'\\/bfnrt])"
)
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_INDEX = re.compile(r"\[[0-9]+\]")


def any_index(path: Path) -> str:
    """Return the text of the path without the indices of items: `guests[].passport`."""
    return _INDEX.sub("[]", path_text(path))


@dataclass(frozen=True, slots=True)
class MaskedPaths:
    """The masked fields of an input."""

    patterns: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, paths: Iterable[str]) -> "MaskedPaths":
        """Return the fields with these paths: `card.number`, `guests[].passport`, `pins.*.pin`."""
        return cls(
            tuple(re.compile(re.escape(path).replace(r"\*", ".+")) for path in sorted(set(paths)))
        )

    def includes(self, path: Path) -> bool:
        """Whether the value at the path is masked: it is a masked field, or inside of one."""
        return any(self._is_field(path[: length + 1]) for length in range(len(path)))

    def masked(self, value: Json, path: Path = ()) -> Json:
        """Return the value at the path, with MASK for each masked value in it."""
        if self.includes(path):
            return MASK
        if isinstance(value, Mapping):
            return {name: self.masked(inner, (*path, name)) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.masked(inner, (*path, index)) for index, inner in enumerate(value)]
        return value

    def values(self, value: Json, path: Path = ()) -> Iterator[tuple[str, Json]]:
        """Yield each masked text and number in the value at the path, with the text of its path."""
        if not self.patterns:
            return
        for here, inner in leaves(value, path):
            if self.includes(here):
                yield path_text(here), inner

    def _is_field(self, path: Path) -> bool:
        text = any_index(path)
        return any(pattern.fullmatch(text) for pattern in self.patterns)


def leaves(value: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    """Yield each value that is no object and no list, with its path."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    else:
        yield path, value


@dataclass(frozen=True, slots=True)
class MaskedTexts:
    """Finds values in texts, and replaces them."""

    long: tuple[str, ...] = ()
    """The values that are found anywhere, as they are compared; the longest first."""
    words: re.Pattern[str] | None = None
    """The values that are found as whole words; None if there are none."""
    everything: bool = False
    """The values are not known, or too many: every text is replaced."""

    @classmethod
    def of(cls, values: Iterable[Json]) -> "MaskedTexts":
        """Return what finds these texts and numbers. True, false and null are everywhere, so they
        are masked as fields only."""
        long, short = set[str](), set[str]()
        for value in values:
            if value is None or isinstance(value, bool):
                continue
            text = value.strip() if isinstance(value, str) else canonical_json(value)
            if text in MASK:
                continue
            forms = {compared for compared, _ in _both_ways(text)}
            if min(map(len, forms)) >= WHOLE_WORD_BELOW:
                long |= forms
            else:
                short |= {text, canonical_json(text)[1:-1]}
            if len(long) + len(short) > MOST_VALUES:
                return EVERYTHING
        return cls(_longest_first(long), _words(_longest_first(short - {""})))

    def __bool__(self) -> bool:
        """Whether there is anything to find."""
        return bool(self.long) or self.words is not None or self.everything

    def text(self, text: str, longest: int | None = None) -> str:
        """Return the text with MASK for each value in it.

        `longest`: the text has at most so many characters afterwards. A text that is as long as
        that may be cut, here or by who sent it, so the beginning of a value at its end is replaced
        too. The time depends on `longest` and on the number of values.
        """
        if longest is None:
            return self._replaced(text, was_cut=False)
        seen = text[: longest * LOOKED_AT]
        return self._replaced(seen, was_cut=len(text.encode(errors="replace")) >= longest)[:longest]

    def stands_in(self, text: str) -> bool:
        """Whether one of the values is in the text."""
        return self.text(text) != text

    def _replaced(self, text: str, *, was_cut: bool) -> str:
        if not text or not self:
            return text
        if self.everything:
            return MASK
        spans = sorted(self._spans(text, was_cut=was_cut))
        parts, done = list[str](), 0
        for index, (start, end) in enumerate(spans):
            overlaps = index > 0 and start < done
            if not overlaps:
                parts += (text[done:start], MASK)
            done = max(done, end)
        return "".join((*parts, text[done:]))

    def _spans(self, text: str, *, was_cut: bool) -> Iterator[tuple[int, int]]:
        """Yield where the values stand in the text."""
        if self.words is not None:
            yield from (found.span() for found in self.words.finditer(text))
        if not self.long:
            return
        # Also with no escapes: `OFFICE\nina.b` has none, but a name.
        for compared, places in {found[0]: found for found in _both_ways(text)}.values():
            for value in self.long:
                at = compared.find(value)
                while at >= 0:
                    yield places[at][0], places[at + len(value) - 1][1]
                    at = compared.find(value, at + len(value))
            rest = max(_begun(compared, value) for value in self.long) if was_cut else 0
            if rest:
                yield places[-rest][0], len(text)


EVERYTHING = MaskedTexts(everything=True)
"""Replaces every text, because the values are not known."""


def _begun(compared: str, value: str) -> int:
    """How many characters of the value, from its first on, are the end of the text."""
    begin = value[:LEAST_REST]
    at = compared.find(begin, max(0, len(compared) - len(value) + 1))
    while at >= 0:
        if value.startswith(compared[at:]):
            return len(compared) - at
        at = compared.find(begin, at + 1)
    return 0


def _longest_first(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(texts, key=lambda text: (-len(text), text)))


def _words(texts: tuple[str, ...]) -> re.Pattern[str] | None:
    if not texts:
        return None
    return re.compile("|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in texts))


def _both_ways(text: str) -> tuple[tuple[str, list[tuple[int, int]]], ...]:
    """The text as `_compared` gives it, with the escapes read as such and as plain characters."""
    return _compared(text), _compared(text, escapes=False)


def _compared(text: str, *, escapes: bool = True) -> tuple[str, list[tuple[int, int]]]:
    """The text as it is compared, and for each of its characters where it stands in the text."""
    found, places = list[str](), list[tuple[int, int]]()
    done = 0
    for escape in _ESCAPES.finditer(text) if escapes else ():
        _add(found, places, ((text[at], at, at + 1) for at in range(done, escape.start())))
        _add(found, places, _unescaped(escape))
        done = escape.end()
    _add(found, places, ((text[at], at, at + 1) for at in range(done, len(text))))
    return "".join(found), places


def _add(
    found: list[str], places: list[tuple[int, int]], more: Iterable[tuple[str, int, int]]
) -> None:
    for character, start, end in more:
        if character == "+" or character.isspace() or category(character) == "Pd":
            continue
        folded = character.casefold()
        found.append(folded)
        places.extend([(start, end)] * len(folded))


def _unescaped(escape: re.Match[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the characters of an escape, each with the part of the escape that is for it."""
    start, end = escape.span()
    if (byte := escape["byte"]) is not None:
        yield chr(int(byte, 16)), start, end
    elif (char := escape["char"]) is not None:
        yield _CONTROLS.get(char, char), start, end
    elif (percent := escape["percent"]) is not None:
        at = start
        for one in bytes.fromhex(percent.replace("%", "")).decode(errors="surrogateescape"):
            size = 3 * len(one.encode(errors="surrogateescape"))
            yield one, at, at + size
            at += size
    else:
        at = start
        units = bytes.fromhex(escape["unicode"].replace("\\u", ""))
        for one in units.decode("utf-16-be", errors="surrogatepass"):
            size = 3 * len(one.encode("utf-16-be", errors="surrogatepass"))
            yield one, at, at + size
            at += size
