"""Each rule of the policy scan is shown failing on a sample, and silent beside it.

Samples are put together here from parts, so that this file passes the scan itself.
"""

import subprocess
from pathlib import Path

import pytest

from tools.policy_rules import File
from tools.policy_scan import EXCEPTIONS, ROOT, read_repository, scan


def rules_broken(path: str, text: str) -> list[str]:
    return [finding.rule for finding in scan([File(path, text)], {})]


@pytest.mark.parametrize(
    "text",
    [
        "key = " + "AKIA" + "ABCDEFGHIJKLMNOP",
        "aws_secret_access_key" + " = " + "abcdefghij" * 4,
        "-----BEGIN " + "RSA PRIVATE KEY-----",
        "-----BEGIN " + "PRIVATE KEY-----",
        "ghp" + "_" + "a1B2" * 9,
        "github" + "_pat_" + "a1B2_" * 11,
        "xoxb" + "-1234567890-abcdef",
        "sk" + "_live_" + "a1B2" * 5,
        "npm" + "_" + "a1B2" * 9,
        "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxMjM0In0" + ".c2lnbmF0dXJl",
    ],
)
def test_a_secret_is_found(text: str) -> None:
    assert rules_broken("docs/setup.md", text) == ["secret"]


@pytest.mark.parametrize(
    "text",
    ["AWS_SECRET_ACCESS_KEY=testing", '"paymentToken": "tok_visa"', "--hash=sha256:" + "ab" * 32],
)
def test_fake_credentials_and_hashes_are_no_secrets(text: str) -> None:
    assert rules_broken("docs/setup.md", text) == []


@pytest.mark.parametrize(
    "path", ["/ho" + "me/ada/project", "/ro" + "ot/.aws", "/wo" + "rk/main", "/Us" + "ers/ada"]
)
def test_a_path_of_one_machine_is_found(path: str) -> None:
    assert rules_broken("docs/setup.md", f"open {path} first") == ["machine-path"]


@pytest.mark.parametrize(
    "text",
    ["see layers/workflows/work", "GET /workflows", "the /rooted tree", "~/work", "a/home/b"],
)
def test_a_relative_path_or_a_url_is_no_path_of_one_machine(text: str) -> None:
    assert rules_broken("docs/setup.md", text) == []


@pytest.mark.parametrize(
    "host", ["pypi" + ".org", "files.python" + "hosted.org", "registry.npmjs" + ".org"]
)
def test_a_registry_host_is_found(host: str) -> None:
    text = f"see https://{host}/"
    assert rules_broken("requirements/dev.txt", text) == ["registry-host"]


def test_a_lock_file_that_names_hosts_is_found_by_its_name() -> None:
    assert rules_broken("uv.lock", "") == ["lock-file"]
    assert rules_broken("console/package-lock.json", "{}") == ["lock-file"]


@pytest.mark.parametrize("word", ["TO" + "DO", "FIX" + "ME"])
def test_unfinished_work_is_found(word: str) -> None:
    assert rules_broken("layers/core/roundsman/engine/machine.py", f"# {word}: undo") == [
        "unfinished"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "import pytest\n\ndef test_x():\n    pytest.skip('later')\n",
        "import pytest\n\n@pytest.mark.xfail\ndef test_x(): ...\n",
        "import pytest\n\n@pytest.mark.skipif(True, reason='')\ndef test_x(): ...\n",
        "import pytest\n\nmoto = pytest.importorskip('moto')\n",
        "from pytest import skip\n",
        "class T:\n    def test_x(self):\n        self.skipTest('later')\n",
    ],
)
def test_a_skipped_test_is_found(text: str) -> None:
    assert rules_broken("tests/unit/test_x.py", text) == ["skipped-test"]


def test_a_word_like_skip_elsewhere_is_no_skipped_test() -> None:
    text = "'pytest.skip'\n\ndef test_x(reader):\n    reader.skip(1)\n"
    assert rules_broken("tests/unit/test_x.py", text) == []


