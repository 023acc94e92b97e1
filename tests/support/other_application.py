"""An application with other agents than the example's: what the rules must accept unchanged.

It is made as a user makes one, with `roundsman init`, and has a workflow of its own.
"""

import json
from datetime import timedelta
from pathlib import Path

from roundsman import Compensation, Step, Undo, Workflow
from roundsman_dev.check import Application
from roundsman_dev.project.create import create

AGENTS = ("warehouse", "gift_wrap", "billing", "letters")

fetch = Step(
    name="fetch",
    agent="warehouse",
    complete_within=timedelta(seconds=20),
    compensation=Compensation(fences_late_performs=True),
)
wrap = Step(
    name="wrap",
    agents=("gift_wrap", "warehouse"),  # so that a step with several agents is among them
    after=(fetch,),
    complete_within=timedelta(seconds=30),
)
bill = Step(
    name="bill",
    agent="billing",
    after=(wrap,),
    complete_within=timedelta(seconds=60),
    compensation=Compensation(complete_within=timedelta(minutes=5)),
)
thank = Step(name="thank", agent="letters", after=(bill,), complete_within=timedelta(seconds=30))
present = Workflow(
    name="present",
    steps=(fetch, wrap, bill, thank),
    complete_within=timedelta(days=1),
    on_failure=Undo(),
    retain_for=timedelta(days=1),
)

ORDER = {"orderId": "greetings", "processing": {"run": "<aws.scheduler.scheduled-time>"}}
BLOCK = f"""\
  Greetings:
    Type: AWS::Serverless::Application
    Properties:
      Location: stacks/schedule.yaml
      Parameters:
        Engine: !GetAtt Engine.Outputs.ForSchedules
        Schedule: cron(0 9 ? * MON *)
        TimeZone: Europe/Brussels
        Order: '{json.dumps(ORDER)}'
"""
"""A recurring order."""


def other_application(folder: Path) -> Application:
    """Make the application in the folder, and read its template with its workflow."""
    create(folder / "presents", agents=AGENTS, version="0.1.0")
    path = folder / "presents" / "template.yaml"
    text = path.read_text(encoding="utf-8")
    slow = "        Name: Billing\n"
    assert slow in text
    times = {"TimeoutSeconds": 310, "VisibilitySeconds": 1860, "OldestMessageAlarmSeconds": 2400}
    lines = "".join(f"        {name}: {seconds}\n" for name, seconds in times.items())
    text = text.replace(slow, slow + lines).replace("\nOutputs:\n", f"\n{BLOCK}\nOutputs:\n")
    path.write_text(text, encoding="utf-8")
    return Application.read(path, (present,))
