"""The alarms of a stack on moto, with what CloudFormation would put in place of its functions."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from roundsman_dev.check.reading import mappings_in
from roundsman_dev.template import Document, Json
from roundsman_testing.stack.resources import StackOnMoto
from tests.support.template_reading import alarms


@dataclass(frozen=True)
class MetricKey:
    """A metric as CloudWatch identifies it."""

    namespace: str
    name: str
    dimensions: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class ResolvedAlarm:
    """An alarm, with the names of the resources that it watches."""

    logical: str
    name: str
    metric: MetricKey
    statistic: str


def resolved(stack: StackOnMoto, value: Json) -> str:
    """The text of a value of the template in this stack."""

    def named(found: re.Match[str]) -> str:
        return resolved(stack, {"Ref": found[1]})

    match value:
        case {"Ref": str(name)}:
            return {"AWS::StackName": stack.name, **stack.resources}[name]
        case {"Fn::GetAtt": [str(name), "QueueName"]}:
            return stack.resources[name].rpartition("/")[2]
        case {"Fn::Sub": str(text)}:
            return re.sub(r"\$\{([\w:]+)\}", named, text)
        case _:
            return str(value)


def metric_key(stack: StackOnMoto, metric: Document) -> MetricKey:
    """The metric that an alarm, or a metric of its expression, names."""
    return MetricKey(
        resolved(stack, metric["Namespace"]),
        str(metric["MetricName"]),
        frozenset(
            (str(each["Name"]), resolved(stack, each["Value"]))
            for each in mappings_in(metric.get("Dimensions"))
        ),
    )


def resolved_alarms(stack: StackOnMoto, template: Document) -> list[ResolvedAlarm]:
    """Every alarm on one metric of the stack; `template` is its translated template."""
    return [
        ResolvedAlarm(
            logical,
            resolved(stack, alarm["AlarmName"]),
            metric_key(stack, alarm),
            str(alarm["Statistic"]),
        )
        for logical, alarm in alarms(template).items()
        if "MetricName" in alarm
    ]


def emitted(lines: Iterable[Mapping[str, object]]) -> Iterator[tuple[MetricKey, list[float]]]:
    """Each metric of these log lines with its values, as CloudWatch reads the embedded format."""
    for line in lines:
        directives = line.get("_aws", {})
        assert isinstance(directives, dict)
        for directive in directives.get("CloudWatchMetrics", []):
            for names in directive["Dimensions"]:
                dimensions = frozenset((name, str(line[name])) for name in names)
                for metric in directive["Metrics"]:
                    values = line[metric["Name"]]
                    assert isinstance(values, list)
                    yield MetricKey(directive["Namespace"], metric["Name"], dimensions), values
