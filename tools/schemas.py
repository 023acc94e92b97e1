"""Generates the JSON schemas of the documents that commands print with --json, from their types.

The types are in the modules `documents` of `roundsman_console` and its packages. The schemas are
files of the site (`tools.docs_site`): `schemas/bulk-ls.json` is that of
`roundsman bulk ls`.
"""

import ast
import inspect
import json
import re
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from types import ModuleType, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Literal,
    NotRequired,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from roundsman.model.events import CommandKind
from roundsman_console.acts import verbs
from roundsman_console.acts.documents import bulk, events, smoke
from roundsman_console.acts.documents import reconcile as recovery
from roundsman_console.base.constraints import Instant, Keyword
from roundsman_console.base.result import shown_fields
from roundsman_console.faces.web import documents as ui
from roundsman_console.facts.agent import documents as agents
from roundsman_console.facts.audit import documents as audit
from roundsman_console.facts.cost import estimate as cost
from roundsman_console.facts.finding import documents as findings
from roundsman_console.facts.group import documents as groups
from roundsman_console.facts.order import difference as differences
from roundsman_console.facts.order import documents as tasks
from roundsman_console.facts.order import why_facts
from roundsman_console.facts.orders import export as exports
from roundsman_console.facts.overview import stats
from roundsman_console.facts.schedule.reading import Schedules
from roundsman_console.facts.set_aside import documents as dead_letters
from roundsman_console.facts.shift import report as shift
from roundsman_console.facts.table import record as tables
from roundsman_console.facts.workflow import health
from roundsman_dev.changes import review as changes
from roundsman_dev.check import documents as check
from roundsman_dev.local import documents as local
from roundsman_dev.preflight import documents as preflight
from roundsman_dev.project import documents as project
from roundsman_dev.prove import report as proofs
from roundsman_dev.services import documents as services
from tools import alert_messages
from tools.demo import documents as demo
from tools.field_pages import docstrings

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

DRAFT = "https://json-schema.org/draft/2020-12/schema"

Schema: TypeAlias = dict[str, object]

DOCUMENTS: Mapping[str, object] = {
    "agents": agents.AgentListDocument,
    "alert message": alert_messages.AlertMessageDocument,
    "alerts": findings.AlertListDocument,
    "audit": audit.AuditDocument,
    "bulk ls": bulk.BulkRunListDocument,
    "bulk show": bulk.BulkRunDocument,
    "bulk watch": bulk.BulkRunDocument,
    "changes": changes.Review,
    "check": check.CheckDocument,
    "cost": cost.Cost,
    "demo": ui.UiDocument,
    "diff": differences.OrderDifference,
    "dlq ls": dead_letters.MessageListDocument,
    "dlq show": dead_letters.MessageListDocument,
    "delete": tables.TablesReport,
    "doctor": findings.ReportDocument,
    "export": exports.ExportedTo,
    "groups ls": groups.GroupListDocument,
    "groups show": groups.GroupDetailsDocument | groups.EndedGroupDocument,
    "init": project.InitDocument,
    "local deploy": local.LocalUpDocument,
    "local status": local.LocalStatusDocument,
    "local up": local.LocalUpDocument,
    "ls": tasks.TaskPageDocument,
    "make demo": demo.DemoReport,
    "preflight": preflight.PreflightReport,
    "prove": proofs.ProofReport,
    "rejected ls": dead_letters.MessageListDocument,
    "rejected resend": dead_letters.ResendDocument,
    "rejected show": dead_letters.MessageDocument,
    **dict.fromkeys(("restore prepare", "restore replace", "restore start"), tables.TablesReport),
    "services": services.ServicesDocument,
    "ui": ui.UiDocument,
    "schedules ls": Schedules,
    "shift": shift.Shift,
    "show": tasks.TaskDocument,
    "smoke": smoke.SmokeDocument,
    "stats": stats.StatsAndCourse,
    "signal": events.SignalDocument,
    "submit": events.SubmitDocument,
    "timeline": tasks.TimelineDocument,
    "watch": stats.WatchReading,
    "why": why_facts.DiagnosisDocument,
    "workflows health": health.Health,
}
"""The type of what each command prints with --json, but for declared verbs: a TypedDict, or a union
of several."""

