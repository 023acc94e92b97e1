"""`roundsman cost`: estimates the cost of orders, or computes the cost of a live stack's usage."""

import json
from typing import Annotated

import typer

from roundsman_console.base.result import document_of
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import find_stack
from roundsman_console.faces.cli.text.cost import show_estimate, show_spent
from roundsman_console.facts.cost.arguments import check
from roundsman_console.facts.cost.estimate import Cost, estimate_of
from roundsman_console.facts.cost.figures import load_figures
from roundsman_console.facts.cost.live import DEFAULT_SINCE, read_since, read_usage
from roundsman_console.facts.cost.model import Wanted
from roundsman_console.facts.cost.prices import load_prices

D = Wanted(1)  # the defaults of the options


def cost_command(
    orders: Annotated[
        float | None,
        typer.Option(
            "--orders-per-month",
            help="Orders per month: 3e6, or 0. Without it, the usage of the stack.",
        ),
    ] = None,
    since: Annotated[
        str, typer.Option(help="The past period of the stack to price: 12h, 7d; at most 90d.")
    ] = DEFAULT_SINCE,
    steps: Annotated[int, typer.Option(help="Steps per order, run one after the other.")] = D.steps,
    batch: Annotated[
        float, typer.Option(help="Average messages per invocation: 1 to 10.")
    ] = D.batch,
    statuses: Annotated[
        int, typer.Option(help="Statuses sent per order (received, started, completed: 3).")
    ] = D.statuses,
    order_bytes: Annotated[
        int | None, typer.Option(help="Stored bytes of an order; by default, an order of one line.")
    ] = None,
    result_bytes: Annotated[int, typer.Option(help="Bytes of a step's result.")] = D.result_bytes,
    service_ms: Annotated[
        float, typer.Option(help="Response time of a remote service, in ms; agents wait for it.")
    ] = D.service_ms,
    memory: Annotated[
        int, typer.Option(help="Memory of submission, scheduler and agents, in MB.")
    ] = D.memory,
    architecture: Annotated[
        str, typer.Option(help="Processor of the functions: x86_64 or arm64.")
    ] = D.architecture,
    task_days: Annotated[
        float, typer.Option(help="Days to keep the task of an ended order.")
    ] = D.task_days,
    order_days: Annotated[
        float, typer.Option(help="Days of orders in the orders table.")
    ] = D.order_days,
    log_days: Annotated[float, typer.Option(help="Days to keep logs.")] = D.log_days,
    search_fields: Annotated[
        int, typer.Option(help="Fields of a workflow's search; each is one write unit an order.")
    ] = D.search_fields,
    limited: Annotated[
        bool, typer.Option("--limited", help="A limit of their workflow counts the orders.")
    ] = False,
    tenants: Annotated[
        bool, typer.Option("--tenants", help="Orders name a tenant: SQS charges fair queues extra.")
    ] = False,
    interval: Annotated[
        int, typer.Option(help="Seconds from one supervisor pass to the next.")
    ] = D.interval,
    profile: Annotated[
        str, typer.Option(help="What watches the stack: lean, standard or full.")
    ] = D.profile,
    stack: StackOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Estimate the monthly cost, or the cost of what a stack has used, at list prices.

    Example: roundsman cost --orders-per-month 3e6 --steps 4 --batch 5

    Example: roundsman cost --orders-per-month 0 --profile lean

    Example: roundsman cost --since 7d
    """
    with sentences():
        if orders is None:
            _spent(stack, since, as_json=as_json)
            return
        wanted = check(
            Wanted(
                orders_per_month=orders,
                steps=steps,
                batch=batch,
                statuses=statuses,
                order_bytes=order_bytes,
                result_bytes=result_bytes,
                service_ms=service_ms,
                memory=memory,
                architecture=architecture,
                task_days=task_days,
                order_days=order_days,
                log_days=log_days,
                search_fields=search_fields,
                limited=limited,
                tenants=tenants,
                interval=interval,
                profile=profile,
            )
        )
        estimate = estimate_of(wanted, load_figures(), load_prices())
        if as_json:
            print(json.dumps(document_of(Cost(estimate=estimate))))
        else:
            show_estimate(estimate)


def _spent(name: str | None, since: str, *, as_json: bool) -> None:
    """Print the cost of the stack's usage for the duration `since`."""
    seconds = read_since(since)
    stack = find_stack(name)
    spent = read_usage(stack, seconds, load_prices()).spent
    if as_json:
        print(json.dumps(document_of(Cost(spent=spent))))
    else:
        show_spent(spent, stack.name)
