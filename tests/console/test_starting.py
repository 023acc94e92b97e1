"""What `roundsman show` imports, counted in a process of its own: each module delays the answer."""

import gc
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3
import pytest

from roundsman_console.base.command_table import ListedCommand
from roundsman_console.commands import LOOK
from roundsman_console.main import LazyCommand
from tests.console.operators import DECLINED, Operator
from tests.moto.orders import order

OURS = 114
"""The most modules of ours that `show` may import; a few more than there are."""

ALL = 700
"""The most modules that it may import, with those of Python and of libraries."""

NEVER = {
    "OpenSSL",  # imported by botocore, which then does not use it
    "asyncio",
    "jinja2",
    "moto",
    "rich._emoji_codes",
    "rich.markdown",
    "roundsman.alerts",
    "roundsman_console.acts.bulk.start",
    "roundsman_console.facts.finding",
    "roundsman_console.acts.order.send",
    "roundsman_console.facts.orders.selection",
    "roundsman.submission",
    "roundsman_testing",
    "roundsman_console.facts.application",
    "roundsman_dev.check",
    "roundsman_dev.local",
    "roundsman_dev.preflight",
    "roundsman_dev.project",
    "roundsman_console.faces.web",
    "samtranslator",
    "starlette",
    "typer.rich_utils",  # draws the help, and tracebacks
    "yaml",
}

SHOW = """
import json, sys
from roundsman_console.main import app
try:
    app(["show", "ord-1", "--stack", "roundsman"], prog_name="roundsman")
except SystemExit as end:
    print(json.dumps([end.code, sorted(sys.modules)]), file=sys.stderr)
"""


@dataclass
class Answers:
    """The answers of AWS to one command, in order, as they were sent."""

    kept: list[bytes] = field(default_factory=list)

    def keep(self, response: object, **_rest: object) -> None:
        """Keep an answer; a hook of botocore for `needs-retry`, which is called after each."""
        assert isinstance(response, tuple)
        self.kept.append(response[0].content)

    @contextmanager
    def at_an_address(self) -> Iterator[str]:
        """Give these answers to the requests to this address."""
        left = iter(self.kept)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                answer = next(left)
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        server.server_close()


@pytest.fixture
def answers(operator: Operator) -> Answers:
    """What AWS answers to `show` of an order that was undone."""
    operator.world.submit({**order("ord-1"), **DECLINED})
    operator.world.run()
    found, session = Answers(), boto3.DEFAULT_SESSION
    assert session is not None
    session.events.register("needs-retry", found.keep)
    assert operator.types("show", "ord-1", "--stack", "roundsman").exit_code == 0
    session.events.unregister("needs-retry", found.keep)
    return found


@pytest.mark.exhaustive
def test_show_imports_nothing_that_only_other_commands_need(answers: Answers) -> None:
    with answers.at_an_address() as address:
        ran = subprocess.run(
            [sys.executable, "-c", SHOW],
            env={**os.environ, "AWS_ENDPOINT_URL": address},
            capture_output=True,
            text=True,
            check=True,
        )
    assert ran.stdout.startswith("ord-1  order_fulfilment  Undone\n"), ran.stderr
    code, modules = json.loads(ran.stderr)
    assert code == 0
    packages = {
        ".".join(parts[:depth])
        for parts in (name.split(".") for name in modules)
        for depth in range(1, len(parts) + 1)
    }
    assert not packages & NEVER
    ours = [name for name in modules if name.split(".")[0] in ("roundsman", "roundsman_console")]
    assert len(ours) <= OURS, f"{len(ours)} modules: import late what is needed rarely"
    assert len(modules) <= ALL, f"{len(modules)} modules"


def test_an_imported_command_is_not_collected_and_the_collector_is_on_again() -> None:
    program = (
        "import gc, sys\nfrom roundsman_console.main import lazy_commands\n"
        "collected = []\ngc.callbacks.append(lambda *_: collected.append(1))\n"
        "before = len(gc.get_objects())\n"
        "next(each for each in lazy_commands() if each.name == 'show').load()\n"
        "print(len(collected) < 10, gc.isenabled(), gc.get_freeze_count() > before)\n"
        "print(sys.modules.get('urllib3.contrib.pyopenssl', 'no trace'))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split("\n")[:2] == ["True True True", "no trace"]


def test_a_command_that_cannot_be_imported_leaves_the_collector_on() -> None:
    with pytest.raises(ModuleNotFoundError):
        LazyCommand(ListedCommand(LOOK, "nothing", "nothing:nothing", "Nothing.")).load()
    assert gc.isenabled()
    assert sys.modules.get("urllib3.contrib.pyopenssl", "no trace") is not None
