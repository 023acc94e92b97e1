"""Tests of a template that must fail for each of the faults beside them.

`fails_with` runs a test on the templates as they are, and then once for each fault on a copy that
has this fault, where one of its assertions must fail.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps

import pytest

from roundsman_dev.check.reading import items
from roundsman_dev.nested_stacks import copied
from roundsman_dev.template import Document, Json, mapping_of, part
from tests.support.template_reading import allowed_to

SECTIONS = ("Conditions", "Globals", "Mappings", "Outputs", "Parameters", "Resources")


@dataclass(frozen=True)
class Fault:
    """A change of a translated template that a test must notice."""

    label: str
    make: Callable[[Document], None]
    of: int = 0
    """Which of the templates is changed."""


Check = Callable[[Document], None]


def fails_with(*faults: Fault, templates: str = "whole") -> Callable[[Check], Callable[..., None]]:
    """Run a test on the templates of a fixture, and see it fail for each fault of one of them."""

    def decorate(check: Check) -> Callable[..., None]:
        def test(request: pytest.FixtureRequest, fault: Fault | None) -> None:
            whole: list[Document] = request.getfixturevalue(templates)
            if fault is None:
                for each in whole:
                    check(each)
                return
            template = mapping_of(copied(whole[fault.of]))
            fault.make(template)
            with pytest.raises(AssertionError):
                check(template)

        wraps(check)(test)
        del test.__wrapped__  # type: ignore[attr-defined]  # pytest would take its arguments
        labels = ["holds", *(fault.label for fault in faults)]
        return pytest.mark.parametrize("fault", [None, *faults], ids=labels)(test)

    return decorate


def _place(template: Document, path: str) -> tuple[Document, str]:
    """The mapping that has the last key of a path; the path may begin with a resource's name."""
    *above, last = path.split("/")
    if above[0] not in SECTIONS:
        above = ["Resources", above[0], "Properties", *above[1:]]
    found: Json = template
    for key in above:
        found = found[int(key)] if isinstance(found, list) else mapping_of(found)[key]
    return mapping_of(found), last


def put(path: str, value: Json) -> Fault:
    """Another value at a path such as `Resources/SchedulerQueue` or `SchedulerQueue/QueueName`."""

    def make(template: Document) -> None:
        mapping, key = _place(template, path)
        assert mapping.get(key) != value, f"{path} is {value} already"
        mapping[key] = value

    return Fault(f"{path} = {json.dumps(value)[:40]}", make)


def drop(path: str) -> Fault:
    """No value at a path."""

    def make(template: Document) -> None:
        mapping, key = _place(template, path)
        del mapping[key]

    return Fault(f"no {path}", make)


def remove(path: str, value: Json) -> Fault:
    """A list without an item."""

    def make(template: Document) -> None:
        mapping, key = _place(template, path)
        found = mapping[key]
        assert isinstance(found, list)
        found.remove(value)

    return Fault(f"no {json.dumps(value)} in {path}", make)


def allow(role: str, action: str, resource: Json) -> Fault:
    """A statement that allows a role one action more."""

    def make(template: Document) -> None:
        policy = _place(template, f"{role}/Policies/0/PolicyDocument")[0]
        document = mapping_of(policy["PolicyDocument"])
        statement: Document = {"Sid": "MayDoMore", "Effect": "Allow"}
        statement |= {"Action": action, "Resource": resource}
        document["Statement"] = [*items(document["Statement"]), statement]

    return Fault(f"{role} may {action} on {json.dumps(resource)[:60]}", make)


def in_statement(role: str, sid: str, key: str, value: Json) -> Fault:
    """Another value in a statement of a role; None for no value."""

    def make(template: Document) -> None:
        [statement] = [s for s in allowed_to(template, role) if s["Sid"] == sid]
        assert statement.get(key) != value
        statement[key] = value
        if value is None:
            del statement[key]

    return Fault(f"{role}: {sid}: {key} = {json.dumps(value)[:40]}", make)


def without_resource(role: str, sid: str, resource: Json) -> Fault:
    """A statement of a role without one of its resources."""

    def make(template: Document) -> None:
        [statement] = [s for s in allowed_to(template, role) if s["Sid"] == sid]
        found = items(statement["Resource"])
        found.remove(resource)
        statement["Resource"] = found

    return Fault(f"{role}: {sid} without {json.dumps(resource)[:60]}", make)


def with_services(fault: Fault) -> Fault:
    """The fault in the template with keys of its owner and with all that a service may need."""
    return replace(fault, of=2)


def of_version(function: str, key: str, value: Json) -> Fault:
    """Another value of the published version of a function."""

    def make(template: Document) -> None:
        names = part(template, "Resources")
        [name] = [name for name in names if name.startswith(f"{function}Version")]
        put(f"Resources/{name}/{key}", value).make(template)

    return Fault(f"the version of {function}: {key} = {value}", make)


def ref(name: str) -> Document:
    return {"Ref": name}


def arn(name: str) -> Document:
    return {"Fn::GetAtt": [name, "Arn"]}


def sub(text: str) -> Document:
    return {"Fn::Sub": text}
