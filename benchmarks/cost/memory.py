"""Models the path and the price of an order by the memory of the functions.

Lambda gives a function processor time in proportion to its memory, up to a whole processor at 1,769
MB. So the time that a function computes shrinks with more memory and costs the same, and the time
that it waits costs more. Services are left out: a function waits for its service as well, so the
next GB of an agent with a slow service costs more than here.
"""

from dataclasses import replace

from benchmarks.cost.money import UNBATCHED
from benchmarks.report import Report, Setting, Table
from benchmarks.speed.latency import STEPS, path, waits_ms
from roundsman_console.facts.cost.figures import load_figures
from roundsman_console.facts.cost.model import DEFAULT_MEMORY, bill_of, message_ms, processor_ms
from roundsman_console.facts.cost.prices import load_prices

MEMORIES = (128, 192, 256, 320, 384, 448, 512, 576, 640, 768, 1024, 1280, 1769)
ROLES = ("submission", "scheduler", "agent")


def measure(_setting: Setting) -> Report:
    """Return the table of all MEMORIES."""
    figures, prices = load_figures(), load_prices()
    rows, before = list[list[str]](), None
    for memory in MEMORIES:
        wanted = replace(UNBATCHED, memory=memory)
        ms = waits_ms(path(STEPS, figures, prices, memory))
        usd = bill_of(wanted, figures, prices).usd_per_million
        times = [
            f"{message_ms(role, wanted, figures, prices):.1f}, of it"
            f" {processor_ms(role, wanted, figures, prices):.1f}"
            for role in ROLES
        ]
        a_cent = f"{(before[0] - ms) / (usd - before[1]) / 100:.1f}" if before else ""
        name = f"{memory:,} MB" + (", the default" if memory == DEFAULT_MEMORY else "")
        rows.append([name, *times, f"{ms:.0f}", f"{usd:.2f}", a_cent])
        before = (ms, usd)
    return Report(
        [
            Table(
                f"An order of {STEPS} steps by the memory of all functions, modelled",
                ("", *(f"{role}, ms" for role in ROLES), "path, ms", "USD a million", "ms a cent"),
                rows,
            )
        ],
        [
            "Of each message: its time, and what of that is the function's own processor time.",
            "ms a cent: by how much the last cent for a million orders made each of them shorter.",
        ],
    )
