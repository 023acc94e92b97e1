"""All facts of a stack, as far as they can be had."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from roundsman.aws.clock import now
from roundsman.model.failure import Group
from roundsman.model.holds import Hold
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.leases import Leases
from roundsman.model.plan import Plan
from roundsman_console.bulk.run import RunState
from roundsman_console.bulk.store import bulks_of
from roundsman_console.doctor.facts import BulkFact, QueueFact, StackFacts
from roundsman_console.doctor.gather_functions import find_functions, with_metrics
from roundsman_console.doctor.gather_queues import find_queues
from roundsman_console.doctor.gather_stack import (
    QUEUE,
    find_alarms,
    find_resources,
    find_schedules,
    find_tables,
    find_topic,
)
from roundsman_console.doctor.gather_tasks import Walk, read_plans, walk
from roundsman_console.doctor.readings import Looking
from roundsman_console.read.agents import agent_names
from roundsman_console.read.stack import DeployedStack

LAST_RUNS = 20


@dataclass(frozen=True, slots=True)
class Gathered:
    """The facts, and how far the walk came."""

    facts: StackFacts
    walk: Walk


def gather(stack: DeployedStack, limit: int, looking: Looking) -> Gathered:
    """Look at everything, and at the first `limit` tasks of each lane that is watched."""
    at = now()
    looking.tell("looking at the stack")
    resources = find_resources(stack, looking)
    functions, mappings = find_functions(stack, looking)
    looking.tell("looking at the queues")
    by_url = {url: name for name, url in resources.of(QUEUE).items()}
    queues = find_queues(stack, by_url, looking)
    functions, queues.work = with_metrics(functions, queues.work, at, looking)
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
        by_shard=walked.by_shard,
        plans=plans,
        unreadable_plans=broken,
        agents=agent_names(stack.outputs, _named(plans)),
        leases=leases,
        work_queues=queues.work,
        dead_letter_queues=queues.dead,
        rejected_queue=queues.rejected,
        missing_queues=queues.missing,
        agent_queues=_agent_queues(queues.work, plans),
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
        bulk=_bulk(stack, looking),
        groups=_groups(stack, looking),
    )
    with looking.at("marks"):
        stack.board.agents()
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


def _bulk(stack: DeployedStack, looking: Looking) -> list[BulkFact]:
    """The runs over many orders that say they are running, among the last that began."""
    with looking.at("bulk runs"):
        return [
            BulkFact(
                one.run.id,
                one.saved_at,
                one.progress.reached,
                one.run.selected,
                one.holder.by if one.holder else one.run.by,
            )
            for one in bulks_of(stack).newest(LAST_RUNS)
            if one.state is RunState.RUNNING
        ]
    return []


def _interval(stack: DeployedStack) -> int:
    """The time from one round to the next, in ms."""
    said = stack.parameters.get("SupervisorIntervalSeconds", "")
    return int(said) * SECOND if said.isdecimal() else MINUTE


def _named(plans: Mapping[str, Plan | None]) -> set[str]:
    """The agents that these plans name."""
    return {
        agent
        for plan in plans.values()
        for step in (plan.steps.values() if plan else ())
        for agent in step.agents
    }


def _agent_queues(
    queues: Sequence[QueueFact], plans: Mapping[str, Plan | None]
) -> dict[str, list[str]]:
    """The ARNs of each agent's request queues."""
    found: dict[str, list[str]] = {}
    for queue in queues:
        output = {f"{queue.name}Url": queue.url}
        for agent in agent_names(output, _named(plans)):
            found.setdefault(agent, []).append(queue.arn)
    return found
