"""Runs parliament and checkov, and prints their findings as JSON.

    .venv/template-lint/bin/python tools/template_lint/linters.py FOLDER

This file is run by the Python of the linters' own virtual environment, which has no package of
this project. `FOLDER` has for each variant NAME the resolved template NAME.json, which checkov
reads, and its policies in policies/NAME.json, which parliament reads.
"""

import json
import subprocess
import sys
import warnings
from pathlib import Path

TRUST = "AssumeRolePolicyDocument"


def parliament_findings(folder: Path) -> list[dict[str, str]]:
    """Return what parliament finds in the policies of each variant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it imports pkg_resources, which is deprecated
        import parliament  # type: ignore[import-not-found]
    auditors = Path(parliament.__file__).parent / "community_auditors" / "config_override.yaml"
    parliament.override_config(str(auditors))

    def found_in(statements: list[dict[str, object]], trust: bool) -> list[tuple[str, str]]:
        text = json.dumps({"Version": "2012-10-17", "Statement": statements})
        # What an auditor says of rights is not about a trust policy: that gives none.
        policy = parliament.analyze_policy_string(text, include_community_auditors=not trust)
        every = map(parliament.enhance_finding, policy.findings)
        return [(one.issue, f"{one.title}: {one.detail or _place(one.location)}") for one in every]

    findings = []
    for path in sorted((folder / "policies").glob("*.json")):
        for policy in json.loads(path.read_text()):
            trust = policy["place"] == TRUST
            statements = policy["document"]["Statement"]
            statements = statements if isinstance(statements, list) else [statements]
            if trust:  # parliament asks for a resource; a trust policy has none
                statements = [{**one, "Resource": "arn:aws:iam::*:role/*"} for one in statements]
            seen: set[tuple[str, str]] = set()
            for number, statement in enumerate(statements):
                label = f"{policy['resource']}.{statement.get('Sid', number)}"
                for rule, sentence in found_in([statement], trust):
                    seen.add((rule, sentence))
                    findings.append(_finding(path.stem, label, rule, sentence))
            version = policy["document"].get("Version")
            if version != "2012-10-17":
                label, sentence = policy["resource"], f"Version is {version}, not 2012-10-17"
                findings.append(_finding(path.stem, label, "VERSION", sentence))
            for rule, sentence in found_in(statements, trust):  # what statements do together
                if (rule, sentence) not in seen:
                    findings.append(_finding(path.stem, policy["resource"], rule, sentence))
    return findings


def checkov_findings(folder: Path) -> list[dict[str, str]]:
    """Return what checkov finds in the template of each variant.

    Raises ValueError if it could not read one of them.
    """
    templates = sorted(folder.glob("*.json"))
    files = [argument for path in templates for argument in ("--file", str(path))]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "checkov.main", *files, "--framework", "cloudformation"),
            *("--output", "json", "--quiet", "--compact", "--skip-download", "--soft-fail"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ValueError(f"checkov ended with {done.returncode}: {done.stderr[-2000:]}")
    report = json.loads(done.stdout)
    read = {Path(one["file_path"]).stem for one in _checks(report)}
    missing = [path.name for path in templates if path.stem not in read]
    if missing or report["summary"]["parsing_errors"]:
        raise ValueError(f"checkov could not read {', '.join(missing) or 'a template'}")
    return [
        _finding(
            Path(one["file_path"]).stem,
            one["resource"].rpartition(".")[2],
            one["check_id"],
            one["check_name"],
        )
        for one in report["results"]["failed_checks"]
    ]


def _checks(report: dict[str, dict[str, list[dict[str, str]]]]) -> list[dict[str, str]]:
    results = report["results"]
    return [*results["failed_checks"], *results.get("passed_checks", ())]


def _place(location: dict[str, object]) -> str:
    return str(location.get("string", "see the policy"))


def _finding(variant: str, resource: str, rule: str, sentence: str) -> dict[str, str]:
    return {"variant": variant, "resource": resource, "rule": rule, "sentence": sentence}


if __name__ == "__main__":
    json.dump(
        [*parliament_findings(Path(sys.argv[1])), *checkov_findings(Path(sys.argv[1]))], sys.stdout
    )
