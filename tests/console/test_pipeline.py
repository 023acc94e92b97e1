"""The pipeline that `roundsman init` makes: its commands exist, and its roles may do enough."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from cfnlint.api import lint_all  # type: ignore[import-untyped]
from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-untyped]

from roundsman_dev.project.create import create
from roundsman_dev.prove.command import MOST_ORDERS, minutes_for
from roundsman_dev.prove.duration import longest_minutes
from roundsman_dev.prove.faults import FAULTS
from roundsman_dev.prove.project import write_project
from roundsman_dev.template import Template
from tests.console.deployer_rights import DEPLOYMENT, RIGHTS, Right, merged, rights_of
from tests.console.verbs import VERBS, split_verb

ROOT = Path(__file__).parents[2]
VALUES = {
    "partition": "aws",
    "region": "eu-west-1",
    "account": "123456789012",
    "stack": "shop-dev",
    "name": "x-1",
}
PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": "eu-west-1",
    "AWS::AccountId": "123456789012",
    "AWS::StackName": "deployer-shop-dev",
    "Stack": "shop-dev",
    "Repository": "amy/shop",
    "Stage": "dev",
}
LONGEST_MANAGED_POLICY = 6_144
"""Characters without white space (IAM and STS quotas)."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipeline") / "shop"
    create(folder, version="0.1.0")
    return folder


@pytest.fixture(scope="module")
def deployer(shop: Path) -> dict[str, Any]:
    found = yaml_parse((shop / "pipeline/deployer.yaml").read_text())
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def jobs(shop: Path) -> dict[str, Any]:
    found = yaml.safe_load((shop / ".github/workflows/deploy.yml").read_text())
    assert found["permissions"] == {"contents": "read", "id-token": "write"}
    jobs = found["jobs"]
    assert isinstance(jobs, dict)
    return jobs


def commands(jobs: Mapping[str, Any]) -> list[list[str]]:
    return [
        shlex.split(step["run"]) for job in jobs.values() for step in job["steps"] if "run" in step
    ]


def test_each_command_of_the_pipeline_exists_with_its_options(
    shop: Path, jobs: Mapping[str, Any]
) -> None:
    seen = set[str]()
    for program, *words in commands(jobs):
        seen.add(program)
        if program == ".venv/bin/roundsman":
            verb, rest = split_verb(words)
            VERBS[verb].make_context(verb, rest)
        elif program == ".venv/bin/sam":
            command = import_module(f"samcli.commands.{words[0]}.command").cli
            known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
            assert {word for word in words if word.startswith("--")} <= known
        else:
            assert (program, words) == ("make", ["install"])
            assert "\ninstall:" in (shop / "Makefile").read_text()
    assert seen == {".venv/bin/roundsman", ".venv/bin/sam", "make"}


def test_each_stage_is_checked_before_and_smoke_tested_after_its_deployment(
    shop: Path, jobs: Mapping[str, Any]
) -> None:
    config = (shop / "samconfig.toml").read_text()
    for stage in ("dev", "prod"):
        run = [step["run"] for step in jobs[stage]["steps"] if "run" in step]
        verbs = [" ".join(one.split()[:2]).removeprefix(".venv/bin/") for one in run]
        plan = ["sam build", "roundsman changes"] if stage == "dev" else []
        assert verbs == [
            *("make install", "roundsman preflight", *plan, "roundsman changes"),
            "roundsman smoke",
        ]
        assert f'--config-env {stage} --execute "$CHANGE_SET"' in run[-2]
        assert f"[{stage}.deploy.parameters]" in config
        assert f'stack_name = "shop-{stage}"' in config
        assert f"--stack shop-{stage}" in run[-1]
        assert jobs[stage]["environment"] == stage
    planned = jobs["prod-plan"]["steps"][-1]
    assert planned["run"].endswith('changes --config-env prod --github-output "$GITHUB_OUTPUT"')
    made = f"${{{{ steps.{planned['id']}.outputs.change_set }}}}"
    assert jobs["prod-plan"]["outputs"] == {"change_set": made}
    carried_out = "${{ needs.prod-plan.outputs.change_set }}"
    assert jobs["prod"]["steps"][-2]["env"] == {"CHANGE_SET": carried_out}
    assert (jobs["prod"]["needs"], jobs["prod-plan"]["needs"]) == ("prod-plan", "dev")


