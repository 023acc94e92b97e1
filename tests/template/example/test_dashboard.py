"""The dashboard of the engine: metrics that exist, and agents that come by themselves."""

import json
import re
from pathlib import Path

from roundsman_dev.check.reading import (
    agents,
    items,
)
from roundsman_dev.template import Document, Json, mapping_of
from tests.docs.test_metrics_page import written
from tests.support.dashboard import bodies_of, body_of, dashboard_of
from tests.template.test_alarms import METRICS

OF_AWS = {name for namespace, name in METRICS if namespace.startswith("AWS/")} | {
    "ConsumedReadCapacityUnits",
    "ConsumedWriteCapacityUnits",
}
SEARCHED = re.compile(
    r"SEARCH\('\{\"Roundsman/x\",[a-z,]+\} MetricName=\"(\w+)\"', "
    r"'(?:Sum|Maximum|p50|p99)', (?:300|3600)\)"
)


def metrics_of(document: Document) -> list[Json]:
    dashboard = dashboard_of(document)
    widgets = items(mapping_of(body_of(dashboard))["widgets"])
    return [
        metric
        for widget in widgets
        for metric in items(mapping_of(mapping_of(widget)["properties"]).get("metrics"))
    ]


def test_each_metric_of_the_dashboard_is_one_that_exists(document: Document) -> None:
    own, of_aws = set[str](), set[str]()
    for metric in metrics_of(document):
        match metric:
            case [{"expression": str(expression)}]:
                found = SEARCHED.fullmatch(expression)
                assert found, expression
                own.add(found[1])
            case ["Roundsman/x", str(name), *_]:
                own.add(name)
            case [str(namespace), str(name), *_]:
                assert namespace.startswith("AWS/")
                of_aws.add(name)
            case _:
                raise AssertionError(metric)
    assert own <= written()
    assert of_aws <= OF_AWS
    assert own >= {"TasksCompleted", "TasksUndone", "TasksCancelled", "TasksArchived"}
    assert own >= {"BreakersOpened", "StepAttemptMs", "TaskDecisions", "SupervisorLagMs", "StepMs"}


def test_the_dashboard_names_no_agent_so_that_an_added_one_is_shown(document: Document) -> None:
    dashboard = dashboard_of(document)
    text = json.dumps(dashboard).lower()
    assert not [agent.name for agent in agents(document) if agent.name in text]
    assert text.count("search(") > 5


def test_without_step_metrics_latency_by_step_is_read_from_the_lines_that_agents_write(
    document: Document,
) -> None:
    dashboard = dashboard_of(document)
    with_metrics, without = (
        [
            str(mapping_of(mapping_of(widget)["properties"])["query"])
            for widget in items(mapping_of(body)["widgets"])
            if mapping_of(widget)["type"] == "log"
        ]
        for body in bodies_of(dashboard)
    )
    assert not [each for each in with_metrics if each.startswith("SOURCE logGroups")]
    queries = without
    [query] = [each for each in queries if each.startswith("SOURCE logGroups")]
    assert query.endswith("by step | sort nearly_all_within desc | limit 50")
    read = set(re.findall(r"(?:pct|max|ispresent)\((\w+)", query))
    assert read == {"took_ms", "queued_ms", "operation"}
    page = (Path(__file__).parents[3] / "docs/reference/metrics-and-logs.md").read_text("utf-8")
    [line] = re.findall(r"^\| `attempted` \| agent \| (.*) \|$", page, re.MULTILINE)
    assert read <= set(re.findall(r"`(\w+)`", line))
    assert "message = 'attempted'" in query
