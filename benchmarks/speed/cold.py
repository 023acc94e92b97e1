"""Measures cold starts: a new interpreter up to its first message, compared with a baseline.

Two instants are measured: when the handler and its adapters are made, and when the first message is
handled: an order, a Start, a request (`benchmarks.speed.first_events`). So nothing is won by work
that is merely done later. The supervisor has no message, and its first pass is not measured.

The import path is that of Lambda: boto3 of the runtime and the libraries of the layers, not those
of this machine. boto3 has bytecode, as on Lambda. The layers have bytecode if the Python that
builds them is that of the runtime, so they are measured with and without it.

The unit is processor time, which is scarce in a small function. The baseline does nothing but
import boto3, create a client for SQS and one for DynamoDB, and, as its first message, make one call
with each. Python's garbage collector uses an
eighth of that time; the functions disable it during their start (`roundsman.aws.cold_start`).
"""

import compileall
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.harness.stack import TEMPLATE
from benchmarks.report import Report, Setting, Table, amount
from benchmarks.speed.first_events import Aws, FirstEvent, Recorded, recorded
from roundsman.testing.stack.template import FunctionCode

ROOT = TEMPLATE.parent
BASELINE = "import boto3; sqs = boto3.client('sqs'); dynamodb = boto3.client('dynamodb')"
BASELINE_MESSAGE = """
dynamodb.get_item(TableName='tasks', Key={'TaskId': {'S': 'ord-1'}})
sqs.send_message(QueueUrl='https://sqs.us-east-1.amazonaws.com/123456789012/q', MessageBody='{}')
"""
# The first call creates the objects that the handler needs for every message. No time is left in
# it, so that the supervisor makes no pass.
FIRST_CALL = """
import app
class Context:
    def get_remaining_time_in_millis(self): return 0
app.handler({'Records': []}, Context())
"""
FIRST_MESSAGE = """
import json
Context.get_remaining_time_in_millis = lambda self: 30_000
answer = app.handler(json.loads(sys.stdin.read()), Context())
if answer != {'batchItemFailures': []}: sys.exit(f'the first message failed: {answer}')
"""
TIMED = """
import sys, time
began = time.process_time()
sys.path[:0] = {path!r}
{code}
print('took', time.process_time() - began)
{message}
print('handled', time.process_time() - began)
"""
ENVIRONMENT = {
    "AWS_LAMBDA_FUNCTION_NAME": "measured",  # as on Lambda; the code checks it
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_REGION": "us-east-1",
    "AWS_CONFIG_FILE": "",
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
}
IMPORT = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s*(\S+)")
LARGEST = 12


@dataclass(frozen=True)
class Start:
    """A way to start: the code, its import path and its environment variables."""

    code: str
    path: Sequence[str]
    environment: Mapping[str, str]

    message: str = ""
    """The code of the first message; empty for a function that has none."""
    first: FirstEvent | None = None

    def processor_ms(self, aws: Aws) -> tuple[float, float]:
        """Return the ms until the handler is made, and until the first message is handled."""
        aws.begin(self.first)
        said = self._run().stdout
        took, handled = (
            float(re.findall(rf"^{name} (\S+)", said, re.MULTILINE)[-1]) * 1000
            for name in ("took", "handled")
        )
        return took, handled

    def imports(self, aws: Aws) -> Counter[str]:
        """Return the import time in us of each package, without nested imports."""
        aws.begin(self.first)
        found: Counter[str] = Counter()
        for spent, module in IMPORT.findall(self._run("-X", "importtime").stderr):
            found[_package(module)] += int(spent)
        return found

    def _run(self, *options: str) -> subprocess.CompletedProcess[str]:
        code = TIMED.format(path=list(self.path), code=self.code, message=self.message)
        return subprocess.run(
            [sys.executable, "-I", "-S", "-B", *options, "-c", code],
            env={**ENVIRONMENT, **self.environment},
            input=json.dumps(self.first.event) if self.first else "",
            capture_output=True,
            text=True,
            check=True,
        )


