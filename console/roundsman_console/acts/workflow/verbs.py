"""The verb that asks the logs how the steps of a workflow did with each version of their agents."""

from dataclasses import dataclass
from typing import Annotated

from roundsman_console.acts.verb import (
    Argument,
    Asked,
    Confirmed,
    Form,
    Preview,
    StackVerb,
    Subject,
)
from roundsman_console.aws.log_query import ask_logs, log_group
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.base.errors import NotPossible
from roundsman_console.base.result import Noun
from roundsman_console.base.typed_inputs import read_workflow
from roundsman_console.facts.cost.prices import load_prices
from roundsman_console.facts.workflow.health import PERIODS
from roundsman_console.facts.workflow.reading import newest_plan_of, read_period, steps_of
from roundsman_console.facts.workflow.versions import QUESTION, AgentVersions, by_version

WITHIN = 60.0
"""How long the answer of the logs is waited for, in seconds."""
USUAL = "24h"
GB = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentVersionsVerb(StackVerb):
    """Show how the steps of a workflow did with each version of their agents.

    It asks CloudWatch Logs Insights, which costs money. Steps of the same name in other workflows
    are counted, too: a line of an agent does not name the workflow.

    Example: roundsman workflows agent-versions order_fulfilment
    """

    name = "workflows agent-versions"
    title = "Compare agent versions"
    reason = ""
    reason_options = ()
    needs_reason = "none"
    document = AgentVersions
    noun = Noun.WORKFLOWS
    confirmed = Confirmed.BY_YES

    workflow: Annotated[
        str,
        Argument(
            metavar="WORKFLOW", help="The workflow's name.", label="Workflow", read=read_workflow
        ),
    ]
    since: Annotated[
        str,
        Argument(
            "--since",
            f"The time until now: {', '.join(PERIODS)}; {USUAL} by default.",
            metavar="TIME",
            label="Time until now",
            hint=f"{', '.join(PERIODS)}.",
            proposed=USUAL,
            read=read_period,
        ),
    ] = USUAL

    @classmethod
    def subject(cls, stack: DeployedStack, given: Form) -> Subject:
        del stack
        workflow = read_workflow(given.get("workflow", ""))
        return Subject(workflow, {"workflow": workflow})

    def preview(self, stack: DeployedStack) -> Preview:
        if not stack.has_cloudwatch:
            raise NotPossible("There are no logs to ask: a local AWS has no CloudWatch.")
        steps = steps_of(newest_plan_of(stack, self.workflow))
        agents = sorted({agent for each, _ in steps.values() for agent in each})
        price = load_prices().prices["logs.scanned"].usd
        would = (
            f"The logs of {', '.join(agents)} of the last {self.since} would be scanned. AWS "
            f"charges some {price:g} USD for each GB of them."
        )

        def go(_asked: Asked) -> AgentVersions:
            until = now()
            since = until - PERIODS[self.since]
            groups = [log_group(stack.name, agent) for agent in agents]
            found = ask_logs(stack.logs, groups, QUESTION, since, until, WITHIN)
            return AgentVersions(
                self.workflow,
                since,
                until,
                found.scanned,
                load_prices().usd("logs.scanned", found.scanned / GB),
                by_version(found.rows, [step for _, step in steps]),
            )

        return Preview(would, go, version=str(agents), question=f"{would} Ask them?")
