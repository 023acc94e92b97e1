"""The result of a run, printed for people or as JSON for scripts."""

from rich.console import Console
from rich.table import Table

from roundsman_console.faces.cli.inert_text import plain
from tools.demo.documents import DemoOrderEnd, DemoQueues, DemoReport
from tools.demo.summary import Summary

WIDE = 110  # characters; a narrower terminal omits the column "What happens"


def print_summary(console: Console, summary: Summary) -> None:
    """Print the expected and actual end of each order, the effects, and the differences."""
    console.print()
    console.print(_orders(summary, wide=console.width >= WIDE))
    console.print()
    _effects(console, summary)
    subjects = [alert.subject for alert in summary.alerts]
    console.print(plain(f"Alerts: {len(subjects)} ({'; '.join(subjects) or 'none'})"))
    left = sum(depth.messages for depth in summary.queues)
    console.print(plain(f"Queues: {len(summary.queues)}, with {left} messages left in them"))
    differences = summary.all_differences()
    if not differences:
        console.print(
            plain(f"Everything is as expected, after {summary.seconds:.0f} s.", "bold green")
        )
        return
    console.print(plain(f"Not as expected, after {summary.seconds:.0f} s:", "bold red"))
    for difference in differences:
        console.print(plain(f"- {difference}"), soft_wrap=True)


def _orders(summary: Summary, *, wide: bool) -> Table:
    table = Table(title="Expected and actual ends", title_justify="left")
    shows = ("What happens",) if wide else ()
    for heading in ("Order", "Event", *shows, "Expected", "Actual", "How"):
        table.add_column(heading, overflow="fold")
    for verdict in summary.verdicts:
        style = "green" if verdict.ok else "red"
        table.add_row(
            plain(verdict.case.order_id),
            plain(verdict.case.event.removesuffix(".json")),
            *((plain(verdict.case.shows),) if wide else ()),
            plain(verdict.case.end),
            plain(verdict.actual, style),
            plain(_shortened(verdict.detail)),
        )
    return table


def _effects(console: Console, summary: Summary) -> None:
    happened = [effect for effect in summary.effects if effect.effects]
    once = [effect for effect in happened if effect.effects == 1]
    repeated = [effect for effect in happened if effect.calls > 1]
    console.print(
        plain(
            f"Remote effects: {len(happened)}, {len(once)} of them exactly once; "
            f"{len(repeated)} of those were called more than once."
        )
    )
    undone = [effect.key for effect in happened if effect.undone]
    names = ", ".join(key.removesuffix("/perform") for key in undone) or "none"
    console.print(plain(f"Undone of these: {len(undone)} ({names})"), soft_wrap=True)
    for effect in repeated:
        times = "1 effect" if effect.effects == 1 else f"{effect.effects} effects"
        console.print(plain(f"  {effect.key}: {effect.calls} calls, {times}"), soft_wrap=True)


def _shortened(text: str, most: int = 160) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def report_of(summary: Summary) -> DemoReport:
    """Return the summary for scripts."""
    return DemoReport(
        ok=summary.ok,
        orders=[
            DemoOrderEnd(
                verdict.case.order_id,
                verdict.case.event,
                verdict.case.shows,
                verdict.case.end.value,
                verdict.actual,
                verdict.ok,
                "; ".join(verdict.differences) or verdict.detail,
                verdict.failure_counts,
            )
            for verdict in summary.verdicts
        ],
        alerts=summary.alerts,
        effects=summary.effects,
        queues=DemoQueues(len(summary.queues), sum(depth.messages for depth in summary.queues)),
        differences=summary.all_differences(),
        seconds=round(summary.seconds, 1),
    )
