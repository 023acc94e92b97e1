"""The dashboard of our stacks: CloudWatch accepts its body, and it shows one stack."""

import json
import re

from roundsman_dev.check.reading import (
    STACK,
    at,
)
from roundsman_dev.template import Document, Json, mapping_of
from tests.support.dashboard import bodies_of, dashboard_of, texts_of
from tests.template.faults import Fault, fails_with, put, sub

MOST_WIDGETS = 500
"""https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html"""
OWN_METRICS = re.compile(r"\bRoundsman/(?!\$\{AWS::StackName\}[\"\\])")
OTHER_LOGS = re.compile(
    r"SOURCE (?!'/aws/lambda/\$\{AWS::StackName\}/|"
    r"logGroups\(namePrefix: \['/aws/lambda/\$\{AWS::StackName\}/'\]\))"
)
BODY = "OperatorDashboard/DashboardBody/Fn::Sub"


def graph(*metrics: Json) -> str:
    """A body with one widget that has these metrics."""
    properties: Document = {"title": "a", "region": "b", "metrics": [*metrics]}
    return json.dumps({"widgets": [{"type": "metric", "properties": properties}]})


def in_the_body(old: str, new: str) -> Fault:
    """Another text for a part of the dashboard's body."""

    def make(template: Document) -> None:
        body = mapping_of(dashboard_of(template)["DashboardBody"])
        text = json.dumps(body["Fn::Sub"])
        found = json.dumps(old)[1:-1]  # as it stands inside of a JSON text
        assert found in text
        body["Fn::Sub"] = json.loads(text.replace(found, json.dumps(new)[1:-1], 1))

    return Fault(f"{new} for {old}", make)


@fails_with(
    in_the_body('"start": "-PT6H",', '"start": "-PT6H"'),
    put(BODY, "{}"),
    in_the_body('"region"', '"place"'),
    put(BODY, graph({"expression": "SEARCH()"})),
    put(BODY, graph()),
)
def test_the_body_is_json_with_widgets_that_have_a_title_and_content(template: Document) -> None:
    """CloudFormation would find a mistake only in the deployment."""
    try:
        bodies = bodies_of(dashboard_of(template))
    except ValueError as error:
        raise AssertionError("no JSON") from error
    for body in bodies:
        widgets = at(body, "widgets")
        assert isinstance(widgets, list)
        assert 0 < len(widgets) <= MOST_WIDGETS
        assert all(map(_is_complete, widgets))


def _is_complete(widget: Json) -> bool:
    match widget:
        case {"type": "text", "properties": {"markdown": str()}}:
            return True
        case {"type": "metric", "properties": {"title": str(), "region": str()}}:
            metrics = at(widget, "properties", "metrics")
            return isinstance(metrics, list) and bool(metrics) and all(map(_is_metric, metrics))
        case {"type": "log", "properties": {"title": str(), "region": str(), "query": str()}}:
            return True
        case _:
            return False


def _is_metric(metric: Json) -> bool:
    match metric:
        case [{"expression": str()}] | [str(), str(), *_]:
            return True
        case _:
            return False


OF_THE_STACK = "['/aws/lambda/${AWS::StackName}/']"


@fails_with(
    put("OperatorDashboard/DashboardName", sub(STACK)),
    in_the_body(f"Roundsman/{STACK}", "Roundsman/shop"),
    in_the_body(OF_THE_STACK, "['/aws/lambda/']"),
    in_the_body(OF_THE_STACK, "['/aws/lambda/${AWS::StackName}']"),
    in_the_body("'/aws/lambda/${AWS::StackName}/super", "'/aws/lambda/shop/super"),
)
def test_it_has_the_names_of_the_stack_and_the_region_and_shows_no_other_stack(
    template: Document,
) -> None:
    """Dashboards of all regions share one list."""
    dashboard = dashboard_of(template)
    assert dashboard["DashboardName"] == sub(f"{STACK}-${{AWS::Region}}")
    assert not OWN_METRICS.search(texts_of(dashboard))
    assert not OTHER_LOGS.search(texts_of(dashboard))