def measure(setting: Setting) -> Report:
    """Return the quickest of `runs` starts each: other work on the machine can only add to it.

    The starts alternate, so that a machine whose speed varies is as fast for each of them.
    """
    setting.say("laying out the import paths")
    with TemporaryDirectory() as folder, recorded() as found, Aws() as aws:
        starts = _starts(Path(folder), found, aws)
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in starts}
        for run in range(setting.runs):
            setting.say(f"cold starts, round {run + 1} of {setting.runs}")
            for name, start in starts.items():
                taken[name].append(start.processor_ms(aws))
        imports = starts["SchedulerFunction"].imports(aws)
        # Imports of the baseline are outside the control of the functions.
        imports.subtract(starts["baseline"].imports(aws))
    ms = {name: min(took for took, _ in each) for name, each in taken.items()}
    ratios = {name: each / ms["baseline"] for name, each in ms.items()}
    handled = {
        name: min(both for _, both in taken[name]) for name in starts if starts[name].message
    }
    first_ratios = {name: each / handled["baseline"] for name, each in handled.items()}
    rows = [
        [
            name,
            amount(ms[name]),
            f"{ratio:.2f}",
            amount(handled[name]) if name in handled else "",
            f"{first_ratios[name]:.2f}" if name in handled else "",
        ]
        for name, ratio in ratios.items()
    ]
    largest = [(name, us) for name, us in imports.most_common(LARGEST) if us > 0]
    return Report(
        [
            Table(
                "Cold start",
                ("", "ms of a processor", "of the baseline", "to the first message", "of that"),
                rows,
            ),
            Table(
                "What the scheduler imports besides",
                ("package", "ms"),
                [[name, amount(us / 1000)] for name, us in largest],
            ),
        ],
        {
            "cold_start": {
                "processor_ms": {name: round(each, 1) for name, each in ms.items()},
                "ratio": {name: round(each, 3) for name, each in ratios.items()},
                "first_message_ms": {name: round(each, 1) for name, each in handled.items()},
                "first_message_ratio": {
                    name: round(each, 3) for name, each in first_ratios.items()
                },
                "scheduler_imports_ms": {name: round(us / 1000, 1) for name, us in largest},
            }
        },
    )


def _starts(folder: Path, found: Recorded, aws: Aws) -> dict[str, Start]:
    """Return by name the baseline, each function, and each function without bytecode."""
    functions, environments = found.stack.stack.functions, found.stack.stack.function_environments
    endpoints = {"AWS_ENDPOINT_URL_DYNAMODB": aws.endpoint, "AWS_ENDPOINT_URL_SQS": aws.endpoint}
    runtime = _packages(folder / "runtime", ROOT / "requirements" / "lambda-runtime.txt")
    plain = _layers(folder / "plain")
    compiled = _layers(folder / "compiled")
    compileall.compile_dir(compiled, quiet=1)
    starts = {"baseline": Start(BASELINE, [str(runtime)], endpoints, BASELINE_MESSAGE)}
    for suffix, layers in (("", compiled), (", no bytecode", plain)):
        for name, code in functions.items():
            app = _copied(code, folder / "app" / f"{name}{suffix}", bytecode=not suffix)
            path = [str(app), str(layers), str(runtime)]
            first = found.events.get(name)
            starts[f"{name}{suffix}"] = Start(
                FIRST_CALL,
                path,
                {**environments[name], **endpoints},
                FIRST_MESSAGE if first else "",
                first,
            )
    return starts


def _layers(folder: Path) -> Path:
    """Copy the libraries and packages of the layers, without bytecode."""
    for layer, package in (("core", "roundsman"), ("workflows", "workflows")):
        source = ROOT / "layers" / layer
        _packages(folder, source / "requirements.txt")
        ignored = shutil.ignore_patterns("__pycache__", "testing", "tests")
        shutil.copytree(source / package, folder / package, ignore=ignored)
    return folder


def _packages(folder: Path, lock: Path) -> Path:
    """Copy the installed libraries of a lock file; with bytecode only for the Lambda runtime."""
    folder.mkdir(parents=True, exist_ok=True)
    bytecode = lock.name == "lambda-runtime.txt"
    ignored = shutil.ignore_patterns(*(() if bytecode else ("__pycache__",)), "tests")
    for name in re.findall(r"^([a-z0-9_-]+)==", lock.read_text(encoding="utf-8"), re.MULTILINE):
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or () if file.suffix == ".py"}:
            source, target = Path(str(found.locate_file(top))), folder / top
            if source.is_dir() and not target.exists():
                shutil.copytree(source, target, ignore=ignored)
            elif source.is_file():
                shutil.copy2(source, target)
        # Libraries read their own version from these folders.
        for info in {file.parts[0] for file in found.files or () if ".dist-info" in file.parts[0]}:
            source = Path(str(found.locate_file(info)))
            shutil.copytree(source, folder / info, dirs_exist_ok=True)
    return folder


def _copied(code: FunctionCode, folder: Path, *, bytecode: bool) -> Path:
    shutil.copytree(code.folder, folder, ignore=shutil.ignore_patterns("__pycache__"))
    if bytecode:
        compileall.compile_dir(folder, quiet=1)
    return folder


def _package(module: str) -> str:
    """Return the package of a module; three levels for Roundsman and Powertools, else one."""
    parts = module.split(".")
    depth = {"roundsman": 3, "aws_lambda_powertools": 3}.get(parts[0], 1)
    return ".".join(parts[:depth])
