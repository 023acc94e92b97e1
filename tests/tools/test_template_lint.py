"""`make template-lint`: what it gives the linters, and what it makes of their findings.

The linters themselves are not in this virtual environment. Each run of `make template-lint` proves
that they work: they must find every fault of faulty.yaml.
"""

import json
import stat
from pathlib import Path

import pytest

from roundsman_dev.template import Document, Json, Template, mapping_of, part
from tools.template_lint import __main__ as command
from tools.template_lint.findings import (
    Finding,
    FoundByLinter,
    RuleException,
    WrongException,
    judged,
    not_found,
    read_exceptions,
)
from tools.template_lint.resolve import UnknownValue, policies, resolved

OPTIONS, LEAN = command.VARIANTS[1:3]
STAR = Finding("stacks/engine.yaml", "SchedulerRole.Sends", "RESOURCE_STAR", "too much", "default")


def template(value: Json, **conditions: Json) -> Document:
    """A template with a queue, a role, and a resource with this value."""
    return {
        "Conditions": conditions,
        "Mappings": {"Sizes": {"2": {"Most": 2}}},
        "Resources": {
            "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "jobs"}},
            "Role": {"Type": "AWS::IAM::Role", "Properties": {}},
            "Subject": {"Type": "AWS::SNS::Topic", "Properties": {"Value": value}},
        },
    }


def value_of(value: Json, **conditions: Json) -> Json:
    document = resolved(template(value, **conditions), {"Name": "shop", "Size": "2"})
    subject = mapping_of(part(document, "Resources")["Subject"])
    return part(subject, "Properties").get("Value")


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ({"Ref": "Name"}, "shop"),
        ({"Ref": "AWS::Region"}, "us-east-1"),
        ({"Ref": "Queue"}, "https://sqs.us-east-1.amazonaws.com/123456789012/jobs"),
        ({"Ref": "Role"}, "roundsman-Role"),
        ({"Ref": "Subject"}, "arn:aws:sns:us-east-1:123456789012:roundsman-Subject"),
        ({"Fn::GetAtt": ["Queue", "Arn"]}, "arn:aws:sqs:us-east-1:123456789012:jobs"),
        ({"Fn::GetAtt": ["Queue", "QueueName"]}, "jobs"),
        ({"Fn::GetAtt": ["Role", "RoleId"]}, "Role-RoleId"),
        ({"Fn::Sub": "${Name}-${Queue.Arn}"}, "shop-arn:aws:sqs:us-east-1:123456789012:jobs"),
        ({"Fn::Sub": ["${Own}/${!Name}", {"Own": {"Ref": "Name"}}]}, "shop/${Name}"),
        ({"Fn::Join": [",", ["a", {"Ref": "Name"}]]}, "a,shop"),
        ({"Fn::Split": [",", "a,b"]}, ["a", "b"]),
        ({"Fn::Select": [1, {"Fn::Split": [",", "a,b"]}]}, "b"),
        ({"Fn::FindInMap": ["Sizes", {"Ref": "Size"}, "Most"]}, 2),
        ([{"Ref": "AWS::NoValue"}, "kept"], ["kept"]),
        ({"Gone": {"Ref": "AWS::NoValue"}, "Kept": 1}, {"Kept": 1}),
    ],
)
def test_every_function_of_cloudformation_has_a_value(written: Json, found: Json) -> None:
    assert value_of(written) == found


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"Fn::Equals": [{"Ref": "Name"}, "shop"]}, True),
        ({"Fn::Not": [{"Fn::Equals": [{"Ref": "Name"}, "shop"]}]}, False),
        ({"Fn::And": [{"Condition": "Yes"}, {"Condition": "No"}]}, False),
        ({"Fn::Or": [{"Condition": "Yes"}, {"Condition": "No"}]}, True),
    ],
)
def test_a_condition_chooses_a_value_and_leaves_resources_out(condition: Json, holds: bool) -> None:
    known: dict[str, Json] = {
        "Yes": {"Fn::Equals": ["a", "a"]},
        "No": {"Fn::Equals": ["a", "b"]},
        "Asked": condition,
    }
    assert value_of({"Fn::If": ["Asked", "yes", "no"]}, **known) == ("yes" if holds else "no")
    document = template("any", **known)
    mapping_of(part(document, "Resources")["Role"])["Condition"] = "Asked"
    assert ("Role" in part(resolved(document, {"Name": "shop"}), "Resources")) is holds


