"""The metric filters of a template: which metrics CloudWatch Logs makes of a function's log lines.

It reads the patterns that the templates use: conditions on the fields of a JSON line, all of which
must hold. https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html has
the whole syntax, https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/MonitoringLogData.html
what a filter publishes.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from roundsman_dev.check.reading import (
    at,
    mappings_in,
    of_type,
    reference,
)
from roundsman_dev.template import Document, Json, TemplateProblem

MOST_DIMENSIONS = 3
"""Of one metric filter."""

_CONDITION = re.compile(
    r"\$\.(?P<field>\w+) +(?:(?P<compared>>=|>|=) +(?:\"(?P<text>[^\"*]+)\"|(?P<number>[0-9]+))"
    r"|(?P<absent>NOT EXISTS))"
)


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a filter pattern on a field of the line."""

    field: str
    compared: str | None
    """`>=`, `>` or `=`; None if the field must be absent."""
    to: str | int

    def holds(self, line: Mapping[str, object]) -> bool:
        """Whether the line meets the condition."""
        if self.compared is None:
            return self.field not in line
        value = line.get(self.field)
        if self.compared == "=":
            return value == self.to
        if not isinstance(value, int | float) or not isinstance(self.to, int):
            return False
        return value >= self.to if self.compared == ">=" else value > self.to


@dataclass(frozen=True, slots=True)
class MetricValue:
    """A value of a metric, as CloudWatch gets it from a log line."""

    namespace: str
    """As in the template: `Roundsman/${AWS::StackName}`."""
    name: str
    value: float
    dimensions: tuple[tuple[str, str], ...]
    """Names and values, in the order of the template."""


@dataclass(frozen=True, slots=True)
class MetricFilter:
    """An AWS::Logs::MetricFilter of a template."""

    function: str
    """The logical id of the function whose log group it reads."""
    conditions: tuple[Condition, ...]
    namespace: str
    name: str
    value: str
    """A number, or the field of the line that has it: `$.took_ms`."""
    dimensions: tuple[tuple[str, str], ...]
    """Each with the field of the line that has its value."""

    def measured(self, line: Mapping[str, object]) -> MetricValue | None:
        """What the filter makes of a line; None if it does not match.

        A metric with dimensions has no value of a line that lacks one of their fields.
        """
        if not all(condition.holds(line) for condition in self.conditions):
            return None
        value = line.get(_field(self.value), self.value)
        found = [(name, line.get(_field(field))) for name, field in self.dimensions]
        if not isinstance(value, int | float | str) or any(text is None for _, text in found):
            return None
        dimensions = tuple((name, str(text)) for name, text in found)
        return MetricValue(self.namespace, self.name, float(value), dimensions)


def metric_filters(template: Document) -> Iterator[MetricFilter]:
    """Yield the metric filters of a template, also those that a condition leaves out.

    Raises TemplateProblem for one that this module cannot read, that has more dimensions than
    CloudWatch Logs allows, or a default value beside dimensions, or no function's log group.
    """
    groups = {
        reference(at(function, "LoggingConfig", "LogGroup")): name
        for kind in ("AWS::Lambda::Function", "AWS::Serverless::Function")
        for name, function in of_type(template, kind).items()
    }
    for name, found in of_type(template, "AWS::Logs::MetricFilter").items():
        function = groups.get(reference(found["LogGroupName"]))
        if function is None:
            raise TemplateProblem(f"{name}: LogGroupName must be that of a function")
        conditions = tuple(_conditions(name, str(found["FilterPattern"])))
        for each in mappings_in(found["MetricTransformations"]):
            dimensions = mappings_in(each.get("Dimensions"))
            if len(dimensions) > MOST_DIMENSIONS:
                raise TemplateProblem(f"{name}: at most {MOST_DIMENSIONS} dimensions are allowed")
            if dimensions and "DefaultValue" in each:
                raise TemplateProblem(f"{name}: a metric with dimensions has no default value")
            yield MetricFilter(
                function,
                conditions,
                _text(each["MetricNamespace"]),
                str(each["MetricName"]),
                str(each["MetricValue"]),
                tuple((str(one["Key"]), str(one["Value"])) for one in dimensions),
            )


def _conditions(name: str, pattern: str) -> Iterator[Condition]:
    if not (pattern.startswith("{ ") and pattern.endswith(" }")):
        raise TemplateProblem(f"{name}: a pattern is {{ ... }}")
    for part in pattern[2:-2].split(" && "):
        found = _CONDITION.fullmatch(part.removeprefix("(").removesuffix(")"))
        if found is None:
            raise TemplateProblem(f"{name}: {part!r} is no condition that this module knows")
        to = found["text"] if found["number"] is None else int(found["number"])
        yield Condition(found["field"], found["compared"], to or 0)


def _field(selector: str) -> str:
    return selector.removeprefix("$.") if selector.startswith("$.") else ""


def _text(value: Json) -> str:
    return str(at(value, "Fn::Sub") or value)
