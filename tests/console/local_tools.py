"""Stand-ins for the tools that `roundsman local` runs: no emulator, no SAM, no network."""

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

TEMPLATE = """
Transform: AWS::Serverless-2016-10-31
Parameters:
  PythonRuntime:
    Type: String
    AllowedValues: [{runtime}]
  Architecture:
    Type: String
    Default: arm64
    AllowedValues: [arm64, x86_64]
  InventoryUrl: {{Type: String, AllowedPattern: '^https?://.+$'}}
  PaymentUrl: {{Type: String}}
  ShippingUrl: {{Type: String}}
  MailUrl: {{Type: String}}
  Interval: {{Type: Number, Default: 60, MinValue: 5, MaxValue: 3600}}
  Name: {{Type: String, Default: abc, MinLength: 2, MaxLength: 4}}
Resources:
  Inventory:
    Type: AWS::Serverless::Application
    Properties:
      Location: stacks/agent.yaml
      Parameters: {{Agent: inventory, ServiceUrl: !Ref InventoryUrl}}
  Payment:
    Type: AWS::Serverless::Application
    Properties:
      Location: stacks/agent.yaml
      Parameters: {{Agent: payment, ServiceUrl: !Ref PaymentUrl}}
  Shipping:
    Type: AWS::Serverless::Application
    Properties:
      Location: stacks/agent.yaml
      Parameters: {{Agent: shipping, ServiceUrl: !Ref ShippingUrl}}
  Mail:
    Type: AWS::Serverless::Application
    Properties:
      Location: stacks/agent.yaml
      Parameters: {{Agent: mail, ServiceUrl: !Ref MailUrl}}
  Queue: {{Type: AWS::SQS::Queue, Properties: {{QueueName: !Ref Name}}}}
"""
AGENT = """
Parameters:
  Agent: {Type: String}
  ServiceUrl: {Type: String}
"""
RUNTIME = f"python{sys.version_info.major}.{sys.version_info.minor}"

# An emulator's Python that answers health checks and one stack, whatever it is to run.
STAND_IN = """#!{python}
import json, os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

STACK = '''<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">
<DescribeStacksResult><Stacks><member><StackName>s</StackName><StackStatus>CREATE_COMPLETE</StackStatus>
<CreationTime>2026-01-01T00:00:00Z</CreationTime><Outputs><member><OutputKey>QueueUrl</OutputKey>
<OutputValue>the queue</OutputValue></member></Outputs></member></Stacks></DescribeStacksResult>
</DescribeStacksResponse>'''

class Answer(BaseHTTPRequestHandler):
    def say(self, text, status=200):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())
    def do_GET(self):
        self.say(json.dumps({{"edition": os.environ["MINISTACK_EDITION"]}}))
    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        if b"Action=DescribeStacks&" in asked:
            self.say(STACK)
        else:
            self.say("<ErrorResponse><Error><Code>E</Code></Error></ErrorResponse>", 400)
    def log_message(self, *parts):
        pass

{before}
with open(os.path.join(os.environ["TMPDIR"], "environment.json"), "w") as out:
    json.dump(dict(os.environ), out)
HTTPServer(("127.0.0.1", int(os.environ["GATEWAY_PORT"])), Answer).serve_forever()
"""


@dataclass(frozen=True)
class Call:
    """One program that was to be run."""

    command: list[str]
    environment: dict[str, str]

    def after(self, option: str) -> str:
        return self.command[self.command.index(option) + 1]


@dataclass
class Tools:
    """Runs nothing: notes each call, makes the stand-in where an environment is asked for.

    `failing` says which programs fail, by a word of their command, and what they then print;
    `interrupted` names the one during which the person presses Ctrl-C.
    """

    failing: dict[str, str] = field(default_factory=dict)
    interrupted: str = ""
    emulator_start: str = ""  # what the stand-in does before it answers
    calls: list[Call] = field(default_factory=list)

    def __call__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> int:
        self.calls.append(Call(list(command), dict(environment)))
        if self.interrupted in command:
            raise KeyboardInterrupt
        for word, message in self.failing.items():
            if word in command:
                log.parent.mkdir(parents=True, exist_ok=True)
                log.write_text(message)
                return 1
        if "build" in command and "samcli" in command:
            self._build(self.calls[-1])
        if "venv" in command:
            self._make_stand_in(Path(command[-1]) / "bin" / "python")
        return 0

    def named(self, word: str) -> list[Call]:
        return [call for call in self.calls if word in call.command]

    def _build(self, call: Call) -> None:
        folder = Path(call.after("--build-dir"))
        folder.mkdir()
        (folder / "template.yaml").write_text(Path(call.after("--template-file")).read_text())

    def _make_stand_in(self, python: Path) -> None:
        python.parent.mkdir(parents=True, exist_ok=True)
        python.write_text(STAND_IN.format(python=sys.executable, before=self.emulator_start))
        python.chmod(python.stat().st_mode | stat.S_IXUSR)


def make_project(folder: Path) -> Path:
    """A project with a template and locks, and nothing behind them."""
    (folder / "template.yaml").write_text(TEMPLATE.format(runtime=RUNTIME))
    (folder / "stacks").mkdir()
    (folder / "stacks" / "agent.yaml").write_text(AGENT)
    (folder / "requirements").mkdir()
    for lock in ("emulator", "lambda-runtime"):
        (folder / "requirements" / f"{lock}.txt").write_text(f"{lock}==1\n")
    return folder


def is_running(pid: int) -> bool:
    """Whether there is such a process at all."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