@pytest.mark.parametrize(
    "written",
    [
        {"Fn::Base64": "text"},
        {"Ref": "Nothing"},
        {"Fn::If": ["Nothing", 1, 2]},
        {"Fn::Select": [0, "text"]},
    ],
)
def test_what_is_not_known_is_an_error_and_no_guess(written: Json) -> None:
    with pytest.raises(UnknownValue):
        value_of(written)


def test_an_arn_of_an_unknown_type_is_an_error() -> None:
    document = template({"Fn::GetAtt": ["Role", "Arn"]})
    mapping_of(part(document, "Resources")["Role"])["Type"] = "AWS::New::Kind"
    with pytest.raises(UnknownValue, match="AWS::New::Kind"):
        resolved(document, {})


def test_policies_of_every_kind_of_resource_are_found_with_their_conditions() -> None:
    faulty = command.VARIANTS[-1]
    found = policies(command.resolve(faulty))
    assert [(one.resource, one.place) for one in found] == [
        ("Role", "AssumeRolePolicyDocument"),
        ("Role", "PolicyDocument"),
        ("Managed", "PolicyDocument"),
        ("Policy", "PolicyDocument"),
    ]
    sids = [one["Sid"] for one in map(mapping_of, _list(found[1].document["Statement"]))]
    assert sids == ["SendsToATable", "SendsAnywhere", "ReadsTheBucket"]


def _list(value: Json) -> list[Json]:
    assert isinstance(value, list)
    return value


@pytest.mark.parametrize("variant", command.VARIANTS, ids=lambda variant: variant.name)
def test_a_resolved_template_has_no_function_left(variant: command.Variant) -> None:
    text = json.dumps(command.resolve(variant))
    assert '"Fn::' not in text
    assert '{"Ref":' not in text


def test_with_every_option_every_condition_of_the_templates_is_true() -> None:
    """So a resource that only an option makes is checked too."""
    left_out: list[set[str]] = []
    for variant in (OPTIONS, LEAN):
        template = Template.read(variant.path)
        document = template.translate(variant.values)
        conditions = part(document, "Conditions")
        asked: Document = {
            name: {"Type": "AWS::SNS::Topic", "Condition": name} for name in conditions
        }
        values = template.parameter_values(variant.values)
        made = part(resolved({**document, "Resources": asked}, values), "Resources")
        left_out.append(conditions.keys() - made.keys())
    assert set.intersection(*left_out) == set()


@pytest.mark.parametrize(
    ("stack", "block"), [("engine.yaml", "Engine"), *(("agent.yaml", a) for a in command.AGENTS)]
)
def test_with_every_option_every_parameter_that_may_be_empty_has_a_value(
    stack: str, block: str
) -> None:
    template = Template.read(command.ROOT / "stacks" / stack)
    empty = {
        name
        for name, parameter in part(template.document, "Parameters").items()
        if mapping_of(parameter).get("Default") == ""
    } - {"ServiceUrl"}  # the example's template gives it
    given = {name.partition(".")[2] for name in OPTIONS.values if name.startswith(f"{block}.")}
    assert empty - given == set()


@pytest.mark.parametrize(
    ("resource", "file"),
    [
        ("CoreLayer1a2b3c", "template.yaml"),
        ("PaymentRole.ReadsItsCredential", "stacks/agent.yaml"),
        ("SchedulerRole.WritesHistory", "stacks/engine.yaml"),
    ],
)
def test_a_finding_names_the_file_that_has_the_resource(resource: str, file: str) -> None:
    assert command.file_of(Template.read(OPTIONS.path), resource) == file


def test_a_finding_without_an_exception_is_one_line_with_file_resource_rule_and_sentence() -> None:
    assert judged([STAR, STAR], []) == [
        "stacks/engine.yaml (default): SchedulerRole.Sends: RESOURCE_STAR: too much"
    ]


@pytest.mark.parametrize(
    "exception",
    [
        RuleException("RESOURCE_STAR", "SchedulerRole.Sends", "for a reason"),
        RuleException("RESOURCE_STAR", "*Role.*", "for a reason", "default"),
    ],
    ids=str,
)
def test_an_exception_takes_out_what_it_names(exception: RuleException) -> None:
    assert judged([STAR], [exception]) == []


