"""The rules of `roundsman check` about code: names that nobody defines, and folders of agents."""

import pytest

from roundsman_dev.check import Application
from roundsman_dev.check.code import agent_folders, undefined_names
from roundsman_dev.template import Document


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f():\n    return _create()\n", [("_create", 2)]),
        ("def f():\n    a()\n\n\ndef g():\n    return b, a\n", [("a", 2), ("b", 6)]),
        ("def f(x):\n    return [y for x in y]\n", [("y", 2)]),
        ("f = lambda: missing\n", [("missing", 1)]),
        ("class C:\n    x = 1\n\n    def f(self):\n        return x\n", [("x", 5)]),
        ("def f():\n    def g():\n        return h\n    return g\n", [("h", 3)]),
        ("def f():\n    try:\n        pass\n    except Gone:\n        pass\n", [("Gone", 4)]),
        ("async def f():\n    await gone()\n", [("gone", 2)]),
        ("def f():\n    x = a  # and\n    return x + b + a\n", [("a", 2), ("b", 3)]),
    ],
)
def test_a_name_that_nobody_defines_is_found_at_its_first_line(
    source: str, found: list[tuple[str, int]]
) -> None:
    assert undefined_names(source) == found


@pytest.mark.parametrize(
    "source",
    [
        "",
        "import os.path\nfrom a import b as c\n\n\ndef f():\n    return os, c, len, print\n",
        "def f():\n    return later()\n\n\ndef later(): ...\n",
        "def f():\n    global made\n    made = 1\n\n\ndef g():\n    return made\n",
        "from a import *\n\n\ndef f():\n    return anything\n",
        "def f():\n    return __file__, __name__\n",
        "class C:\n    def f(self):\n        return __class__, super()\n",
        "def f(x: 'Unknown') -> 'Unknown':\n    return x\n",
        "from __future__ import annotations\n\n\ndef f(x: Unknown) -> Unknown:\n    return x\n",
        "if True:\n    from a import b\nelse:\n    b = None\n\n\ndef f():\n    return b\n",
        "a = x = 1\nwith a() as y:\n    pass\n\n\ndef f():\n    return x, y\n",
        "x: int\n\n\ndef f():\n    x = 1\n    return (lambda: x)()\n",
        "def f():\n    if (n := 1) > 0:\n        return n\n",
        "def f(v):\n    match v:\n        case {'a': a, **more}:\n            return a, more\n",
    ],
)
def test_a_name_that_somebody_defines_is_not_found(source: str) -> None:
    assert undefined_names(source) == []


def with_blocks(**code: str) -> Application:
    """An application with the agents stock and mail, and blocks of agents with this code."""
    blocks: Document = {
        name: {
            "Properties": {
                "Location": "stacks/agent.yaml",
                "Parameters": {"Agent": name.lower(), "Code": path},
            }
        }
        for name, path in code.items()
    }
    folders = {f"functions/agents/{name}": name for name in ("stock", "mail")}
    return Application({}, (), root={"Resources": blocks}, folders=folders)


@pytest.mark.parametrize(
    "path", ["../functions/agents/stock", "../functions/agents/stock/", "s3://bucket/code.zip"]
)
def test_a_block_with_the_folder_of_its_agent_has_no_problem(path: str) -> None:
    assert agent_folders(with_blocks(Stock=path)) == []


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("../functions/agents/mail", "functions/agents/mail, which defines the agent mail"),
        ("functions/agents/stock", "stacks/functions/agents/stock, which has no app.py"),
        ("../functions/agents/Stock", "functions/agents/Stock, which has no app.py"),
    ],
)
def test_a_block_with_another_folder_is_found(path: str, found: str) -> None:
    assert agent_folders(with_blocks(Stock=path)) == [
        f"Stock: Code of the agent stock names {found}; name the folder whose app.py defines stock"
    ]


def test_an_application_whose_code_was_not_read_has_no_problem() -> None:
    assert agent_folders(Application({}, (), root=with_blocks(Stock="../else").root)) == []


def test_a_copied_folder_is_found() -> None:
    application = Application({}, (), folders={"functions/agents/copy": "stock"})
    (found,) = agent_folders(application)
    assert found.startswith("functions/agents/copy/app.py defines the agent stock: rename the ")
