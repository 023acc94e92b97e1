"""The table of all limits names each limit of the code, with its value, and no other one."""

import re
from pathlib import Path
from types import ModuleType

from roundsman.aws.dynamodb import settled
from roundsman.model import record_limits
from roundsman.wire import limits

PAGE = Path(__file__).parents[2] / "docs/reference/records.md"
MODULES: tuple[ModuleType, ...] = (record_limits, limits, settled)


def test_the_table_of_limits_is_that_of_the_code() -> None:
    in_code = {
        name: value
        for module in MODULES
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, int) and _is_its_own(module, name)
    }
    rows = re.findall(r"^\| `([A-Z_]+)` \| ([0-9,]+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    assert {name: int(value.replace(",", "")) for name, value, _ in rows} == in_code
    assert all(what for _, _, what in rows)


def _is_its_own(module: ModuleType, name: str) -> bool:
    """Whether the module itself gives the name its value, and does not import it."""
    text = Path(module.__file__ or "").read_text()
    return re.search(rf"^{name}(: Final)? = ", text, re.MULTILINE) is not None