@pytest.mark.parametrize(
    "exception",
    [
        RuleException("UNKNOWN_ACTION", "SchedulerRole.Sends", "for a reason"),
        RuleException("RESOURCE_STAR", "SchedulerRole", "for a reason"),
        RuleException("RESOURCE_STAR", "SchedulerRole.Sends", "for a reason", "options"),
    ],
    ids=str,
)
def test_an_exception_for_something_else_takes_nothing_out_and_is_reported(
    exception: RuleException,
) -> None:
    assert judged([STAR], [exception]) == [
        str(STAR),
        f"exceptions.toml: {exception} excepts nothing: take it out",
    ]


ENTRY = '[[exception]]\nrule = "R"\nresources = ["A", "B*"]\nreason = "It is so here."\n'


def test_an_entry_is_an_exception_for_each_of_its_resources_in_each_of_its_variants() -> None:
    assert [(one.resource, one.variant) for one in read_exceptions(ENTRY)] == [
        ("A", None),
        ("B*", None),
    ]
    assert read_exceptions(ENTRY + 'variants = ["options", "lean"]\n') == [
        RuleException("R", "A", "It is so here.", "options"),
        RuleException("R", "A", "It is so here.", "lean"),
        RuleException("R", "B*", "It is so here.", "options"),
        RuleException("R", "B*", "It is so here.", "lean"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        ENTRY.replace("It is so here.", ""),
        ENTRY.replace('["A", "B*"]', "[]"),
        ENTRY.replace('["A", "B*"]', "[1]"),
        ENTRY.replace('["A", "B*"]', '"A"'),
        ENTRY.replace("rule", "rules"),
        ENTRY + 'until = "2030"\n',
        ENTRY + "variants = 1\n",
        ENTRY + "variants = []\n",
        ENTRY + 'variants = "default"\n',
        ENTRY + "variants = [1]\n",
    ],
)
def test_an_entry_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(WrongException):
        read_exceptions(text)


def test_the_file_of_exceptions_names_variants_that_exist() -> None:
    names = {variant.name for variant in command.VARIANTS} - {command.FAULTY}
    found = read_exceptions(command.EXCEPTIONS.read_text(encoding="utf-8"))
    assert {one.variant for one in found} <= {None, *names}


def test_a_fault_that_is_not_found_any_more_is_a_finding() -> None:
    wanted = [(STAR.resource, STAR.rule), ("Table", "CKV_AWS_28")]
    assert not_found([STAR], wanted) == [
        "faulty.yaml: Table: CKV_AWS_28 was not found: the linter does not work"
    ]


def linter(folder: Path, found: list[FoundByLinter]) -> str:
    """A program in place of the linters' Python, which finds this."""
    (folder / "found.json").write_text(json.dumps(found))
    program = folder / "linter"
    program.write_text(f"#!/bin/sh\ncat '{folder / 'found.json'}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def findings_of_a_good_run() -> list[FoundByLinter]:
    """Every fault of faulty.yaml, and one finding for each exception."""
    faults = [(command.FAULTY, resource, rule) for resource, rule in command.FAULTS]
    excepted = [
        (one.variant or "default", one.resource.replace("*", "Mail"), one.rule)
        for one in read_exceptions(command.EXCEPTIONS.read_text(encoding="utf-8"))
    ]
    return [
        {"variant": variant, "resource": resource, "rule": rule, "sentence": "found"}
        for variant, resource, rule in (*faults, *excepted)
    ]


def test_the_command_succeeds_if_all_is_excepted_and_every_fault_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([linter(tmp_path, findings_of_a_good_run())]) == 0
    assert capsys.readouterr().out.endswith(" exceptions, 0 findings\n")


def test_the_command_fails_for_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more: FoundByLinter = {
        "variant": "default",
        "resource": "MailRole.Sends",
        "rule": "RESOURCE_STAR",
        "sentence": "too much",
    }
    assert command.main([linter(tmp_path, [*findings_of_a_good_run(), more])]) == 1
    output = capsys.readouterr().out
    assert "stacks/agent.yaml (default): MailRole.Sends: RESOURCE_STAR: too much\n" in output


@pytest.mark.exhaustive
def test_the_command_fails_if_the_linters_find_nothing(tmp_path: Path) -> None:
    assert command.main([linter(tmp_path, [])]) == 1
