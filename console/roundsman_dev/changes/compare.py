"""Compares two versions of a stack: what is added, changed, replaced and removed, and which rights
grow.

Both are whole templates in plain CloudFormation, with the resources of nested stacks and the values
of parameters put in. Nothing is asked of AWS, so this works where AWS makes no change set.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

from roundsman_dev.changes.rights import Right, grown, rights_of
from roundsman_dev.changes.values import mapping_of
from roundsman_dev.nested_stacks import Document, Json


class Action(StrEnum):
    """What a deployment does with a resource, the least serious first. Scripts read the values."""

    NEW_VERSION = "new version"  # of a function or layer; the former one stays
    ADD = "added"
    CHANGE = "changed"
    UNPROTECT = "unprotected"  # a table that refused to be deleted does so no longer
    LEAVE = "left behind"  # the stack no longer has it, and it stays
    REMOVE = "removed"
    MAY_REPLACE = "may be replaced"
    REPLACE = "replaced"  # by a new, empty one


_BY_SERIOUSNESS = tuple(Action)
_ANEW = frozenset({Action.NEW_VERSION, Action.MAY_REPLACE, Action.REPLACE})
_LOSES = frozenset(
    {Action.UNPROTECT, Action.LEAVE, Action.REMOVE, Action.MAY_REPLACE, Action.REPLACE}
)
KEEPS_DATA = frozenset(
    {
        "AWS::DynamoDB::Table",
        "AWS::DynamoDB::GlobalTable",
        "AWS::S3::Bucket",
        "AWS::SQS::Queue",
    }
)
"""The types whose replacement loses rows, payloads or messages."""
VERSIONS = frozenset({"AWS::Lambda::Version", "AWS::Lambda::LayerVersion"})
"""The types that are replaced by each change, while the former one stays."""
_GENERATED = re.compile(r"(?P<stem>.+?)[0-9a-f]{10}")
_PLACEHOLDER = re.compile(r"\$\{([^!.}][^.}]*)[^}]*\}")


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """What a deployment does with one resource."""

    name: str
    """As `stack_resources` names it: `PaymentRequestQueue` of the block `Payment`."""
    kind: str
    """The type, such as `AWS::SQS::Queue`."""
    action: Action
    properties: tuple[str, ...] = ()
    """The properties that differ, or that name what differs."""

    @property
    def loses_data(self) -> bool:
        """Whether rows or messages are lost, or out of reach, or can be lost by a single call."""
        return self.kind in KEEPS_DATA and self.action in _LOSES

    def joined(self, other: "ResourceChange") -> "ResourceChange":
        """Return one change of two of the same resource: the more serious action counts."""
        action = max(self.action, other.action, key=_BY_SERIOUSNESS.index)
        properties = dict.fromkeys((*self.properties, *other.properties))
        return replace(self, action=action, properties=tuple(properties))


@dataclass(frozen=True, slots=True)
class Changes:
    """What a deployment would do."""

    own: tuple[ResourceChange, ...] = ()
    """The resources that are written otherwise, sorted by name."""
    passed_on: tuple[ResourceChange, ...] = ()
    """The resources that are written as before, and only name what changes."""
    rights: tuple[Right, ...] = ()
    """The rights that grow."""
    many_indexes: tuple[str, ...] = ()
    """The tables of which more than one index is made or removed, which CloudFormation refuses."""

    def stopped(self, allowed: Iterable[str] = ()) -> list[ResourceChange]:
        """Return the changes that lose data and whose resource nobody allowed by its name."""
        names = set(allowed)
        return [
            one for one in (*self.own, *self.passed_on) if one.loses_data and one.name not in names
        ]

    def joined(self, other: "Changes") -> "Changes":
        """Return what either of two answers says, each resource once."""
        own = _by_name((*self.own, *other.own))
        passed_on = _by_name((*self.passed_on, *other.passed_on))
        for name in own.keys() & passed_on.keys():
            own[name] = own[name].joined(passed_on.pop(name))
        rights = sorted({*self.rights, *other.rights})
        tables = sorted({*self.many_indexes, *other.many_indexes})
        return Changes(
            _sorted(own.values()), _sorted(passed_on.values()), tuple(rights), tuple(tables)
        )


def compare(before: Mapping[str, Document], after: Mapping[str, Document]) -> Changes:
    """Return what becomes of the resources of a stack, by their names and bodies.

    Names that SAM generates for versions are compared without their hash. A resource that names a
    replaced one by a property that cannot be changed is replaced too. Raises nothing.
    """
    old, new = _stable(before), _stable(after)
    own = {}
    for name in old.resources.keys() | new.resources.keys():
        change = _direct(name, old, new)
        if change is not None:
            own[name] = change
    staying = {name: body for name, body in new.resources.items() if name in old.resources}
    passed_on = _naming_what_changes(staying, own)
    rights = grown(rights_of(old.resources), rights_of(new.resources))
    tables = tuple(
        name
        for name, body in staying.items()
        if len(_indexes(old.resources[name]) ^ _indexes(body)) > 1
    )
    return Changes(_sorted(own.values()), (), tuple(rights), tables).joined(
        Changes(passed_on=_sorted(passed_on.values()))
    )


def stable_name(name: str, kind: str) -> str:
    """Return the name of a resource without the hash that SAM gives the name of a version."""
    found = _GENERATED.fullmatch(name) if kind in VERSIONS else None
    return found["stem"] if found else name


@dataclass(frozen=True, slots=True)
class _Stable:
    """Resources by names that stay the same from deployment to deployment."""

    resources: Mapping[str, Document]
    generated: Mapping[str, str]
    """The name that SAM gave, by the one without the hash."""


def _stable(resources: Mapping[str, Document]) -> _Stable:
    stems = Counter(stable_name(name, _kind(body)) for name, body in resources.items())
    names = {
        name: stem
        for name, body in resources.items()
        if (stem := stable_name(name, _kind(body))) != name
        if stems[stem] == 1 and stem not in resources
    }
    renamed = {names.get(name, name): _renamed(body, names) for name, body in resources.items()}
    return _Stable(
        {name: body for name, body in renamed.items() if isinstance(body, dict)},
        {stem: name for name, stem in names.items()},
    )


def _renamed(value: Json, names: Mapping[str, str]) -> Json:
    match value:
        case {"Ref": str(name)} if name in names:
            return {"Ref": names[name]}
        case {"Fn::GetAtt": [str(name), attribute]} if name in names:
            return {"Fn::GetAtt": [names[name], attribute]}
        case dict():
            return {key: _renamed(inner, names) for key, inner in value.items()}
        case list():
            return [_renamed(inner, names) for inner in value]
        case _:
            return value


def _direct(name: str, old: _Stable, new: _Stable) -> ResourceChange | None:
    """What is done with a resource because it is written otherwise; None for nothing."""
    before, after = old.resources.get(name), new.resources.get(name)
    if before is None:
        return None if after is None else ResourceChange(name, _kind(after), Action.ADD)
    if after is None:
        stays = str(before.get("DeletionPolicy", "Delete")).startswith("Retain")
        return ResourceChange(name, _kind(before), Action.LEAVE if stays else Action.REMOVE)
    kind = _kind(after)
    if _kind(before) != kind:
        return ResourceChange(name, kind, Action.REPLACE, ("Type",))
    was, now = _properties(before), _properties(after)
    differing = tuple(
        each for each in sorted(was.keys() | now.keys()) if was.get(each) != now.get(each)
    )
    generated = old.generated.get(name) != new.generated.get(name)
    if not differing and not generated:
        return None
    if kind in VERSIONS:
        return ResourceChange(name, kind, Action.NEW_VERSION, differing)
    action = max(
        (_effect(kind, each, was.get(each), now.get(each)) for each in differing),
        key=_BY_SERIOUSNESS.index,
    )
    return ResourceChange(name, kind, action, differing)


def _effect(kind: str, place: str, was: Json, now: Json) -> Action:
    """What a change of one property does with the resource."""
    always, perhaps = _create_only(kind)
    if _differ(was, now, place, always):
        return Action.REPLACE
    if place == "DeletionProtectionEnabled" and was == "true":
        return Action.UNPROTECT
    if kind == "AWS::DynamoDB::Table" and place == "AttributeDefinitions":
        # By its documentation an edited definition replaces the table, and a new one does not.
        former = {str(one) for one in _items(was)}
        left = former - {str(one) for one in _items(now)}
        names = {_attribute(one) for one in _items(now)}
        edited = any(_attribute(one) in names for one in _items(was) if str(one) in left)
        return Action.MAY_REPLACE if edited else Action.CHANGE
    return Action.MAY_REPLACE if _differ(was, now, place, perhaps) else Action.CHANGE


def _indexes(body: Document) -> set[str]:
    """The names of the indexes of a table; of another resource, none."""
    listed = _items(_properties(body).get("GlobalSecondaryIndexes"))
    return {str(one["IndexName"]) for one in listed if isinstance(one, dict) and "IndexName" in one}


def _attribute(definition: Json) -> str:
    return str(definition.get("AttributeName")) if isinstance(definition, dict) else ""


def _differ(was: Json, now: Json, place: str, paths: frozenset[tuple[str, ...]]) -> bool:
    """Whether one of these paths, which begin with the property `place`, has another value."""
    return any(
        path[0] == place and _at(was, path[1:]) != _at(now, path[1:]) for path in paths if path
    )


def _at(value: Json, path: tuple[str, ...]) -> Json:
    for each in path:
        value = value.get(each) if isinstance(value, dict) else None
    return value


@cache
def _create_only(kind: str) -> tuple[frozenset[tuple[str, ...]], frozenset[tuple[str, ...]]]:
    """The paths of properties whose change replaces a resource of this type, always and perhaps.

    They are in AWS's schema of the type, which cfn-lint has; none for a type that it does not know.
    """
    from cfnlint.schema import (  # type: ignore[import-untyped]
        ResourceNotFoundError,
    )
    from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER  # type: ignore[import-untyped]

    try:
        schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
    except ResourceNotFoundError:
        return frozenset(), frozenset()
    always, perhaps = (
        frozenset(tuple(path.split("/")[2:]) for path in schema.get(place) or ())
        for place in ("createOnlyProperties", "conditionalCreateOnlyProperties")
    )
    return always, perhaps


def _naming_what_changes(
    resources: Mapping[str, Document], own: Mapping[str, ResourceChange]
) -> dict[str, ResourceChange]:
    """What becomes of the resources that name one which is replaced or is a new version."""
    anew = {name for name, one in own.items() if one.action in _ANEW}
    while True:
        found = {
            name: change
            for name, body in resources.items()
            if (change := _naming(name, body, anew)) is not None
        }
        more = anew | {name for name, one in found.items() if one.action in _ANEW}
        if more == anew:
            return found
        anew = more


def _naming(name: str, body: Document, anew: set[str]) -> ResourceChange | None:
    places = [
        place for place, value in _properties(body).items() if anew.intersection(_names(value))
    ]
    if not places:
        return None
    kind = _kind(body)
    always, perhaps = _create_only(kind)
    if any(path[0] in places for path in always):
        action = Action.NEW_VERSION if kind in VERSIONS else Action.MAY_REPLACE
    else:
        replaces = any(path[0] in places for path in perhaps)
        action = Action.MAY_REPLACE if replaces else Action.CHANGE
    return ResourceChange(name, kind, action, tuple(sorted(places)))


def _names(value: Json) -> Iterator[str]:
    """Yield the name of each resource or parameter that a value names."""
    match value:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), *_]}:
            yield name
        case {"Fn::Sub": str(text)}:
            yield from _PLACEHOLDER.findall(text)
        case {"Fn::Sub": [str(text), dict(more)]}:
            yield from _PLACEHOLDER.findall(text)
            yield from _names(more)
        case dict():
            for inner in value.values():
                yield from _names(inner)
        case list():
            for inner in value:
                yield from _names(inner)
        case _:
            return


def _by_name(changes: Iterable[ResourceChange]) -> dict[str, ResourceChange]:
    found: dict[str, ResourceChange] = {}
    for one in changes:
        found[one.name] = found[one.name].joined(one) if one.name in found else one
    return found


def _sorted(changes: Iterable[ResourceChange]) -> tuple[ResourceChange, ...]:
    return tuple(sorted(changes, key=lambda one: one.name))


def _kind(body: Document) -> str:
    return str(body.get("Type", ""))


def _properties(body: Document) -> Document:
    return mapping_of(body.get("Properties"))


def _items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
