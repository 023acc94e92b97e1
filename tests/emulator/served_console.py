"""`roundsman ui` in a process of its own, and a Chromium that has opened its link."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.browser.desk import started_chromium
from tests.emulator.conftest import PROJECT, DeployedStack
from tests.emulator.helpers import PATIENCE
from tests.emulator.recording import ROUNDSMAN

if TYPE_CHECKING:
    from playwright.sync_api import Page


@dataclass(frozen=True)
class ServedConsole:
    """A console in a process of its own, and a tab that has opened its link."""

    process: subprocess.Popen[str]
    page: "Page"


@contextmanager
def served_console(stack: DeployedStack) -> Iterator[ServedConsole]:
    """The console of a stack, as an operator with the login name amy starts it."""
    state = tempfile.TemporaryDirectory()  # of amy's, not of who runs the tests
    environment = {"LOGNAME": "amy", "XDG_STATE_HOME": state.name}
    process = subprocess.Popen(
        [ROUNDSMAN, "ui", "--json", "--stack", stack.aws.stack],
        cwd=PROJECT,
        env={**os.environ, **stack.aws.environment, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        link = json.loads(process.stdout.readline())["url"]
        with started_chromium() as browser:
            page = browser.new_page()
            page.set_default_timeout(PATIENCE * 1000)
            page.goto(link)
            page.wait_for_url("**/")  # where the link leads on to
            yield ServedConsole(process, page)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        state.cleanup()
