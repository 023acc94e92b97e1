"""Generates the lists of fields on the page of records.

The fields, their values and their defaults are from the field tables by which the code reads and
writes them; the meanings are the docstrings of the attributes.
"""

import ast
import dataclasses
import inspect
import re
import textwrap
from typing import TYPE_CHECKING, Any

from roundsman.aws.dynamodb import codec
from roundsman.aws.dynamodb.stored_step import StoredSituation
from roundsman.model.events import HistoryRow
from roundsman.model.field_table import Field, FieldTable, Required
from roundsman.model.polling import Polling
from roundsman.model.retry_window import RetryWindow
from roundsman.model.task import (
    Closing,
    LeftOut,
    Owed,
    StepError,
    StepRecord,
    Task,
    Termination,
    UnreadSignal,
)
from roundsman.ports import OrderRow

if TYPE_CHECKING:
    # A page needs only the names, labels and defaults of the fields of a table.
    AnyTable = FieldTable[Any, Any, Any]
    AnyField = Field[Any, Any]


def order() -> str:
    """Return the block with the attributes of an order."""
    return table(codec.ORDER, OrderRow)


def task() -> str:
    """Return the block with the attributes of a task, and of the maps in it."""
    return _several(
        ("", codec.TASK, Task),
        ("Each map in `Owed`:", codec.OWED, Owed),
        ("Each map of `Added`:", codec.ADDED_STEP, codec.NamedAddedStep),
        ("Each map of `Signals`:", codec.SIGNAL, UnreadSignal),
        ("The map `Ending`:", codec.ENDING, Termination),
        ("The map `Closing`:", codec.CLOSING, Closing),
        ("The map `Error`, here and in a step:", codec.ERROR, StepError),
    )


def step() -> str:
    """Return the block with the attributes of a step, and of a map in it."""
    return _several(
        ("What its situation decides:", codec.SITUATION, StoredSituation),
        ("What outlives a situation:", codec.LASTING, StepRecord),
        ("Of a step that is retried for a time:", codec.RETRY_WINDOW, RetryWindow),
        ("Of a step that is polled, and all of them:", codec.POLLING, Polling),
        ("The map `ResultLeftOut`:", codec.LEFT_OUT, LeftOut),
    )


def history() -> str:
    """Return the block with the attributes of a history row."""
    return table(codec.HISTORY, HistoryRow)


def _several(*tables: "tuple[str, AnyTable, type]") -> str:
    found = (f"{title}\n\n{table(fields, kind)}".lstrip() for title, fields, kind in tables)
    return "\n\n".join(found)


def table(fields: "AnyTable", kind: type) -> str:
    """Return one list of a page: the fields by which a type is read and written.

    Raises ValueError if an attribute has no docstring.
    """
    meanings = docstrings(kind)
    rows: list[str] = []
    for field in fields.fields:
        if field.attribute not in meanings:
            raise ValueError(f"{kind.__name__}.{field.attribute} needs a docstring for its page")
        rows.append(_row(field, _of_the_page(meanings[field.attribute], fields)))
    return "\n".join(rows)


def _of_the_page(text: str, fields: "AnyTable") -> str:
    """Replace what a docstring calls by its name in Python."""
    for field in fields.fields:
        text = text.replace(f"`{field.attribute}`", f"`{field.name}`")
    return re.sub(r"\bNone\b", "absent", text)


def _row(field: "AnyField", meaning: str) -> str:
    if field.since > 1:
        meaning += f" Format {field.since}."
    return f"- `{field.name}` ({field.label}{_default(field.default)}): {meaning}"


def _default(default: object) -> str:
    """Return what follows the kind of value: that it is required, or what its absence means."""
    if isinstance(default, Required):
        return ", *required*"
    if isinstance(default, bool):
        return f", else {str(default).lower()}"
    return f", else {default}" if default or default == 0 else ""


def docstrings(kind: type) -> dict[str, str]:
    """Return the docstrings of a class's attributes: the texts that follow their annotations.

    Those of a dataclass that it derives from are among them.
    """
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)  # noqa: S101  # the source of a class is a class
    bases = [base for base in kind.__bases__ if dataclasses.is_dataclass(base)]
    found = {name: text for base in bases for name, text in docstrings(base).items()}
    for field, after in zip(body.body, body.body[1:], strict=False):
        match field, after:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = " ".join(text.split())
            case _:
                pass
    return found
