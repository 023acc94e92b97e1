"""Dashboards: CloudWatch accepts their bodies, and they show one stack."""

import json
import re
from collections.abc import Iterator

from roundsman.testing.rules.application import Application, Rule
from roundsman.testing.rules.reading import STACK, at, items, of_type
from roundsman.testing.stack.template import Document, Json

MOST_WIDGETS = 500
"""https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html"""
REGION = "${AWS::Region}"
_PLACEHOLDER = re.compile(r"\$\{[^}]*\}")
_OWN = re.compile(r"\bRoundsman/(?!\$\{AWS::StackName\}[\"\\])")

_OTHER_LOGS = re.compile(
    r"SOURCE (?!'/aws/lambda/\$\{AWS::StackName\}/|"
    r"logGroups\(namePrefix: \['/aws/lambda/\$\{AWS::StackName\}/'\]\))"
)


def dashboards(template: Document) -> dict[str, Document]:
    """The properties of every dashboard, by logical id."""
    return of_type(template, "AWS::CloudWatch::Dashboard")


def body_of(dashboard: Document) -> Json:
    """The body of a dashboard as CloudWatch reads it, each placeholder as `x`.

    Of a part that a condition chooses, it is the one for a condition that holds. Raises ValueError
    if it is not JSON.
    """
    return bodies_of(dashboard)[0]


def bodies_of(dashboard: Document) -> tuple[Json, Json]:
    """The bodies of a dashboard if all its conditions hold, and if none does; see `body_of`."""
    return _body(dashboard, 1), _body(dashboard, 2)


def _body(dashboard: Document, place: int) -> Json:
    body = dashboard.get("DashboardBody")
    text, parts = body, {}
    match at(body, "Fn::Sub"):
        case str(found):
            text = found
        case [str(found), dict(named)]:
            text, parts = found, named
        case _:
            pass
    for name, part in parts.items():
        chosen = items(at(part, "Fn::If"))
        inner = str(at(chosen[place], "Fn::Sub")) if len(chosen) > place else ""
        text = str(text).replace("${" + name + "}", inner)
    read: Json = json.loads(_PLACEHOLDER.sub("x", str(text)))
    return read


def _texts(dashboard: Document) -> str:
    """All texts of the body, as they are in the template."""
    body = dashboard.get("DashboardBody")
    match at(body, "Fn::Sub"):
        case [str(text), dict(parts)]:
            inner = [at(each, "Fn::Sub") for p in parts.values() for each in items(at(p, "Fn::If"))]
            return "\n".join([text, *map(str, inner)])
        case found:
            return str(found)


def dashboard_bodies(application: Application) -> list[str]:
    """The body of each dashboard is JSON after its substitution, with widgets that have a place and
    a title or a text. CloudFormation would find a mistake only in the deployment."""
    problems = []
    for name, dashboard in dashboards(application.template).items():
        try:
            bodies = bodies_of(dashboard)
        except ValueError as error:
            problems.append(f"{name}: DashboardBody is no JSON: {error}")
            continue
        found = dict.fromkeys(problem for body in bodies for problem in _body_problems(body))
        problems += [f"{name}: {problem}" for problem in found]
    return problems


def _body_problems(body: Json) -> Iterator[str]:
    widgets = at(body, "widgets")
    if not isinstance(widgets, list) or not 0 < len(widgets) <= MOST_WIDGETS:
        yield f"DashboardBody must have 1 to {MOST_WIDGETS} widgets"
        return
    yield from _problems(widgets)


def _problems(widgets: list[Json]) -> Iterator[str]:
    for number, widget in enumerate(widgets, 1):
        match widget:
            case {"type": "text", "properties": {"markdown": str()}}:
                pass
            case {"type": "metric", "properties": {"title": str(), "region": str()}}:
                yield from _metric_problems(number, at(widget, "properties", "metrics"))
            case {"type": "log", "properties": {"title": str(), "region": str(), "query": str()}}:
                pass
            case _:
                yield f"widget {number} must be a text, or have a title, a region and its content"


def _metric_problems(number: int, metrics: Json) -> Iterator[str]:
    for metric in metrics if isinstance(metrics, list) and metrics else [None]:
        match metric:
            case [{"expression": str()}] | [str(), str(), *_]:
                pass
            case _:
                yield f"widget {number}: a metric must be a list of names, or of one expression"


def dashboard_of_the_stack(application: Application) -> list[str]:
    """A dashboard has the names of the stack and of the region, since dashboards of all regions
    share one list, and shows no metric and no log of another stack."""
    problems = []
    for name, dashboard in dashboards(application.template).items():
        if at(dashboard.get("DashboardName"), "Fn::Sub") != f"{STACK}-{REGION}":
            problems.append(f"{name}: DashboardName must be {STACK}-{REGION}")
        if _OWN.search(_texts(dashboard)):
            problems.append(f"{name}: the namespace of metrics must be Roundsman/{STACK}")
        if _OTHER_LOGS.search(_texts(dashboard)):
            problems.append(f"{name}: a query must read from log groups of /aws/lambda/{STACK}/")
    return problems


RULES: tuple[Rule, ...] = (dashboard_bodies, dashboard_of_the_stack)
