"""Every command of the command line is in the browser, as a page or a button, or says why not."""

from collections.abc import Mapping

from roundsman_console.faces.web.application import PAGES
from roundsman_console.faces.web.form_registry import commands
from tests.console.verbs import VERBS

SHOWN: Mapping[str, str] = {
    "show": "/orders/{order}",
    "timeline": "/orders/{order}",
    "why": "/orders/{order}",
    "watch": "/orders/{order}",
    "ls": "/orders",
    "stats": "/",
    "alerts": "/",
    "groups ls": "/groups",
    "groups show": "/groups/{group}",
    "agents": "/agents",
    "doctor": "/doctor",
    "rejected ls": "/rejected",
    "rejected show": "/rejected",
    "bulk ls": "/bulk",
    "bulk show": "/bulk/{run}",
    "bulk watch": "/bulk/{run}",
    "dlq ls": "/dead-letters",
    "dlq show": "/dead-letters",
    "export": "/export",
    "cost": "/cost",
    "schedules ls": "/schedules",
    "shift": "/shift",
    "diff": "/orders/{order}/difference",
    "workflows health": "/workflows/{plan}",
}
"""The commands that only look, with the page that shows what they print."""

PROJECT = "it works on the files of a project, before there is a stack"
NOT_IN_THE_BROWSER: Mapping[str, str] = {
    **dict.fromkeys(
        ("init", "add agent", "add workflow", "check", "upgrade", "preflight", "changes", "prove"),
        PROJECT,
    ),
    "services": PROJECT,
    **dict.fromkeys(
        ("delete", "restore prepare", "restore replace", "restore start"),
        "it takes hours, and stops or deletes what the console reads",
    ),
    **{verb: "it starts and stops the local AWS" for verb in VERBS if verb.startswith("local ")},
    "signal": "an application sends it; in its place, a person resolves the step",
    "audit": "it reads thousands of orders, and asks first, because of what that costs",
    **dict.fromkeys(("ui", "demo"), "it is the console in the browser"),
}
"""The commands that are not in the browser, each with the reason."""


def test_every_command_is_a_page_or_a_button_or_says_why_not() -> None:
    buttons = {command.verb for command in commands().values()}
    assert buttons <= {*VERBS}
    assert not buttons & {*SHOWN}
    assert not buttons & {*NOT_IN_THE_BROWSER}
    missing = {*VERBS} - buttons - {*SHOWN} - {*NOT_IN_THE_BROWSER}
    assert missing == set(), "give each a page, a button, or a reason here"
    assert {*SHOWN, *NOT_IN_THE_BROWSER} <= {*VERBS}, "there is no such command any more"


def test_the_pages_that_show_what_a_command_prints_exist() -> None:
    assert {*SHOWN.values()} <= {page.path for page in PAGES}
