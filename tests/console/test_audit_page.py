"""docs/runbook/audit.md lists the promises that an audit judges, in the words of the checks."""

import inspect
import os
import re

from roundsman_console.facts.audit.checks import CHECKS
from tests.console.operations_page import RUNBOOK

PAGE = RUNBOOK / "audit.md"
_TABLE = re.compile(r"(<!-- judged -->\n)(.*?)(<!-- end of judged -->\n)", re.DOTALL)


def judged() -> str:
    """The table as the checks have it."""
    lines = ["| promise | what an audit looks at |", "| --- | --- |"]
    for promise, check in CHECKS.items():
        first = " ".join((inspect.getdoc(check) or "").partition("\n\n")[0].split())
        says = first.removeprefix("Check that ").removesuffix(".")
        assert says != first, f"the docstring of {check.__name__} does not begin with 'Check that'"
        lines.append(f"| `{promise.name}` | {says} |")
    return "\n".join([*lines, ""])


def test_the_page_lists_each_promise_that_is_judged() -> None:
    page = PAGE.read_text(encoding="utf-8")
    if os.environ.get("REWRITE_PAGES"):
        page = _TABLE.sub(lambda found: f"{found[1]}{judged()}{found[3]}", page)
        PAGE.write_text(page, encoding="utf-8")
    (table,) = _TABLE.findall(page)
    assert table[1] == judged()
