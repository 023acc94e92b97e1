"""Reads the body of a dashboard as CloudWatch does."""

import json
import re

from roundsman_dev.check.reading import (
    at,
    items,
    of_type,
)
from roundsman_dev.template import Document, Json

_PLACEHOLDER = re.compile(r"\$\{[^}]*\}")


def dashboard_of(template: Document) -> Document:
    """The properties of the one dashboard."""
    [found] = of_type(template, "AWS::CloudWatch::Dashboard").values()
    return found


def body_of(dashboard: Document) -> Json:
    """The body of a dashboard, each placeholder as `x`.

    Of a part that a condition chooses, it is the one for a condition that holds. Raises ValueError
    if it is not JSON.
    """
    return bodies_of(dashboard)[0]


def bodies_of(dashboard: Document) -> tuple[Json, Json]:
    """The bodies of a dashboard if all its conditions hold, and if none does; see `body_of`."""
    return _body(dashboard, 1), _body(dashboard, 2)


def _body(dashboard: Document, place: int) -> Json:
    text, parts = _sub(dashboard)
    for name, part in parts.items():
        chosen = items(at(part, "Fn::If"))
        text = text.replace("${" + name + "}", str(at(chosen[place], "Fn::Sub")))
    read: Json = json.loads(_PLACEHOLDER.sub("x", text))
    return read


def texts_of(dashboard: Document) -> str:
    """All texts of the body, as they are in the template."""
    text, parts = _sub(dashboard)
    inner = [at(each, "Fn::Sub") for p in parts.values() for each in items(at(p, "Fn::If"))]
    return "\n".join([text, *map(str, inner)])


def _sub(dashboard: Document) -> tuple[str, Document]:
    match at(dashboard, "DashboardBody", "Fn::Sub"):
        case [str(text), dict(parts)]:
            return text, parts
        case text:
            return str(text), {}