@pytest.mark.parametrize(
    "path", ["layers/core/roundsman/engine/machine.py", "functions/submission/app.py"]
)
def test_a_print_in_what_runs_on_lambda_is_found(path: str) -> None:
    assert rules_broken(path, "def f():\n    print('x')\n") == ["print"]


def test_a_print_in_the_console_is_allowed() -> None:
    assert rules_broken("console/roundsman_console/main.py", "print('x')\n") == []


def template(statement: str) -> str:
    body = "".join(f"          {line}\n" for line in statement.splitlines())
    return f"Resources:\n  Role:\n    Properties:\n      Policies:\n        -\n{body}"


@pytest.mark.parametrize(
    "statement",
    [
        'Effect: Allow\nAction: sqs:SendMessage\nResource: "*"',
        "Effect: Allow\nAction: '*'\nResource: !GetAtt Queue.Arn",
        "Effect: Allow\nAction: sqs:*\nResource: !GetAtt Queue.Arn",
        'Effect: Allow\nAction:\n  - sqs:SendMessage\n  - "sqs:*"\nResource: !GetAtt Queue.Arn',
        'Effect: Allow\nAction: [xray:PutTraceSegments]\nResource: ["*"]',
    ],
)
def test_a_wildcard_grant_without_a_reason_is_found(statement: str) -> None:
    assert rules_broken("template.yaml", template(statement)) == ["wildcard-grant"]


@pytest.mark.parametrize(
    "statement",
    [
        'Effect: Allow\nAction: a:B\nResource: "*"  # the action has no resources to name',
        'Effect: Allow\nAction: a:B\n# the action has no resources to name\nResource: "*"',
        'Effect: Deny\nPrincipal: "*"\nAction: sqs:*\nResource: !GetAtt Queue.Arn',
        'Effect: Allow\nAction: a:B\nResource: !Sub "arn:aws:s3:::${Bucket}/*"',
    ],
)
def test_a_reasoned_wildcard_a_denial_and_a_narrow_grant_pass(statement: str) -> None:
    assert rules_broken("template.yaml", template(statement)) == []


def test_in_the_policy_of_a_key_its_actions_are_checked_and_its_resource_is_the_key() -> None:
    statement = '{Effect: Allow, Action: %s, Resource: "*"}'
    key = "Resources: {Key: {Properties: {KeyPolicy: {Statement: [%s]}}}}"
    assert rules_broken("template.yaml", key % (statement % "kms:Decrypt")) == []
    assert rules_broken("template.yaml", key % (statement % '"kms:*"')) == ["wildcard-grant"]


def test_a_template_that_cannot_be_read_is_found_not_raised() -> None:
    assert rules_broken("template.yaml", "a: [") == ["wildcard-grant"]


def test_a_python_file_that_does_not_parse_is_left_to_the_linter() -> None:
    assert rules_broken("functions/submission/app.py", "def (:\n") == []


def test_an_exception_covers_its_rule_in_its_file_only() -> None:
    word = "TO" + "DO"
    files = [File("a.md", word), File("b.md", word)]
    found = scan(files, {("unfinished", "a.md"): "it is quoted"})
    assert [(finding.rule, finding.path) for finding in found] == [("unfinished", "b.md")]


def test_an_exception_that_covers_nothing_is_found() -> None:
    found = scan([File("a.md", "done")], {("unfinished", "a.md"): "it is quoted"})
    assert [str(item) for item in found] == [
        "a.md:1: no longer breaks unfinished: take its exception out [exception]"
    ]


def test_the_scan_reads_what_git_would_add_and_leaves_out_what_it_ignores(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "new.md").write_text("new")
    (tmp_path / "run.log").write_text("ignored")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff")
    assert [file.path for file in read_repository(tmp_path)] == [".gitignore", "new.md"]


def test_every_exception_gives_its_reason() -> None:
    assert all(len(reason.split()) > 3 for reason in EXCEPTIONS.values())


def test_this_repository_passes_its_own_scan_in_the_toolchain() -> None:
    own = [file for file in read_repository(ROOT) if file.path.startswith(("tools/", ".ci/"))]
    assert own
    assert scan(own, {}) == []
