"""Each rule of the policy scan is shown failing on a sample, and silent beside it.

So are the linter's rules on what must not be in the code. Samples are put together here from parts,
so that this file passes the scan itself.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.policy_scan import ROOT, read_repository, scan


def rules_broken(path: str, text: str) -> list[str]:
    return [finding.rpartition("[")[2].rstrip("]") for finding in scan(path, text)]


def lint_broken(path: str, text: str) -> set[str]:
    """The linter's rules on banned names that a file would break at this path."""
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format", "json"]
    checked = subprocess.run(
        [*command, "--stdin-filename", path, "-"],
        input=text,
        capture_output=True,
        check=False,  # its exit code is 1 for each finding
        cwd=ROOT,
        text=True,
    )
    return {found["code"] for found in json.loads(checked.stdout)} & {"T201", "TID251"}


@pytest.mark.parametrize(
    "text",
    [
        "key = " + "AKIA" + "ABCDEFGHIJKLMNOP",
        "aws_secret_access_key" + " = " + "abcdefghij" * 4,
        "-----BEGIN " + "RSA PRIVATE KEY-----",
        "-----BEGIN " + "PRIVATE KEY-----",
        "-----BEGIN " + "ENCRYPTED PRIVATE KEY-----",
        "ghp" + "_" + "a1B2" * 9,
        "github" + "_pat_" + "a1B2_" * 11,
        "xoxb" + "-1234567890-abcdef",
        "sk" + "_live_" + "a1B2" * 5,
        "npm" + "_" + "a1B2" * 9,
        "pypi" + "-AgEIcHlwaS5vcmc" + "a1B2" * 20,
        "https://ada:" + "lovelace@db.example.com/",
        "SG." + "a1B2" * 5 + "cc." + "a1B2" * 10 + "ccc",
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


def test_a_finding_names_the_line_and_what_to_do() -> None:
    text = "word\n\nhttps://ada:" + "word@db.example.com/\n"
    assert scan("a.md", text) == ["a.md:3: Basic Auth Credentials: take it out [secret]"]


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
        "from pytest import mark\n\npytestmark = mark.skip\n",
        "import unittest\n\nclass T(unittest.TestCase):\n    def test_x(self):\n"
        "        self.skipTest('later')\n",
    ],
)
def test_a_skipped_test_is_found_by_the_linter(text: str) -> None:
    assert lint_broken("tests/unit/test_x.py", text) == {"TID251"}


def test_a_word_like_skip_elsewhere_is_no_skipped_test() -> None:
    text = "'pytest.skip'\n\ndef test_x(reader):\n    reader.skip(1)\n"
    assert lint_broken("tests/unit/test_x.py", text) == set()


@pytest.mark.parametrize(
    "path", ["layers/core/roundsman/engine/machine.py", "functions/submission/app.py"]
)
def test_a_print_in_what_runs_on_lambda_is_found_by_the_linter(path: str) -> None:
    assert lint_broken(path, "def f():\n    print('x')\n") == {"T201"}


def test_a_print_in_the_console_is_allowed() -> None:
    assert lint_broken("console/roundsman_console/main.py", "print('x')\n") == set()


def test_the_scan_reads_what_git_would_add_and_leaves_out_what_it_ignores(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "new.md").write_text("new")
    (tmp_path / "run.log").write_text("ignored")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff")
    assert list(read_repository(tmp_path)) == [(".gitignore", "*.log\n"), ("new.md", "new")]


def test_this_repository_passes_its_own_scan_in_the_toolchain() -> None:
    files = dict(read_repository(ROOT))
    own = [path for path in files if path.startswith(("tools/", ".ci/"))]
    assert own
    assert [finding for path in own for finding in scan(path, files[path])] == []
