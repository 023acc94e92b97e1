"""docs/runbook/doctor.md has an entry for each kind of finding, in the doctor's words."""

import os
import re

from roundsman_console.facts.finding.table import FindingKind, Severity
from tests.console.operations_page import RUNBOOK

PAGE, ROOT = RUNBOOK / "doctor.md", RUNBOOK.parent
_TABLE = re.compile(r"(<!-- findings -->\n)(.*?)(<!-- end of findings -->\n)", re.DOTALL)


def link(kind: FindingKind) -> str:
    """A link to the page of the finding; none to the page that has the table."""
    path, _, anchor = kind.page.partition("#")
    if ROOT / path == PAGE:
        return ""
    near = path.removeprefix("runbook/") if path.startswith("runbook/") else f"../{path}"
    title = (ROOT / path).read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    return f"[{title}]({near}{anchor and f'#{anchor}'})"


def entries() -> str:
    """The table of the doctor's findings, the worst first."""
    lines = ["| finding | severity | what it means | page |", "| --- | --- | --- | --- |"]
    severities = list(Severity)
    for kind in sorted(FindingKind, key=lambda one: severities.index(one.severity)):
        lines.append(f"| `{kind}` | {kind.severity} | {kind.means} | {link(kind)} |")
    return "\n".join([*lines, ""])


def test_the_page_has_an_entry_for_each_kind_of_finding() -> None:
    page = PAGE.read_text(encoding="utf-8")
    if os.environ.get("REWRITE_PAGES"):
        page = _TABLE.sub(lambda found: f"{found[1]}{entries()}{found[3]}", page)
        PAGE.write_text(page, encoding="utf-8")
    (table,) = _TABLE.findall(page)
    assert table[1] == entries()
