"""The report of a proof as a page that a browser shows without a server, a script or a network.

Whatever is in a report, such as the name of a region or of a log line, is text on the page.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from roundsman_console.prove.documents import FaultDocument, ProofReportDocument

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem;
  color: #1a1a1a; background: #fff; }
h1 { margin-bottom: 0; } .kept { color: #116329; } .broken { color: #a40e26; }
.unfinished, .unknown { color: #7a4b00; } .followed { color: #116329; }
table { border-collapse: collapse; width: 100%; margin: 0.5rem 0 1.5rem; }
th, td { text-align: left; padding: 0.25rem 0.75rem 0.25rem 0; border-bottom: 1px solid #ddd;
  vertical-align: top; overflow-wrap: break-word; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code { font-size: 0.9em; } .hash { overflow-wrap: anywhere; }
"""

NOT_TRIED: Final = "not tried here, because"
NOT_REPORTED: Final = "not reported yet"
SENTENCES: Final = {
    "kept": "Every promise that could be judged was kept.",
    "broken": "A promise was broken.",
    "unfinished": "No promise was found broken, and the proof did not see everything.",
}
"""What each verdict means."""


def report_html(report: ProofReportDocument) -> str:
    """Return the page of a report."""
    run = report["run"]
    verdict = report["verdict"]
    ended = ", ".join(f"{number:,} {state}" for state, number in report["ended"].items())
    place = "a local AWS" if run["local"] else f"region {run['region']}"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width">',
        f"<title>Roundsman: proof {_text(run['run'])}</title><style>{_STYLE}</style></head><body>",
        f'<h1>Proof {_text(run["run"])}: <span class="{verdict}">{verdict}</span></h1>',
        f"<p>{SENTENCES[verdict]} {report['sent']:,} orders were sent in {_text(place)}, and "
        f"{report['copies']:,} of their events a second time. {report['stored']:,} are stored: "
        f"{_text(ended) or 'none'}. {report['effects']:,} effects stand.</p>",
        "<h2>Promises</h2>",
        _table(
            ("promise", "verdict", "judged", "broken", "not judged", "what it says"),
            (
                (
                    f"<code>{_text(one['promise'])}</code>",
                    f'<span class="{one["verdict"]}">{one["verdict"]}</span>',
                    f"{one['judged']:,}",
                    f"{one['violations']:,}",
                    f"{one['unknown']:,}",
                    _text(one["says"]),
                )
                for one in report["promises"]
            ),
            numbers=(2, 3, 4),
        ),
        *_broken(report),
        "<h2>Faults</h2>",
        _table(
            ("fault", "outcome"),
            ((_text(one["fault"]), _text(outcome_of(one))) for one in report["faults"]),
        ),
        "<h2>Failures of functions, by their logs</h2>",
        _table(
            ("function", "failure", "made by", "times"),
            (
                (
                    _text(one["function"]),
                    _text(one["what"]),
                    _text(one["because"] or "nothing that was made"),
                    f"{one['times']:,}",
                )
                for one in report["functionFailures"]
            ),
            numbers=(3,),
        ),
        "<h2>Seconds from acceptance to end</h2>",
        _table(
            ("orders of which", "orders", "50 %", "90 %", "99 %", "longest"),
            (
                (
                    _text(one["treatment"]),
                    f"{one['orders']:,}",
                    *(f"{one[name]:,.1f}" for name in ("p50", "p90", "p99", "longest")),
                )
                for one in report["latencies"]
            ),
            numbers=(1, 2, 3, 4, 5),
        ),
        *_spent(report),
        *_not_judged(report),
        "<h2>What was proved</h2>",
        _table(
            ("", ""),
            [
                ("release", _text(run["version"])),
                ("runtime", _text(run["runtime"])),
                ("from", _text(run["began"])),
                ("to", _text(run["ended"])),
                *_hashes([("what was seen", run["seen"])]),
                *_hashes(run["templates"].items()),
                *_hashes((f"plan of {name}", one) for name, one in run["plans"].items()),
            ],
        ),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _broken(report: ProofReportDocument) -> list[str]:
    if not report["violations"]:
        return []
    rows = [
        (
            f"<code>{_text(one['promise'])}</code>",
            _text(one["order"] or "the run"),
            _text(one["what"]),
            ", ".join(map(str, one["rows"])),
        )
        for one in report["violations"]
    ]
    return ["<h2>Broken</h2>", _table(("promise", "order", "what", "rows of its history"), rows)]


def _not_judged(report: ProofReportDocument) -> list[str]:
    rows = [
        (f"<code>{_text(one['promise'])}</code>", _text(one["why"]), f"{one['times']:,}")
        for one in report["notJudged"]
    ]
    names = ", ".join(report["unjudged"])
    return [
        "<h2>Not judged</h2>",
        _table(("promise", "why", "times"), rows, numbers=(2,)),
        f"<p>Not shown by records or by the ledger: <code>{_text(names)}</code>.</p>",
    ]


def outcome_of(fault: FaultDocument) -> str:
    """Return what became of a fault, in words."""
    match fault["outcome"]:
        case "made":
            return f"made, for {fault['seconds']:,.0f} s"
        case "refused":
            return f"a right is missing: {fault['why']}"
        case "notHere":
            return f"{NOT_TRIED} {fault['why']}"
        case "failed":
            return f"failed: {fault['why']}"


def _spent(report: ProofReportDocument) -> list[str]:
    rows = [
        (_text(one["service"]), _text(one["what"]), _usd(one["usd"])) for one in report["spent"]
    ]
    whole = sum(one["usd"] or 0.0 for one in report["spent"])
    rows.append(("together", "as far as it is reported", _usd(whole)))
    return [
        "<h2>Cost so far, by CloudWatch's counts and list prices</h2>",
        f"<p>Not known: {_text(report['unpriced'])}</p>"
        if report["unpriced"]
        else _table(("service", "what", "USD"), rows, numbers=(2,)),
    ]


def _usd(usd: float | None) -> str:
    return NOT_REPORTED if usd is None else f"{usd:.4f}"


def _hashes(named: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(_text(name), f'<code class="hash">{_text(one)}</code>') for name, one in named]


def _table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = ()
) -> str:
    """A table. The cells are HTML; the columns of numbers are aligned."""

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f'<{tag} class="n">{cell}</{tag}>' if place in numbers else f"<{tag}>{cell}</{tag}>"
            for place, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    if not body:
        return "<p>None.</p>"
    head = f"<tr>{cells('th', [_text(one) for one in headings])}</tr>" if any(headings) else ""
    return f"<table>{head}{body}</table>"


def _text(text: str) -> str:
    return escape(text, quote=True)
