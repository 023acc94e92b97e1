"""Puts the values of parameters into a template of CloudFormation, as far as they are known.

What only AWS knows (the ARN of a resource, the account) stays as it is written, so two templates
are compared by what differs between them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from roundsman_dev.nested_stacks import Document, Json

_PLACEHOLDER = re.compile(r"\$\{([^!}][^}]*)\}")
NOTHING: Final = {"Ref": "AWS::NoValue"}
"""What a template writes for no value."""


def with_values(template: Document, parameters: Mapping[str, str]) -> dict[str, Document]:
    """Return the resources of a template that exist with these parameters, by name.

    Functions of CloudFormation are replaced by their values where these are known. Numbers and
    truth values become text, since CloudFormation takes 310 and "310" for the same. A resource
    whose condition is not known is taken for one that exists.
    """
    values = _Values(template, parameters)
    return {
        name: values.resource(body)
        for name, body in mapping_of(template.get("Resources")).items()
        if isinstance(body, dict) and values.truth(body.get("Condition")) is not False
    }


def mapping_of(value: Json) -> Document:
    """Return a mapping of a template; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


@dataclass
class _Values:
    template: Document
    parameters: Mapping[str, str]
    known: dict[str, bool | None] = field(default_factory=dict)
    """The conditions that were evaluated; None is not known, or is being evaluated."""

    def resource(self, body: Document) -> Document:
        return {name: self.of(value) for name, value in body.items() if value is not None}

    def truth(self, condition: Json) -> bool | None:
        """Whether a condition holds, by its name; None is not known. No condition holds."""
        if condition is None:
            return True
        if not isinstance(condition, str):
            return None
        if condition not in self.known:
            self.known[condition] = None
            written = mapping_of(self.template.get("Conditions")).get(condition)
            self.known[condition] = self._holds(written)
        return self.known[condition]

    def _holds(self, written: Json) -> bool | None:
        match written:
            case {"Fn::Equals": [left, right]}:
                both = self.of(left), self.of(right)
                return both[0] == both[1] if all(isinstance(one, str) for one in both) else None
            case {"Fn::Not": [inner]}:
                holds = self._holds(inner)
                return None if holds is None else not holds
            case {"Fn::And": list(inner)}:
                found = [self._holds(one) for one in inner]
                return False if False in found else None if None in found else True
            case {"Fn::Or": list(inner)}:
                found = [self._holds(one) for one in inner]
                return True if True in found else None if None in found else False
            case {"Condition": str(name)}:
                return self.truth(name)
            case _:
                return None

    def of(self, value: Json) -> Json:
        """The value as it is known; `{"Ref": "AWS::NoValue"}` for none."""
        match value:
            case bool():
                return str(value).lower()
            case int() | float():
                return str(value)
            case list():
                return [one for one in map(self.of, value) if one != NOTHING]
            case {"Fn::If": [str(name), yes, no]}:  # a branch may be none, and stays in its place
                return self._branch(name, self.of(yes), self.of(no))
            case dict():
                found = {name: self.of(inner) for name, inner in value.items()}
                return self._function(found)
            case _:
                return value

    def _branch(self, condition: str, yes: Json, no: Json) -> Json:
        holds = self.truth(condition)
        return {"Fn::If": [condition, yes, no]} if holds is None else yes if holds else no

    def _function(self, found: Document) -> Json:  # noqa: PLR0911  # one case for each function
        """The value of a function whose arguments are evaluated; all else without what is none."""
        match found:
            case {"Ref": str(name)}:
                return self.parameters.get(name, found)
            case {"Fn::Join": [str(between), list(parts)]} if all(
                isinstance(one, str) for one in parts
            ):
                return between.join(map(str, parts))
            case {"Fn::Split": [str(between), str(text)]}:
                return list(text.split(between))
            case {"Fn::Select": [str(place), list(items)]} if place.isdecimal() and int(
                place
            ) < len(items):
                return items[int(place)]
            case {"Fn::FindInMap": [str(table), str(row), str(column)]}:
                rows = mapping_of(mapping_of(self.template.get("Mappings")).get(table))
                return self.of(mapping_of(rows.get(row)).get(column, found))
            case {"Fn::Sub": str(text)}:
                return self._substituted(text, {})
            case {"Fn::Sub": [str(text), dict(more)]}:
                return self._substituted(text, more)
            case _:
                return {name: inner for name, inner in found.items() if inner != NOTHING}

    def _substituted(self, text: str, more: Document) -> Json:
        left = dict(more)

        def replace(placeholder: re.Match[str]) -> str:
            name = placeholder[1]
            value = more.get(name, self.parameters.get(name))
            if not isinstance(value, str):
                return placeholder[0]
            left.pop(name, None)
            return value

        new = _PLACEHOLDER.sub(replace, text)
        if not _PLACEHOLDER.search(new):
            return new.replace("${!", "${")
        return {"Fn::Sub": [new, left]} if left else {"Fn::Sub": new}