def test_actions_have_a_full_version_and_no_key_is_stored(jobs: Mapping[str, Any]) -> None:
    steps = [step for job in jobs.values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@v\d+\.\d+\.\d+", one) for one in used)
    text = json.dumps(jobs)
    assert "secrets." not in text
    assert "aws-access-key-id" not in text


@pytest.mark.exhaustive
def test_the_template_of_the_deployer_is_clean(shop: Path) -> None:
    found = lint_all((shop / "pipeline/deployer.yaml").read_text())
    assert [str(one) for one in found if not one.rule.id.startswith("I")] == []


def filled(value: object, values: Mapping[str, str] | None = None) -> str:
    """A resource or a value of a condition, with the values of the parameters."""
    text = value["Fn::Sub"] if isinstance(value, dict) else value
    given = {**PSEUDO, "Stack": "prove"} if values is PROVES else PSEUDO
    return re.sub(r"\$\{([^}]+)\}", lambda found: given[found[1]], str(text))


PROVES = {**VALUES, "stack": "prove-1a2b3c"}
_LOGS = "arn:{partition}:logs:{region}:{account}:log-group:/aws/lambda/{stack}/stock:*"
_UPLOADS = "arn:{partition}:s3:::aws-sam-cli-managed-default-x"
PROOF = (
    Right(_LOGS, ("logs:FilterLogEvents",)),
    Right(
        "arn:{partition}:sqs:{region}:{account}:{stack}-SubmissionQueue",
        ("sqs:SendMessage", "sqs:GetQueueAttributes"),
    ),
    Right(
        "arn:{partition}:dynamodb:{region}:{account}:table/{stack}-Ledger-1ABC",
        ("dynamodb:Scan", "dynamodb:Query", "dynamodb:BatchGetItem", "dynamodb:DeleteTable"),
    ),
    Right(
        "arn:{partition}:cloudformation:{region}:{account}:stack/{stack}/1-2-3",
        ("cloudformation:CancelUpdateStack", "cloudformation:TagResource"),
    ),
    Right(_UPLOADS, ("s3:ListBucketVersions",)),
    Right(_UPLOADS + "/{stack}/0a1b", ("s3:DeleteObjectVersion",)),
    Right("*", ("cloudwatch:GetMetricData", "cloudwatch:ListMetrics")),
    Right("*", ("lambda:ListEventSourceMappings", "cloudformation:DescribeStacks")),
)
"""What `roundsman prove` calls beside a deployment and its faults."""


def items(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def statements(deployer: Mapping[str, Any], *, proves: bool = False) -> Iterator[Mapping[str, Any]]:
    """The statements of the policies of the deployer, or of the one that makes proofs."""
    resources = deployer["Resources"]
    attached = [one["Ref"] for one in resources["Deployer"]["Properties"]["ManagedPolicyArns"]]
    for name in (*attached, "Proofs") if proves else attached:
        yield from resources[name]["Properties"]["PolicyDocument"]["Statement"]


def refused(
    deployer: Mapping[str, Any], right: Right, values: Mapping[str, str] = VALUES
) -> list[str]:
    """The actions of the right that no statement allows on its resource."""
    arn = right.arn(values)
    allowed = set[str]()
    for one in statements(deployer, proves=values is PROVES):
        passed = one.get("Condition", {}).get("StringEquals", {}).get("iam:PassedToService", "")
        if passed in ("", right.passed_to) and any(
            fnmatchcase(arn, filled(each, values)) for each in items(one["Resource"])
        ):
            allowed |= set(items(one["Action"]))
    return [f"{action} on {arn}" for action in right.actions if action not in allowed]


def types_of(template: Path) -> set[str]:
    found = Template.read(template)
    values = {
        name: "https://service.test"
        for name, one in found.document["Parameters"].items()  # type: ignore[union-attr]
        if "Default" not in one  # type: ignore[operator]
    }
    resources = found.translate(values)["Resources"]
    assert isinstance(resources, dict)
    return {str(one["Type"]) for one in resources.values() if isinstance(one, dict)}


@pytest.mark.parametrize("template", ["template.yaml", "examples/tenant_onboarding/template.yaml"])
def test_the_deployer_may_do_all_that_a_deployment_of_the_templates_needs(
    deployer: Mapping[str, Any], template: str
) -> None:
    types = types_of(ROOT / template)
    assert types <= RIGHTS.keys(), "list its rights in tests/console/deployer_rights.py"
    needed = merged([*DEPLOYMENT, *rights_of([*types, "AWS::CloudFormation::Stack"])])
    assert [each for right in needed for each in refused(deployer, right)] == []


def test_the_deployer_may_read_what_preflight_asks_of_the_account(
    deployer: Mapping[str, Any],
) -> None:
    asked = ("cloudformation:DescribeStacks", "lambda:GetAccountSettings", "lambda:ListFunctions")
    of_functions = ("lambda:GetFunctionConfiguration", "lambda:ListVersionsByFunction")
    function = "arn:{partition}:lambda:{region}:{account}:function:{stack}-{name}"
    for right in (Right("*", asked), Right(function, (*of_functions, "lambda:ListTags"))):
        assert refused(deployer, right) == []


def test_the_one_that_makes_proofs_may_do_all_that_a_proof_needs(
    deployer: Mapping[str, Any], tmp_path: Path
) -> None:
    write_project(tmp_path / "proof")
    types = types_of(tmp_path / "proof" / "template.yaml")
    assert types <= RIGHTS.keys()
    needed = merged([*DEPLOYMENT, *rights_of([*types, "AWS::CloudFormation::Stack"])])
    needed = [*needed, *PROOF]
    assert [each for right in needed for each in refused(deployer, right, PROVES)] == []
    faults = {need for fault in FAULTS for need in fault.needs}
    given = {a for one in statements(deployer, proves=True) for a in items(one["Action"])}
    assert faults <= given


def test_only_the_one_that_makes_proofs_has_the_rights_of_one(deployer: Mapping[str, Any]) -> None:
    assert refused(deployer, PROOF[0], VALUES)
    proofs = deployer["Resources"]["Proofs"]
    assert proofs["Condition"] == "Proves"
    assert proofs["Properties"]["Roles"] == [{"Ref": "Deployer"}]
    for one in proofs["Properties"]["PolicyDocument"]["Statement"]:
        for resource in (filled(each, PROVES) for each in items(one["Resource"])):
            narrow = "prove-" in resource or "aws-sam-cli-managed-default" in resource
            assert narrow or one["Sid"] == "WhatHasNoResource"


def test_a_proof_is_made_by_hand_and_cleans_up_whatever_happens(shop: Path) -> None:
    found = yaml.safe_load((shop / ".github/workflows/prove.yml").read_text())
    assert found[True] == {"workflow_dispatch": {}}  # YAML reads the key `on` as a boolean
    [job] = found["jobs"].values()
    *_, prove, clean_up, kept = job["steps"]
    assert prove["run"] == ".venv/bin/roundsman prove --yes"
    assert clean_up == {"if": "always()", "run": ".venv/bin/roundsman prove --clean-up --yes"}
    assert kept["if"] == "always()"
    for line in (prove["run"], clean_up["run"]):
        verb, rest = split_verb(line.split()[1:])
        VERBS[verb].make_context(verb, rest)


def test_the_session_of_a_proof_lasts_as_long_as_the_longest_proof_may(
    shop: Path, deployer: Mapping[str, Any]
) -> None:
    [job] = yaml.safe_load((shop / ".github/workflows/prove.yml").read_text())["jobs"].values()
    [asked] = [
        step["with"]["role-duration-seconds"]
        for step in job["steps"]
        if "role-duration-seconds" in step.get("with", {})
    ]
    longest = longest_minutes(minutes_for(MOST_ORDERS))
    assert longest <= job["timeout-minutes"] <= asked / 60
    given = deployer["Resources"]["Deployer"]["Properties"]["MaxSessionDuration"]["Fn::If"]
    assert asked <= given[1] <= 43_200, "the longest that IAM knows"


def test_a_right_that_the_deployer_lacks_is_found(deployer: Mapping[str, Any]) -> None:
    one = Right("arn:{partition}:sqs:{region}:{account}:other-{name}", ("sqs:CreateQueue",))
    assert refused(deployer, one) == [
        "sqs:CreateQueue on arn:aws:sqs:eu-west-1:123456789012:other-x-1"
    ]
    passed = Right(
        "arn:{partition}:iam::{account}:role/{stack}-{name}", ("iam:PassRole",), "ec2.amazonaws.com"
    )
    assert refused(deployer, passed) != []


def test_the_deployer_is_limited_to_the_names_of_its_stack(deployer: Mapping[str, Any]) -> None:
    # What has a generated id instead of a name, and what is of the account as a whole.
    nameless = ("kms:", "lambda:", "logs:Describe", "cloudwatch:", "cloudformation:", "dynamodb:")
    own = ("shop-dev", "aws-sam-cli-managed-default", "deployer-shop-dev")
    for one in statements(deployer):
        assert not any("*" in action for action in items(one["Action"]))
        for resource in map(filled, items(one["Resource"])):
            if not any(name in resource for name in own):
                wide = [a for a in items(one["Action"]) if not a.startswith(nameless)]
                assert not wide, f"{wide} on {resource}"


def test_the_roles_are_taken_by_one_repository_and_environment_only(
    deployer: Mapping[str, Any],
) -> None:
    for role, environment in (("Deployer", "dev"), ("Planner", "dev-plan")):
        trust = deployer["Resources"][role]["Properties"]["AssumeRolePolicyDocument"]
        [one] = trust["Statement"]
        assert {
            name: filled(value) for name, value in one["Condition"]["StringEquals"].items()
        } == {
            "token.actions.githubusercontent.com:aud": "sts.amazonaws.com",
            "token.actions.githubusercontent.com:sub": f"repo:amy/shop:environment:{environment}",
        }


def test_the_planner_changes_no_resource(deployer: Mapping[str, Any]) -> None:
    properties = deployer["Resources"]["Planner"]["Properties"]
    assert "ManagedPolicyArns" not in properties
    [policy] = properties["Policies"]
    actions = {
        action for one in policy["PolicyDocument"]["Statement"] for action in items(one["Action"])
    }
    changes = {a for a in actions if not re.match(r"\w+:(Describe|Get|List)", a)}
    assert changes == {
        *("cloudformation:CreateChangeSet", "cloudformation:DeleteChangeSet", "s3:PutObject")
    }


def test_each_policy_of_the_deployer_fits_in_the_limit_of_iam(deployer: Mapping[str, Any]) -> None:
    for name, resource in deployer["Resources"].items():
        if resource["Type"] == "AWS::IAM::ManagedPolicy":
            text = json.dumps(resource["Properties"]["PolicyDocument"], separators=(",", ":"))
            for variable, value in PSEUDO.items():
                text = text.replace(f"${{{variable}}}", value * 2)
            assert len(text) <= LONGEST_MANAGED_POLICY, name
