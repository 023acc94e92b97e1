"""Measures cold starts: each message of some orders is handled by a new interpreter.

The unit is processor time, which is scarce in a small function, from the start of the interpreter
until the message has been handled, so nothing is won by work that is merely done later. DynamoDB
Local and moto answer in other processes. The layers have bytecode, as if they were built by the
Python of the runtime. The baseline does nothing but import boto3, create a client for SQS and one
for DynamoDB, and make one call with each. The supervisor has no message, and is left out.
"""

import compileall
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from unittest.mock import patch

import boto3
from botocore import xform_name

from benchmarks.harness.orders import order
from benchmarks.harness.stack import TEMPLATE, stack_on_the_engine
from benchmarks.report import Report, Setting, Table, amount
from benchmarks.speed.timing import machine
from roundsman.model.states import TaskState
from roundsman_testing.stack import Context, Stack

LAYERS = {"core": "roundsman", "workflows": "workflows"}
LIBRARIES = sysconfig.get_path("purelib")
BASELINE = """
import boto3
sqs, dynamodb = boto3.client('sqs'), boto3.client('dynamodb')
dynamodb.list_tables()
sqs.list_queues()
"""
FUNCTION = """
import app, json
class Context:
    def get_remaining_time_in_millis(self): return 30_000
answer = app.handler(json.loads(sys.stdin.read()), Context())
if answer != {'batchItemFailures': []}: sys.exit(f'the message failed: {answer}')
"""
TIMED = """
import sys, time
sys.path[:0] = PATH
CODE
print('took', time.process_time())
"""


def measure(setting: Setting) -> Report:
    """Return the quickest of the starts: other work on the machine can only add to it.

    The starts of one order alternate, so that a machine whose speed varies is as fast for each.
    """
    took: defaultdict[str, list[float]] = defaultdict(list)
    with (
        TemporaryDirectory() as folder,
        stack_on_the_engine(setting.engine()) as stack,
        _moto_over_http() as sqs,
    ):
        stack.clock.now = time.time_ns() // 1_000_000  # the new interpreters have no other clock
        layers = _layers(Path(folder))
        environment = {**os.environ, "AWS_ENDPOINT_URL_SQS": sqs}

        def invoked(function: str, event: object, _context: Context | None = None) -> object:
            path = [_app(stack, function, Path(folder)), *layers]
            ours = stack.stack.function_environments[function]
            took[function].append(_start(FUNCTION, path, {**environment, **ours}, event))
            return {"batchItemFailures": []}

        with patch.object(stack, "invoke", invoked):
            for run in range(setting.runs):
                setting.say(f"cold starts, order {run + 1} of {setting.runs}")
                took["baseline"].append(_start(BASELINE, [], environment))
                stack.submit(order(f"ord-{run}"))
                stack.run_until_idle()
                if stack.task(f"ord-{run}").state is not TaskState.COMPLETED:
                    raise AssertionError(f"ord-{run} was to be Completed")
    ms = {name: min(each) for name, each in took.items()}
    ratios = {name: each / ms["baseline"] for name, each in ms.items()}
    rows = [[name, amount(ms[name]), f"{ratio:.2f}"] for name, ratio in ratios.items()]
    return Report(
        [Table("Cold start", ("", "ms of a processor", "of the baseline"), rows)],
        [f"Measured on {machine()}."],
    )


def _start(
    code: str, path: Sequence[str], environment: Mapping[str, str], event: object = None
) -> float:
    """Run the code in a new interpreter, and return its processor time in ms."""
    timed = TIMED.replace("PATH", repr([*path, LIBRARIES])).replace("CODE", code)
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", timed],
        env=environment,
        input=json.dumps(event),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(ran.stdout.rpartition("took ")[2]) * 1000


def _layers(folder: Path) -> list[str]:
    """Copy the packages of the layers with bytecode, and return the folders to import from."""
    for layer, package in LAYERS.items():
        source, target = TEMPLATE.parent / "layers" / layer / package, folder / layer / package
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "testing"))
        compileall.compile_dir(target, quiet=1)
    return [str(folder / layer) for layer in LAYERS]


def _app(stack: Stack, function: str, folder: Path) -> str:
    """Copy the code of a function with bytecode, once, and return its folder."""
    target = folder / function
    if not target.exists():
        source = stack.stack.functions[function].folder
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(target, quiet=1)
    return str(target)


@contextmanager
def _moto_over_http() -> Iterator[str]:
    """Yield the URL at which other processes call the SQS that moto keeps in this process."""
    sqs = boto3.client("sqs")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            operation = xform_name(self.headers["X-Amz-Target"].partition(".")[2])
            answer: dict[str, object] = getattr(sqs, operation)(**body)
            answer.pop("ResponseMetadata")
            encoded = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-amz-json-1.0")
            self.send_header("Content-Length", str(len(encoded)))
            self.end_headers()
            self.wfile.write(encoded)

        def log_message(self, *_arguments: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