COMMAND_RESULT = (
    "The result of the command for one order; for several orders, the dry run or the bulk run."
)

NAMES: Mapping[object, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
}
NAMED: Mapping[object, str] = {Instant: "Instant"}
"""The type aliases that a schema defines by name if it uses them more than once."""

TITLES: Mapping[str, str] = {
    "make demo": "make demo ARGS=--json",
    "alert message": "A message of the AlertTopic",
}
"""The titles of schemas of documents that no command of `roundsman` prints."""


def documents() -> dict[str, object]:
    """Return the type of what each command prints with --json; of a declared verb, its result."""
    return {**{verb.name: verb.document for verb in verbs.VERBS}, **DOCUMENTS}


def schema_of(command: str) -> Schema:
    """Return the schema of what the command prints, for example `bulk ls`.

    Types that the document uses more than once are in its `$defs`. Raises TypeError for a type that
    has no equivalent in JSON.
    """
    hint = documents()[command]
    is_shared = hint is not recovery.ReconcileDocument  # it also lists runs of other commands
    kinds = (command, *(kind for kind in get_args(CommandKind) if kind.startswith(f"{command}-")))
    fixed = {"command": kinds} if is_shared and command in get_args(CommandKind) else {}
    first = _Types(fixed, ())
    first.document(hint)
    types = _Types(fixed, [name for name, uses in first.uses.items() if uses > 1])
    title = TITLES.get(command, f"roundsman {command} --json")
    schema = {"$schema": DRAFT, "title": title, **types.document(hint)}
    if types.defs:
        schema["$defs"] = types.defs
    found: Schema = json.loads(json.dumps(schema))  # a tuple is an array in JSON
    return found


def _only(values: Sequence[str]) -> Schema:
    """The schema of a field that has one of these values."""
    return {"const": values[0]} if len(values) == 1 else {"enum": [*values]}


class _Types:
    """Converts the types of one document to schemas."""

    def __init__(self, fixed: Mapping[str, Sequence[str]], shared: Collection[str]) -> None:
        self.fixed = fixed
        """The only values of fields in the documents of the schema."""
        self.shared = shared
        """The names of the types that are defined in `defs`."""
        self.defs: Schema = {}
        self.uses = Counter[str]()
        """How often each named type was used."""

    def document(self, hint: object) -> Schema:
        """Return the schema of a whole document."""
        if not isinstance(hint, UnionType):
            return self._definition(hint)
        return {
            "type": "object",
            "description": COMMAND_RESULT,
            "additionalProperties": True,  # each of the alternatives names its fields
            **self._definition(hint),
        }

    def _schema(self, hint: object) -> Schema:
        """Return the schema of a value; a reference if its type is shared."""
        name = _name(hint)
        if name is None:
            return self._definition(hint)
        self.uses[name] += 1
        if name not in self.shared:
            return self._definition(hint)
        if name not in self.defs:
            self.defs[name] = {}  # keeps its place before the types that it uses
            self.defs[name] = self._definition(hint)
        return {"$ref": f"#/$defs/{name}"}

    def _definition(self, hint: object) -> Schema:
        if get_origin(hint) is not None:
            return self._composed(hint)
        if isinstance(hint, type) and is_typeddict(hint):
            return self._object(hint)
        if isinstance(hint, type) and is_dataclass(hint):
            return self._result(hint)
        if isinstance(hint, type) and issubclass(hint, Enum):
            return {**_one_of([one.value for one in hint]), "description": _text(hint.__doc__)}
        if hint is object:
            return {}
        if hint in NAMES:
            return {"type": NAMES[hint]}
        raise TypeError(f"{hint} has no equivalent in JSON")

    def _composed(self, hint: object) -> Schema:
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            keywords = {one.name: one.value for one in arguments[1:] if isinstance(one, Keyword)}
            return self._schema(arguments[0]) | keywords
        if origin in (Union, UnionType):
            return self._choice(arguments)
        if origin is Literal:
            return _one_of(arguments)
        if origin in (list, Sequence, tuple):
            return {"type": "array", "items": self._schema(arguments[0])}
        if origin in (dict, Mapping):
            return self._map(*arguments)
        raise TypeError(f"{hint} has no equivalent in JSON")

    def _choice(self, hints: Sequence[object]) -> Schema:
        literals = [value for one in hints if get_origin(one) is Literal for value in get_args(one)]
        others = [one for one in hints if one is not NoneType and get_origin(one) is not Literal]
        found = [self._schema(one) for one in others]
        found += [_one_of(literals)] if literals else []
        if NoneType not in hints:
            return found[0] if len(found) == 1 else {"oneOf": found}
        (schema,) = found  # nothing in the documents is null or one of several types
        match schema:
            case {"$ref": _}:
                return {"anyOf": [schema, {"type": "null"}]}
            case {"enum": list(values)}:
                return schema | {"enum": [*values, None]}
            case _:
                return schema | {"type": [schema["type"], "null"]}

    def _map(self, key: object, value: object) -> Schema:
        if not (isinstance(key, type) and issubclass(key, Enum)):
            return {"type": "object", "additionalProperties": self._schema(value)}
        return _closed({str(one.value): self._schema(value) for one in key})

    def _result(self, kind: "type[DataclassInstance]") -> Schema:
        """Return the schema of a dataclass, with what the presenter says of its fields."""
        descriptions = _descriptions(kind)
        properties: dict[str, Schema] = {}
        shown = shown_fields(kind)
        for name, one in shown.items():
            words = descriptions.get(name, "").replace(". None ", ". Null ")
            words = re.sub(r"\bNone\b", "null", words)
            said = {"description": words} if words else {}
            properties[one.name] = self._schema(one.hint) | said
        absent = [one.name for one in shown.values() if one.absent]
        return _closed(properties, absent, _text(kind.__doc__))

    def _object(self, document: type) -> Schema:
        descriptions = _descriptions(document)
        properties: dict[str, Schema] = {}
        optional: list[str] = []
        for name, hint in get_type_hints(document, include_extras=True).items():
            value = hint
            if get_origin(value) is NotRequired:
                optional.append(name)
                (value,) = get_args(value)
            fixed = name in self.fixed
            properties[name] = _only(self.fixed[name]) if fixed else self._schema(value)
            if name in descriptions:
                properties[name] |= {"description": descriptions[name]}
        return _closed(properties, optional, _text(document.__doc__))


