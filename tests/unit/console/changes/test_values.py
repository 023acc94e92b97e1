"""The values of parameters in a template, as far as they are known without AWS."""

from typing import Any

import pytest

from roundsman_dev.changes.values import with_values

PARAMETERS = {"Name": "shop", "On": "true", "List": "a,b,c"}
CONDITIONS: Any = {
    "IsOn": {"Fn::Equals": [{"Ref": "On"}, "true"]},
    "IsOff": {"Fn::Not": [{"Condition": "IsOn"}]},
    "Both": {"Fn::And": [{"Condition": "IsOn"}, {"Fn::Equals": [{"Ref": "AWS::Region"}, "x"]}]},
    "Neither": {"Fn::And": [{"Condition": "IsOff"}, {"Condition": "Both"}]},
    "Either": {"Fn::Or": [{"Condition": "Both"}, {"Condition": "IsOn"}]},
}


def value(written: object) -> object:
    template: Any = {
        "Conditions": CONDITIONS,
        "Mappings": {"M": {"shop": {"Most": 3}}},
        "Resources": {"R": {"Type": "T", "Properties": {"P": written}}},
    }
    return with_values(template, PARAMETERS)["R"]["Properties"]["P"]  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"Ref": "Name"}, "shop"),
        ({"Ref": "Queue"}, {"Ref": "Queue"}),
        (310, "310"),
        (True, "true"),
        ({"Fn::Sub": "${Name}-x"}, "shop-x"),
        ({"Fn::Sub": "${Name}-${Queue.Arn}-${!Name}"}, {"Fn::Sub": "shop-${Queue.Arn}-${!Name}"}),
        ({"Fn::Sub": "${!Name}"}, "${Name}"),
        ({"Fn::Sub": ["${A}-${B}", {"A": "1", "B": {"Ref": "Q"}}]}, None),
        ({"Fn::Join": ["-", [{"Ref": "Name"}, "y"]]}, "shop-y"),
        ({"Fn::Join": ["-", [{"Ref": "Q"}, "y"]]}, {"Fn::Join": ["-", [{"Ref": "Q"}, "y"]]}),
        ({"Fn::Select": [1, {"Fn::Split": [",", {"Ref": "List"}]}]}, "b"),
        ({"Fn::Select": [9, {"Fn::Split": [",", {"Ref": "List"}]}]}, None),
        ({"Fn::FindInMap": ["M", {"Ref": "Name"}, "Most"]}, "3"),
        ({"Fn::If": ["IsOn", 1, 2]}, "1"),
        ({"Fn::If": ["IsOff", 1, 2]}, "2"),
        ({"Fn::If": ["Both", 1, 2]}, {"Fn::If": ["Both", "1", "2"]}),
        ({"Fn::If": ["Neither", 1, 2]}, "2"),
        ({"Fn::If": ["Either", 1, 2]}, "1"),
        ([{"Fn::If": ["IsOn", "x", {"Ref": "AWS::NoValue"}]}], ["x"]),
        ([{"Fn::If": ["IsOff", "x", {"Ref": "AWS::NoValue"}]}, "y"], ["y"]),
        ({"A": {"Ref": "AWS::NoValue"}, "B": [{"Ref": "AWS::NoValue"}, "x"]}, {"B": ["x"]}),
    ],
)
def test_what_is_known_is_put_in_and_the_rest_stays(written: object, expected: object) -> None:
    found = value(written)
    if expected is None:  # it stays a function
        assert isinstance(found, dict)
        assert list(found) == list(written)  # type: ignore[call-overload]
    else:
        assert found == expected


def test_a_resource_exists_unless_its_condition_is_known_not_to_hold() -> None:
    template: Any = {
        "Conditions": CONDITIONS,
        "Resources": {
            name: {"Type": "T", "Condition": name} for name in ("IsOn", "IsOff", "Both", "Neither")
        },
    }
    assert sorted(with_values(template, PARAMETERS)) == ["Both", "IsOn"]


def test_a_condition_that_names_itself_is_not_known() -> None:
    template: Any = {
        "Conditions": {"A": {"Fn::Not": [{"Condition": "A"}]}},
        "Resources": {"R": {"Type": "T", "Condition": "A"}},
    }
    assert list(with_values(template, {})) == ["R"]
