"""`roundsman cost`: what orders will cost, or what those of a live stack have cost."""

import json
from typing import Annotated

import typer

from roundsman_console.cost.asking import check
from roundsman_console.cost.figures import load_figures
from roundsman_console.cost.model import Wanted, bill_of, units_of
from roundsman_console.cost.prices import load_prices
from roundsman_console.cost.rivals import rivals_of
from roundsman_console.cost.showing import document_of, show_bill
from roundsman_console.sentences import sentences

D = Wanted(1)  # the defaults, said in one place


def cost_command(
    orders: Annotated[
        float, typer.Option("--orders-per-month", help="How many orders come: 3000000, or 3e6.")
    ],
    steps: Annotated[int, typer.Option(help="Steps of an order, one after the other.")] = D.steps,
    batch: Annotated[
        float, typer.Option(help="Messages that one invocation takes, on average: 1 to 10.")
    ] = D.batch,
    statuses: Annotated[
        int, typer.Option(help="Statuses sent for an order (received, started, completed: 3).")
    ] = D.statuses,
    order_bytes: Annotated[
        int | None, typer.Option(help="Bytes of an order as stored; of one line by default.")
    ] = None,
    result_bytes: Annotated[int, typer.Option(help="Bytes of a step's result.")] = D.result_bytes,
    service_ms: Annotated[
        float, typer.Option(help="What a remote service takes to answer, in ms; agents wait.")
    ] = D.service_ms,
    memory: Annotated[int, typer.Option(help="Memory of each function, in MB.")] = D.memory,
    architecture: Annotated[
        str, typer.Option(help="Of the functions: x86_64 or arm64.")
    ] = D.architecture,
    task_days: Annotated[
        float, typer.Option(help="Days that an ended order's task is kept.")
    ] = D.task_days,
    order_days: Annotated[
        float, typer.Option(help="Days of orders that lie in the store.")
    ] = D.order_days,
    log_days: Annotated[float, typer.Option(help="Days that logs are kept.")] = D.log_days,
    interval: Annotated[
        int, typer.Option(help="Seconds between two passes of the supervisor.")
    ] = D.interval,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Reckon a month's bill from measured counts and AWS's list prices (us-east-1).

    Example: roundsman cost --orders-per-month 3e6 --steps 4 --batch 5
    """
    with sentences():
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
                interval=interval,
            )
        )
        figures, prices = load_figures(), load_prices()
        bill = bill_of(wanted, figures, prices)
        units = units_of(wanted, figures, prices)
        rivals = rivals_of(wanted, figures, prices)
        if as_json:
            print(json.dumps(document_of(bill, units, rivals, figures, prices)))
        else:
            show_bill(bill, units, rivals, figures, prices)