def _name(hint: object) -> str | None:
    """Return the name under which a schema may define the type; None for a type without one."""
    named = isinstance(hint, type) and (is_typeddict(hint) or is_dataclass(hint))
    if isinstance(hint, type) and (named or issubclass(hint, Enum)):
        return hint.__name__.removesuffix("Document")
    return NAMED.get(hint) if get_origin(hint) is Annotated else None


def _one_of(values: Sequence[object]) -> Schema:
    return {"const": values[0]} if len(values) == 1 else {"enum": list(values)}


def _closed(
    properties: Mapping[str, Schema], optional: Collection[str] = (), description: str = ""
) -> Schema:
    """Return the schema of an object that has no other fields."""
    return {
        "type": "object",
        **({"description": description} if description else {}),
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


@cache
def _descriptions(document: type) -> Mapping[str, str]:
    """Return the docstrings below the fields of a TypedDict or a dataclass, and of its bases."""
    module = sys.modules[document.__module__]
    definition = _classes(module).get(document.__name__)
    found: dict[str, str] = {}
    if definition is None:  # made by a call of TypedDict
        return found
    for base in definition.bases:
        inherited = vars(module).get(base.id) if isinstance(base, ast.Name) else None
        if isinstance(inherited, type) and (is_typeddict(inherited) or is_dataclass(inherited)):
            found |= _descriptions(inherited)
    return found | docstrings(document)


@cache
def _classes(module: ModuleType) -> dict[str, ast.ClassDef]:
    tree = ast.parse(inspect.getsource(module))
    return {one.name: one for one in tree.body if isinstance(one, ast.ClassDef)}


def _text(docstring: str | None) -> str:
    return " ".join((docstring or "").split())


def files() -> dict[str, str]:
    """Return the text of each schema, by the name of its file."""
    return {
        f"{command.replace(' ', '-')}.json": json.dumps(
            schema_of(command), ensure_ascii=False, indent=2
        )
        + "\n"
        for command in sorted(documents())
    }
