"""Reads the facts of a stack from AWS. Parts that cannot be read are noted and left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from roundsman.aws.clock import now
from roundsman.model.failure import Group
from roundsman.model.holds import Hold
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.leases import Leases
from roundsman.model.plan import Plan
from roundsman_console.inspector.doctor.facts import StackFacts
from roundsman_console.inspector.doctor.gather_functions import find_functions
from roundsman_console.inspector.doctor.gather_queues import find_queues
from roundsman_console.inspector.doctor.gather_stack import (
    QUEUE,
    find_alarms,
    find_resources,
    find_schedules,
    find_tables,
    find_topic,
)
from roundsman_console.inspector.doctor.gather_tasks import Walk, read_plans, walk
from roundsman_console.inspector.doctor.readings import Looking
from roundsman_console.inspector.read.agents import agent_names
from roundsman_console.inspector.read.stack import DeployedStack


@dataclass(frozen=True, slots=True)
class Gathered:
    """The facts, and which tasks were read for them."""

    facts: StackFacts
    walk: Walk


def gather(stack: DeployedStack, limit: int, looking: Looking) -> Gathered:
    """Read all facts, with the first `limit` tasks of the open and of the archived lane."""
    at = now()
    looking.tell("reading the stack")
    resources = find_resources(stack, looking)
    functions, mappings = find_functions(stack, looking)
    looking.tell("reading the queues")
    by_url = {url: name for name, url in resources.of(QUEUE).items()}
    queues = find_queues(stack, by_url, looking)
    leases = _leases(stack, looking)
    shards = max(stack.shards, leases.shards if leases else 0)
    walked = walk(stack, shards, limit, at, looking)
    plans, broken = read_plans(stack, walked.tasks, looking)
    facts = StackFacts(
        now=at,
        interval=_interval(stack),
        shards=stack.shards,
        stack_created_at=resources.created_at,
        parameters=stack.parameters,
        submission_queue=stack.output("SubmissionQueueUrl"),
        tasks=walked.tasks,
        plans=plans,
        unreadable_plans=broken,
        agents=agent_names(stack.outputs, _named(plans)),
        leases=leases,
        work_queues=queues.work,
        dead_letter_queues=queues.dead,
        rejected_queue=queues.rejected,
        mappings=mappings,
        functions=functions,
        tables=find_tables(stack, looking),
        alarms=find_alarms(resources, looking),
        topic=find_topic(stack, looking),
        schedules=find_schedules(resources, looking),
    )
    facts = replace(
        facts,
        holds=_holds(stack, looking),
        groups=_groups(stack, looking),
    )
    with looking.at("marks"):
        stack.board.agents()  # adds the unreadable read marks to `stack.unreadable`
    unreadable = {(each.record, each.field): each.problem for each in stack.unreadable}
    return Gathered(replace(facts, unreadable_parts=unreadable), walked)


def _leases(stack: DeployedStack, looking: Looking) -> Leases | None:
    with looking.at("leases"):
        return stack.leases.read()
    return None


def _holds(stack: DeployedStack, looking: Looking) -> Sequence[Hold] | None:
    with looking.at("holds"):
        return stack.holds.holds()
    return None


def _groups(stack: DeployedStack, looking: Looking) -> Sequence[Group] | None:
    with looking.at("failure groups"):
        return stack.groups.groups()
    return None


def _interval(stack: DeployedStack) -> int:
    """Return the time from one pass of the supervisor to the next, in ms; by default a minute."""
    said = stack.parameters.get("SupervisorIntervalSeconds", "")
    return int(said) * SECOND if said.isdecimal() else MINUTE


def _named(plans: Mapping[str, Plan | None]) -> set[str]:
    """Return the names of the agents in these plans."""
    return {
        agent
        for plan in plans.values()
        for step in (plan.steps.values() if plan else ())
        for agent in step.agents
    }
