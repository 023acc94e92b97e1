"""Which tests of a JUnit report have failed, and the report once they have run again."""

import xml.etree.ElementTree as ET
from pathlib import Path


def failed_tests(report: Path) -> list[str]:
    """Return what pytest calls the tests that have failed: `tests/test_a.py::test_b[1]`.

    Raises OSError or ElementTree's ParseError if the report cannot be read.
    """
    return [_name(case) for case in _root(report).iter("testcase") if _has_failed(case)]


def complete(again: Path, report: Path) -> None:
    """Add to the report `again` the tests of an earlier report that did not run again.

    Raises LookupError if a test that has failed did not run again, and what `failed_tests` raises.
    """
    root, anew = _root(report), {_name(case): case for case in _root(again).iter("testcase")}
    if missing := [name for name in failed_tests(report) if name not in anew]:
        raise LookupError(f"did not run again: {', '.join(missing)}")
    for suite in root.iter("testsuite"):
        for place, case in enumerate(suite):
            suite[place] = anew.get(_name(case), case)
        for kind, element in (("failures", "failure"), ("errors", "error")):
            suite.set(kind, str(len(suite.findall(f"testcase/{element}"))))
    ET.ElementTree(root).write(again)


def _root(report: Path) -> ET.Element:
    return ET.parse(report).getroot()  # noqa: S314  (pytest wrote it: no untrusted XML)


def _has_failed(case: ET.Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def _name(case: ET.Element) -> str:
    return f"{case.get('file')}::{case.get('name')}"
