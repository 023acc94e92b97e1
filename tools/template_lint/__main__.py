"""Checks the templates with parliament and checkov; `make template-lint` runs it.

    python -m tools.template_lint PYTHON

`PYTHON` is that of the virtual environment with the linters. Each line is a finding: the file, the
resource, the rule, and what the linter says. The exit code is 1 if there are any.
"""

import json
import logging
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from roundsman_dev.template import Document, Template, mapping_of, part
from tools.template_lint.findings import (
    Finding,
    FoundByLinter,
    judged,
    not_found,
    read_exceptions,
)
from tools.template_lint.resolve import ACCOUNT, REGION, policies, resolved

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EXCEPTIONS = HERE / "exceptions.toml"
FAULTY = "faulty"
FAULTS: tuple[tuple[str, str], ...] = (
    ("Queue", "CKV_AWS_27"),
    ("Table", "CKV_AWS_28"),
    ("Role.0", "UNKNOWN_ACTION"),
    ("Role.SendsToATable", "RESOURCE_MISMATCH"),
    ("Role.SendsAnywhere", "RESOURCE_STAR"),
    ("Role.ReadsTheBucket", "UNKNOWN_ACTION"),
    ("Managed.GivesItselfRights", "PERMISSIONS_MANAGEMENT_ACTIONS"),
    ("Policy.TakesMessagesOfThisAccount", "UNKNOWN_CONDITION_FOR_ACTION"),
)
"""What must be found in faulty.yaml: the resource and the rule."""

KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0a1b2c3d"
OPERATOR, SUBMITTER = f"arn:aws:iam::{ACCOUNT}:role/ops", "arn:aws:iam::111122223333:role/shop"
SOURCES = ",".join(
    (
        f"arn:aws:sns:{REGION}:{ACCOUNT}:orders",
        "arn:aws:s3:::uploads",
        f"arn:aws:events:{REGION}:{ACCOUNT}:rule/orders",
    )
)
ADDRESSES: Mapping[str, str] = {
    f"{name}Url": f"https://{name.lower()}.test"
    for name in ("Inventory", "Payment", "Shipping", "Mail")
}
ENGINE_OPTIONS: Mapping[str, str] = {
    "EncryptionKey": KEY,
    "FormerEncryptionKey": f"{KEY}0",
    "DeletionProtection": "true",
    "OperatorRoleIds": "AROAOPERATORS",
    "ConsoleRoleId": "AROACONSOLEROLE",
    "OperatorPrincipals": OPERATOR,
    "SubmitterPrincipals": SUBMITTER,
    "SubmitterSources": SOURCES,
    "AlertEmail": "ops@example.com",
    "AlertEndpoint": "https://pager.example.com",
    "Dashboard": "true",
    "TracingSamplePercent": "5",
    "LogLevel": "DEBUG",
    "SupervisorReserved": "2",
    "SnapStart": "true",
    "SearchFields": "3",
    "PayloadBucket": "true",
}
AGENT_OPTIONS: Mapping[str, str] = {
    "Credential": f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:service-AbCdEf",
    "CredentialKey": KEY,
    "ServiceCa": "ca.pem",
    "Subnets": "subnet-0a1b2c3d",
    "SecurityGroups": "sg-0a1b2c3d",
    "AnswerPrincipals": OPERATOR,
    "OldestMessageAlarmSeconds": "2400",
    "SnapStart": "true",
}
AGENTS = ("Inventory", "Payment", "Shipping", "Mail")


@dataclass(frozen=True)
class Variant:
    """A template with one choice of its parameters."""

    name: str
    path: Path
    values: Mapping[str, str]
    """Values of its parameters, and of those of its nested stacks (`Engine.EncryptionKey`)."""


EVERY_OPTION: Mapping[str, str] = {
    **ADDRESSES,
    **{f"Engine.{name}": value for name, value in ENGINE_OPTIONS.items()},
    **{f"{agent}.{name}": value for agent in AGENTS for name, value in AGENT_OPTIONS.items()},
}
SMALL: Mapping[str, str] = {"Engine.Profile": "lean", "Engine.SmallAccount": "true"}
VARIANTS = (
    Variant("default", ROOT / "template.yaml", ADDRESSES),
    Variant("options", ROOT / "template.yaml", EVERY_OPTION),
    Variant("lean", ROOT / "template.yaml", {**EVERY_OPTION, **SMALL}),
    Variant(FAULTY, HERE / "faulty.yaml", {"Bucket": "orders"}),
)


def resolve(variant: Variant) -> Document:
    """Return the template of a variant in plain CloudFormation, without intrinsic functions."""
    template = Template.read(variant.path)
    return resolved(template.translate(variant.values), template.parameter_values(variant.values))


def file_of(template: Template, resource: str) -> str:
    """The file, beside the template, that has a resource or what the resource was made from."""
    engine = template.path.name
    for block, body in part(template.written, "Resources").items():
        location = part(mapping_of(body), "Properties").get("Location")
        if isinstance(location, str) and resource.startswith(block):
            return location
        if isinstance(location, str) and location.endswith("engine.yaml"):
            engine = location
        if resource.startswith(block):
            return template.path.name
    return engine


def run_linters(python: str, folder: Path) -> list[FoundByLinter]:
    """Write every variant into the folder and return what the linters find in them.

    Raises subprocess.CalledProcessError if they cannot be run.
    """
    (folder / "policies").mkdir()
    for variant in VARIANTS:
        document = resolve(variant)
        found = [asdict(policy) for policy in policies(document)]
        (folder / f"{variant.name}.json").write_text(json.dumps(document))
        (folder / "policies" / f"{variant.name}.json").write_text(json.dumps(found))
    done = subprocess.run(
        [python, str(HERE / "linters.py"), str(folder)], stdout=subprocess.PIPE, check=True
    )
    found_by_linters: list[FoundByLinter] = json.loads(done.stdout)
    return found_by_linters


def main(arguments: list[str]) -> int:
    """Run the linters, print what remains after the exceptions, and return the exit code."""
    logging.getLogger("samtranslator").setLevel(logging.ERROR)  # of its own unsent statistics
    with TemporaryDirectory() as folder:
        raw = run_linters(arguments[0], Path(folder))
    findings: dict[str, list[Finding]] = {variant.name: [] for variant in VARIANTS}
    templates = {variant.name: Template.read(variant.path) for variant in VARIANTS}
    for one in raw:
        file = file_of(templates[one["variant"]], one["resource"])
        finding = Finding(file, one["resource"], one["rule"], one["sentence"], one["variant"])
        findings[one["variant"]].append(finding)
    faulty = findings.pop(FAULTY)
    exceptions = read_exceptions(EXCEPTIONS.read_text(encoding="utf-8"))
    lines = judged((one for some in findings.values() for one in some), exceptions)
    lines += not_found(faulty, FAULTS)
    summary = (
        f"Policies: {len(findings)} variants of template.yaml, {len(exceptions)} exceptions, "
        f"{len(lines)} findings"
    )
    print("\n".join([*lines, summary]))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
