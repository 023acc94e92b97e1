"""The project rules that are checked automatically; each rule is a function from file to findings.

The patterns do not match their own source (they contain an escaped dot or a one-letter character
class), so this file needs no exception from its own rules.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

import yaml


@dataclass(frozen=True)
class File:
    """A text file of the repository; `path` is relative to the root."""

    path: str
    text: str

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def is_python_in(self, *folders: str) -> bool:
        parts = PurePosixPath(self.path).parts
        return self.path.endswith(".py") and (not folders or parts[0] in folders)


@dataclass(frozen=True)
class Finding:
    """A line that breaks a rule, with a message that says what to do."""

    rule: str
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message} [{self.rule}]"


Rule = Callable[[File], Iterable[Finding]]

SECRETS = {
    "an AWS access key id": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "an AWS secret access key": (
        r"(?i)aws.{0,20}secret.{0,20}[=:]\s*[\"']?[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])"
    ),
    "a private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})",
    "a Slack token": r"\bxox[abposr]-[A-Za-z0-9-]{10,}",
    "a payment provider's live key": r"\b[rs]k_live_[A-Za-z0-9]{16,}",
    "a package registry's token": r"\b(?:pypi-[A-Za-z0-9_-]{50,}|npm_[A-Za-z0-9]{36})\b",
    "a JSON Web Token": r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
}
MACHINE_PATHS = (
    r"(?<![\w./~-])/(?:home|Users)/\w",
    r"(?<![\w./~-])/(?:root|work)(?![\w.-])",
    r"(?<![\w./~-])/tmp/\w+/",
    r"\b[A-Z]:\\Users\\",
)
REGISTRY_HOSTS = (
    r"pypi\.org",
    r"pypi\.python\.org",
    r"pythonhosted\.org",
    r"npmjs\.(?:org|com)",
    r"deb\.debian\.org",
    r"(?:archive|security)\.ubuntu\.com",
    r"repo1?\.maven\.(?:apache\.)?org",
    r"rubygems\.org",
    r"crates\.io",
    r"(?:docker|ghcr|quay)\.io",
    r"proxy\.golang\.org",
)
UNFINISHED = r"\b(?:TO[D]O|FIX[M]E|X[X]X)\b"
LOCK_FILES = {"uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "package-lock.json"}
SKIPS = {"skip", "skipif", "xfail", "importorskip", "skipTest", "skipIf", "skipUnless"}
# The keys of an IAM statement that name actions and resources.
REACH_KEYS = frozenset({"Action", "NotAction", "Resource", "NotResource"})


def secrets(file: File) -> Iterator[Finding]:
    """Find credentials, which must not be committed, not even as an example."""
    for what, pattern in SECRETS.items():
        yield from _matches("secret", file, pattern, f"this looks like {what}: take it out")


def machine_paths(file: File) -> Iterator[Finding]:
    """Find absolute paths of one machine, which do not exist on others."""
    for pattern in MACHINE_PATHS:
        yield from _matches("machine-path", file, pattern, "an absolute path of one machine")


def registry_hosts(file: File) -> Iterator[Finding]:
    """Find hosts of package registries; each machine configures its own registry."""
    for pattern in REGISTRY_HOSTS:
        yield from _matches("registry-host", file, pattern, "names a package registry's host")


def lock_files(file: File) -> Iterator[Finding]:
    """Find lock files of other formats, which contain the hosts of package registries.

    This project locks with requirements files that contain hashes.
    """
    if PurePosixPath(file.path).name in LOCK_FILES:
        yield Finding("lock-file", file.path, 1, "lock with make lock instead of this file")


def unfinished(file: File) -> Iterator[Finding]:
    """Find markers of unfinished work, which belongs in the issue tracker."""
    yield from _matches("unfinished", file, UNFINISHED, "finish it, or say it in an issue")


def skipped_tests(file: File) -> Iterator[Finding]:
    """Find tests that are skipped or expected to fail; they must run or be removed."""
    if not file.is_python_in("tests"):
        return
    for node in ast.walk(_syntax_tree(file)):
        name = node.attr if isinstance(node, ast.Attribute) else None
        name = node.name if isinstance(node, ast.alias) else name
        if name in SKIPS and _is_about_testing(node):
            line = getattr(node, "lineno", 1)
            yield Finding("skipped-test", file.path, line, f"{name}: make the test run")


def prints(file: File) -> Iterator[Finding]:
    """Find `print` in code that runs on Lambda, which must use the structured logger."""
    if not file.is_python_in("layers", "functions"):
        return
    for node in ast.walk(_syntax_tree(file)):
        if isinstance(node, ast.Name) and node.id == "print":
            yield Finding("print", file.path, node.lineno, "log it in fields instead")


def wildcard_grants(file: File) -> Iterator[Finding]:
    """Find IAM statements that allow all actions or resources without a comment.

    The comment gives the reason, on the same line or on the line above.
    """
    if PurePosixPath(file.path).name not in {"template.yaml", "template.yml"}:
        return
    try:
        document = yaml.compose(file.text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        yield Finding("wildcard-grant", file.path, 1, "is no valid YAML, so nobody can check it")
        return
    for key, value in _allowed(document):
        line = value.start_mark.line
        wild = value.value == "*" or (key.endswith("Action") and value.value.endswith(":*"))
        if wild and not _has_comment(file.lines, line):
            message = f'{key} "{value.value}" needs a comment that says why nothing narrower does'
            yield Finding("wildcard-grant", file.path, line + 1, message)


RULES: tuple[Rule, ...] = (
    secrets,
    machine_paths,
    registry_hosts,
    lock_files,
    unfinished,
    skipped_tests,
    prints,
    wildcard_grants,
)


def _matches(rule: str, file: File, pattern: str, message: str) -> Iterator[Finding]:
    compiled = re.compile(pattern)
    for number, line in enumerate(file.lines, start=1):
        if compiled.search(line):
            yield Finding(rule, file.path, number, message)


def _syntax_tree(file: File) -> ast.Module:
    """Return the file's syntax tree; empty if it does not parse, which the linter reports."""
    try:
        return ast.parse(file.text, file.path)
    except SyntaxError:
        return ast.Module(body=[], type_ignores=[])


def _is_about_testing(node: ast.AST) -> bool:
    """Whether `node` is an import or an attribute of pytest, unittest, self or mark.

    A `skip()` of another object, for example a JSON parser, does not skip a test.
    """
    if isinstance(node, ast.alias):
        return True
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in {"pytest", "unittest", "self", "mark"}


def _allowed(
    node: yaml.Node | None, reach: frozenset[str] = REACH_KEYS
) -> Iterator[tuple[str, yaml.ScalarNode]]:
    """Yield the scalars under the `reach` keys of every `Allow` statement below `node`."""
    if isinstance(node, yaml.MappingNode):
        pairs = {key.value: value for key, value in node.value if isinstance(key.value, str)}
        effect = pairs.get("Effect")
        if effect is not None and effect.value == "Allow":
            for key in sorted(reach & pairs.keys()):
                yield from ((key, scalar) for scalar in _scalars(pairs[key]))
        for name, value in node.value:
            # In a key policy, the resource "*" is the key itself.
            yield from _allowed(value, reach - {"Resource"} if name.value == "KeyPolicy" else reach)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _allowed(item, reach)


def _scalars(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.ScalarNode):
        yield node
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _scalars(item)


def _has_comment(lines: list[str], index: int) -> bool:
    above = lines[index - 1].strip() if index else ""
    return " #" in lines[index] or above.startswith("#")
