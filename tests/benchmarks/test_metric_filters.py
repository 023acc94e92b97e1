"""The metric filters of a template, read as CloudWatch Logs reads them."""

import pytest

from benchmarks.harness.metric_filters import MetricValue, metric_filters
from roundsman_dev.template import Document, Json, TemplateProblem

BY_STEP: list[Json] = [{"Key": "step", "Value": "$.step"}]


def template(pattern: str, dimensions: list[Json] = BY_STEP, **transformation: Json) -> Document:
    measured: Json = {
        "MetricNamespace": {"Fn::Sub": "Roundsman/${AWS::StackName}"},
        "MetricName": "StepMs",
        "MetricValue": "$.ms",
        "Dimensions": dimensions,
        **transformation,
    }
    return {
        "Resources": {
            "Filter": {
                "Type": "AWS::Logs::MetricFilter",
                "Properties": {
                    "LogGroupName": {"Ref": "Logs"},
                    "FilterPattern": pattern,
                    "MetricTransformations": [measured],
                },
            },
            "Function": {
                "Type": "AWS::Lambda::Function",
                "Properties": {"LoggingConfig": {"LogGroup": {"Ref": "Logs"}}},
            },
        }
    }


def of(line: dict[str, object], pattern: str = "{ $.ms >= 0 }") -> MetricValue | None:
    [found] = metric_filters(template(pattern))
    assert found.function == "Function"
    return found.measured(line)


def test_a_line_that_matches_has_the_value_and_the_dimensions_of_its_fields() -> None:
    assert of({"ms": 12, "step": "pick"}) == MetricValue(
        "Roundsman/${AWS::StackName}", "StepMs", 12.0, (("step", "pick"),)
    )


def test_a_line_without_the_field_of_a_dimension_has_no_value() -> None:
    assert of({"ms": 12}) is None


@pytest.mark.parametrize(
    ("pattern", "line", "matches"),
    [
        ("{ $.ms >= 0 }", {}, False),
        ("{ $.ms >= 0 }", {"ms": "0"}, False),
        ("{ $.ms > 0 }", {"ms": 0}, False),
        ("{ $.ms > 0 }", {"ms": 1}, True),
        ('{ ($.ms >= 0) && ($.message = "decided") }', {"ms": 1, "message": "decided"}, True),
        ('{ ($.ms >= 0) && ($.message = "decided") }', {"ms": 1, "message": "other"}, False),
        ("{ ($.ms >= 0) && ($.reminder NOT EXISTS) }", {"ms": 1}, True),
        ("{ ($.ms >= 0) && ($.reminder NOT EXISTS) }", {"ms": 1, "reminder": 1}, False),
    ],
)
def test_all_conditions_of_a_pattern_must_hold(
    pattern: str, line: dict[str, object], *, matches: bool
) -> None:
    assert (of({**line, "step": "pick"}, pattern) is not None) == matches


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (template("$.ms >= 0"), "a pattern is"),
        (template("{ $.ms != 0 }"), "no condition that this module knows"),
        (template('{ $.message = "dec*" }'), "no condition that this module knows"),
        (template("{ $.ms >= 0 }", BY_STEP * 4), "at most 3 dimensions"),
        (template("{ $.ms >= 0 }", DefaultValue=0), "no default value"),
        ({"Resources": {"Filter": template("")["Resources"]["Filter"]}}, "that of a function"),  # type: ignore[index,call-overload]
    ],
)
def test_a_filter_that_cloudwatch_refuses_or_this_cannot_read_is_refused(
    document: Document, why: str
) -> None:
    with pytest.raises(TemplateProblem, match=why):
        list(metric_filters(document))
