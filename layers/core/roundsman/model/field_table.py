"""Field tables: one list of the fields of a type, by which it is both read and written.

A table names each field of a message or record once: its name in the document, the attribute of
the type, its kind, and its default. So no field can be written and not read. What a kind checks,
and how it reports a problem, is up to the reader: `roundsman.wire.fields.Fields` for messages,
`roundsman.aws.dynamodb.item_reader.ItemReader` for records.
"""

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import MISSING, dataclass, fields
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Generic, Protocol, TypeVar, cast, get_args, get_origin

if TYPE_CHECKING:

    class Reader(Protocol):
        """Reads one document field by field."""

        @property
        def names(self) -> Container[str]:
            """The names of the fields that the document has."""


class Required:
    """The type of REQUIRED, which stands for "no default"."""


REQUIRED = Required()

R = TypeVar("R", bound="Reader")
R_contra = TypeVar("R_contra", bound="Reader", contravariant=True)
S = TypeVar("S")
T = TypeVar("T")


class Kind(Generic[R_contra, S, T]):
    """A kind of value: how a reader R reads a T, and how a T is written as an S."""

    __slots__ = ("label", "read", "write")

    def __init__(
        self, label: str, read: Callable[[R_contra, str], T], write: Callable[[T], S] | None = None
    ) -> None:
        """Define a kind. Without `write`, the value is written as it is.

        `label` describes in a few words, for the pages of reference, what the document contains.
        `read` is given the reader and the name of the field.
        """
        self.label = label
        self.read = read
        self.write = write


def any_of(values: Iterable[str]) -> str:
    """Return the label of a text that is one of these."""
    return f"`{'`, `'.join(values)}`"


class Field(Generic[R_contra, S]):
    """One field of a type."""

    __slots__ = ("always", "attribute", "default", "label", "name", "read", "since", "write")

    def __init__(
        self,
        name: str,
        attribute: str,
        kind: Kind[R_contra, S, T],
        default: T | Required | None = REQUIRED,
        *,
        always: bool = False,
        since: int = 1,
    ) -> None:
        """Define a field. Without a default it is required; else its absence means the default.

        A value that equals the default is written only with `always`. `since` is the format of the
        document that the field needs: code that reads only lower formats does not know the field.
        """
        self.name = name
        self.attribute = attribute
        self.label = kind.label
        self.default = default
        self.always = always or default is REQUIRED
        self.since = since
        self.read = kind.read
        # A field does not declare which type its attribute has, so that a table can hold all kinds.
        self.write = cast("Callable[[object], S] | None", kind.write)


class FieldTable(Generic[R, S, T]):
    """The fields of the type T, in the order in which they are read."""

    def __init__(self, make: Callable[..., T], *fields: Field[R, S]) -> None:
        """`make` creates a T from its attributes by keyword; mostly it is the type itself."""
        self.make = make
        self.fields = fields
        self._reads = [(one.name, one.attribute, one.read, _on_absence(one)) for one in fields]
        self._always = [(one.name, one.attribute, one.write) for one in fields if one.always]
        self._sometimes = [
            (one.name, one.attribute, one.write, one.default) for one in fields if not one.always
        ]
        self._newer = [(one.attribute, one.default, one.since) for one in fields if one.since > 1]

    def read(self, reader: R) -> T:
        """Read a T. Raises what the reader raises."""
        return self.make(**self.values(reader))

    def values(self, reader: R) -> dict[str, object]:
        """Read the fields, and return their values by attribute. Raises what the reader raises."""
        names = reader.names
        return {
            attribute: read(reader, name) if default is REQUIRED or name in names else default
            for name, attribute, read, default in self._reads
        }

    def written(self, value: T) -> dict[str, S]:
        """Return the document of a T: the fields by name, without those at their default."""
        found: dict[str, S] = {}
        for name, attribute, write in self._always:
            one = getattr(value, attribute)
            found[name] = one if write is None else write(one)
        for name, attribute, write, default in self._sometimes:
            one = getattr(value, attribute)
            if one is not default and one != default:
                found[name] = one if write is None else write(one)
        return found

    def since(self, value: T) -> int:
        """Return the lowest format that has all fields of a T that are not at their default."""
        return max(
            (since for name, default, since in self._newer if getattr(value, name) != default),
            default=1,
        )


@dataclass(frozen=True, slots=True)
class Stored:
    """How a field is stored whose class declares it with `Annotated`; see `declared`."""

    name: str = ""
    """Its name in the document; empty for that of the field: `StartedAt` for `started_at`."""
    since: int = 1
    """The format of the document that it needs."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A field of a dataclass, as the class declares it."""

    attribute: str
    type: object
    """Its type, without None."""
    default: object
    """Its default; REQUIRED if it has none."""
    stored: Stored


def declared(of: type, *, without: Container[str] = ()) -> Iterator[Declared]:
    """Yield the fields of a dataclass in their order, without those of these names.

    The class is then the one list of what is stored of it. A field that is not annotated is stored
    by its own name since the first format.
    """
    for one in fields(of):
        if one.name in without:
            continue
        kind: object = one.type
        stored = Stored()
        if get_origin(kind) is Annotated:
            kind, stored = get_args(kind)
        if isinstance(kind, UnionType):
            (kind,) = (each for each in get_args(kind) if each is not NoneType)
        name = stored.name or one.name.title().replace("_", "")
        default = REQUIRED if one.default is MISSING else one.default
        yield Declared(one.name, kind, default, Stored(name, stored.since))


def _on_absence(field: Field[R, S]) -> object:
    """Return the default, or REQUIRED if the reader must be asked even if the field is absent.

    A default that can be changed must not be shared, so the reader creates it.
    """
    return REQUIRED if isinstance(field.default, dict) else field.default
