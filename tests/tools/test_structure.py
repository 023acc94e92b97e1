"""The figures of the structure count what they say."""

from pathlib import Path

from tools.structure import figures, lines_of_code

MODULE = '''"""A page of a module.

Of three lines."""

import os  # counts


# does not count
class Order:
    """Not counted."""

    id: str
    """Not counted, either."""

    def path(self) -> str:
        return os.path.join(
            "a text that is used",
            self.id,
        )


class _Hidden:
    pass
'''


def test_a_line_of_code_is_no_docstring_no_comment_and_not_empty(tmp_path: Path) -> None:
    file = tmp_path / "order.py"
    file.write_text(MODULE)
    assert lines_of_code(file) == 10


def test_names_that_several_modules_have_are_listed_with_how_often(tmp_path: Path) -> None:
    for folder in ("layers/core/roundsman", "console/roundsman_console", "tests"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "orders.py").write_text(MODULE)
    (tmp_path / "README.md").write_text("Four words of prose")
    found = figures(tmp_path)
    assert found["modules of one name"] == {"orders": 2}
    assert found["public classes of one name"] == {"Order": 2}
    assert found["words of pages"] == {
        "docs/**/*.md": 0, "README.md": 4, "CONTRIBUTING.md": 0, "CHANGELOG.md": 0
    }  # fmt: skip
    lines = found["lines of code"]
    assert (lines["roundsman"], lines["roundsman_testing"]) == (10, 0)
