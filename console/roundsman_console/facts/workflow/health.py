"""How each step of a workflow did in a period, and since when it is worse. Pure.

A period has parts, hours or days. A part is bad if more than TWICE the usual share of its attempts
failed, and more than LEAST_SHARE. Usual is the median of the parts of an earlier time. The step is
worse in the stretch of parts in which the bad ones outnumber the others by most, if at least
LEAST_FAILURES attempts failed there. It began with the part from which on most attempts failed
beyond the middle of that bound and the share of the stretch, which may be in the earlier time. It
is over if AGAIN_WELL parts with attempts came after it, and then it is told if twice as many
attempts failed.

A step is slow, in the same way, in the parts in which 99 of 100 attempts took up to more than
TWICE as long as usual, if there are at least LEAST_SLOW of them.

Unknown is None, and never 0: a part without a value is 0 only if another value of the stack was
measured in it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Annotated

from roundsman.model.instants import DAY, format_duration, second
from roundsman_console.aws.metrics import HOUR, StepKey, StepSeries, StepTimes
from roundsman_console.aws.versions import Published
from roundsman_console.base.constraints import Count, Keyword
from roundsman_console.base.counted import counted
from roundsman_console.base.result import HIDDEN, MS, EpochMs, EpochMsOrNone, Shown, rounded

PERIODS: Mapping[str, int] = {"24h": DAY, "7d": 7 * DAY, "30d": 30 * DAY}
"""The periods that can be chosen, in ms; the first if none is."""
EARLIER: Mapping[str, int] = {"24h": 14 * DAY, "7d": 14 * DAY, "30d": 30 * DAY}
"""How long the time before each period is that says what is usual, in ms: so long that a step that
has been worse for a week is not usual."""
EVERY: Mapping[str, int] = {"24h": HOUR, "7d": HOUR, "30d": DAY}
"""How long a part of each period is, in ms."""
TWICE = 2
LEAST_SHARE = 0.01
LEAST_FAILURES = 5
LEAST_SLOW = 3
LEAST_USUAL = 3
"""The number of earlier parts with attempts below which it is not known what is usual."""
AGAIN_WELL = 3
MOST_SLICES = 15
"""The most columns in which a period is drawn."""
MOST_NAMED = 3
"""The number of steps that the sentence names."""

SomeCount = Annotated[int, Keyword("minimum", 0)]
SHARE = replace(rounded(4), to_words=lambda share: f"{share * 100:.1f} %")
"""A share of 1; in words as a percentage."""
_NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worse:
    """A time in which a step did worse than usual."""

    since: EpochMs
    """When its first hour or day begins."""
    until: EpochMsOrNone
    """When its last one ended; null if it is not over."""
    failures: bool
    """Whether more attempts failed; otherwise they took longer."""
    words: str
    """What was worse, how it usually is, and which version of an agent was published about then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepHealth:
    """How a step did in a period."""

    workflow: str
    step: str
    agents: Sequence[str]
    """The agents that may perform it."""
    attempts: Annotated[Count | None, Shown(missing=_NOT_KNOWN)]
    """The attempts that ended; null if that is not known."""
    failed: Annotated[Count | None, Shown(missing=_NOT_KNOWN)]
    """Those of them that failed; null if that is not known."""
    usual_share: Annotated[float | None, Shown(unit=SHARE, missing=_NOT_KNOWN)]
    """The median of the shares that failed in the earlier hours or days; null if it is not
    known."""
    half: Annotated[int | None, Shown(unit=MS)]
    """Half of the attempts that succeeded took no longer; null if none did."""
    nearly_all: Annotated[int | None, Shown(unit=MS)]
    """99 of 100 attempts that succeeded took no longer; null if none did."""
    usual_nearly_all: Annotated[int | None, Shown(unit=MS)]
    """The median of the same in the earlier hours or days; null if it is not known."""
    worse: Worse | None
    """Since when it is worse; null if it is not, or if that is not known."""
    attempts_by_part: Sequence[SomeCount | None]
    """The attempts in each hour or day of the period; null if that is not known."""
    failed_by_part: Sequence[SomeCount | None]
    """The failed ones in each hour or day; null if that is not known."""
    limit: Annotated[int, HIDDEN] = 0
    """The longest time of an attempt, in ms."""

    @property
    def failed_share(self) -> float | None:
        """The share of the attempts that failed; None if there was none, or if it is not known."""
        return share_of(self.attempts, self.failed)

    @property
    def is_known(self) -> bool:
        """Whether it is known what is usual, so that it can be said whether it is worse."""
        return self.usual_share is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How the steps of a workflow, or those of an agent, did in a period."""

    since: EpochMs
    """When its first hour or day begins."""
    until: EpochMs
    """When its last one ends: the present one."""
    every: Annotated[int, Shown(unit=MS)]
    """How long each part of the period is: an hour or a day."""
    usual_since: EpochMs
    """When the time begins that says what is usual. It ends with `since`."""
    missing: str | None
    """Why nothing is known; null if it was measured."""
    sentence: str
    """Which steps are worse, and since when."""
    steps: Sequence[StepHealth]
    """The worst ones first, then in the order of the workflow."""

    @property
    def has_figures(self) -> bool:
        """Whether anything is known of any step."""
        return any(one.attempts is not None for one in self.steps)

    @property
    def slices(self) -> list[int]:
        """When each column of a drawing of the period begins, in epoch ms."""
        return [*range(self.since, self.until, self.every * self._together)]

    @property
    def _together(self) -> int:
        parts = (self.until - self.since) // self.every
        return -(-parts // MOST_SLICES)

    def shares(self, step: StepHealth) -> list[float | None]:
        """Return the share of a step that failed in each of the slices; None if it is not known."""
        together = self._together
        attempts, failed = step.attempts_by_part, step.failed_by_part
        return [
            share_of(
                _sum(attempts[first : first + together]), _sum(failed[first : first + together])
            )
            for first in range(0, len(attempts), together)
        ]


@dataclass(frozen=True, slots=True)
class Window:
    """The time that is read. Instants are epoch ms, at whole hours or days of UTC."""

    usual_since: int
    since: int
    until: int
    every: int

    @property
    def parts(self) -> range:
        """When the parts of the period begin."""
        return range(self.since, self.until, self.every)

    @property
    def earlier(self) -> range:
        """When the parts of the time before it begin."""
        return range(self.usual_since, self.since, self.every)


def window_of(period: str, at: int) -> Window:
    """Return the time that is read for a period of PERIODS that ends at `at` (epoch ms)."""
    every = EVERY[period]
    until = at - at % every + every
    since = until - PERIODS[period]
    return Window(since - EARLIER[period], since, until, every)


def share_of(attempts: int | None, failed: int | None) -> float | None:
    """Return the share of the attempts that failed; None without attempts, or if unknown."""
    return failed / attempts if attempts and failed is not None else None


def health_of(
    steps: Mapping[StepKey, tuple[Sequence[str], int]],
    times: Mapping[StepKey, StepTimes],
    series: Mapping[StepKey, StepSeries],
    measured: frozenset[int],
    window: Window,
    *,
    missing: str | None = None,
) -> Health:
    """Return how the steps did; `steps` are their agents and the longest time of an attempt (ms).

    `measured` are the parts of which CloudWatch had a value of the stack. With `missing`, which
    says why, nothing is known.
    """
    found = [
        _step(key, *steps[key], times.get(key), series.get(key, StepSeries()), measured, window)
        for key in steps
    ]
    health = Health(
        since=window.since,
        until=window.until,
        every=window.every,
        usual_since=window.usual_since,
        missing=missing,
        sentence="",
        steps=sorted(found, key=_how_bad),
    )
    return replace(health, sentence=_sentence(health))


def _how_bad(step: StepHealth) -> tuple[int, float]:
    """The place of a step among others: failures before slowness, what goes on before the rest."""
    if step.worse is None:
        return 4, 0
    rank = (0 if step.worse.failures else 1) + (2 if step.worse.until is not None else 0)
    return rank, -(step.failed_share or 0)


def _step(
    key: StepKey,
    agents: Sequence[str],
    limit: int,
    times: StepTimes | None,
    series: StepSeries,
    measured: frozenset[int],
    window: Window,
) -> StepHealth:
    parts = [_part(series, one, measured) for one in window.parts]
    earlier = [_part(series, one, measured) for one in window.earlier]
    usual = _usual([share_of(*one) for one in earlier])
    usual_most = _usual([series.nearly_all.get(one) for one in window.earlier])
    attempts, failed = (_sum([one[which] for one in parts]) for which in (0, 1))
    if times is not None:
        attempts, failed = times.succeeded + times.failed, times.failed
    return StepHealth(
        workflow=key[0],
        step=key[1],
        agents=agents,
        attempts=attempts,
        failed=failed,
        usual_share=usual,
        half=times.half if times else None,
        nearly_all=times.nearly_all if times else None,
        usual_nearly_all=None if usual_most is None else round(usual_most),
        worse=_failing([*earlier, *parts], usual, window) or _slow(series, usual_most, window),
        attempts_by_part=[one[0] for one in parts],
        failed_by_part=[one[1] for one in parts],
        limit=limit,
    )


def _part(series: StepSeries, part: int, measured: frozenset[int]) -> tuple[int | None, int | None]:
    """The attempts of a part and those that failed; None if it was not measured."""
    if part not in measured:
        return None, None
    failed = round(series.failed.get(part, 0))
    return round(series.succeeded.get(part, 0)) + failed, failed


def _usual(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return median(known) if len(known) >= LEAST_USUAL else None


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [one for one in counts if one is not None]
    return sum(known) if known else None


# --- Since when worse ----------------------------------------------------------------------------


def worst_stretch(bad: Sequence[bool | None]) -> tuple[int, int] | None:
    """Return the first and the last place of the stretch with most bad ones beyond the others.

    None stands for what is not known, and counts neither way. Of equal stretches it is the last
    one, from its first bad one on. None without any bad one.
    """
    best: tuple[int, int] | None = None
    most, here, first = 0, 0, 0
    for place, one in enumerate(bad):
        if here < 0:
            here, first = 0, place
        here += 0 if one is None else 1 if one else -1
        if one and here >= most:
            most, best = here, (first, place)
    if best is None:
        return None
    first = next(place for place in range(best[0], best[1] + 1) if bad[place])
    return first, best[1]


def _failing(
    every: Sequence[tuple[int | None, int | None]], usual: float | None, window: Window
) -> Worse | None:
    """Return since when more attempts fail; `every` are the parts of the earlier time and those of
    the period.
    """
    if usual is None:
        return None
    most = max(TWICE * usual, LEAST_SHARE)
    shares = [share_of(*one) for one in every]
    bad = [None if share is None else share > most for share in shares]
    stretch = _in_period(bad, window)
    if stretch is None:
        return None
    attempts, failed = _sums(every, stretch)
    share = failed / attempts  # a bad part has attempts
    if share <= most:
        return None
    between = (most + share) / 2
    beyond = [(failed or 0) - (attempts or 0) * between for attempts, failed in every]
    stretch = _from_begin(bad, beyond, stretch)
    attempts, failed = _sums(every, stretch)
    share = failed / attempts
    if failed < LEAST_FAILURES * (TWICE if _is_over(bad, stretch) else 1):
        return None

    def words(when: str, goes_on: bool) -> str:
        verb = "have failed" if goes_on else "failed"
        return (
            f"{SHARE.to_words(share)} of the attempts {verb} {when}: {failed:,} of {attempts:,}; "
            f"usually {SHARE.to_words(usual)}"
        )

    return _worse(bad, stretch, window, words, failures=True)


def _sums(
    every: Sequence[tuple[int | None, int | None]], stretch: tuple[int, int]
) -> tuple[int, int]:
    """The attempts of a stretch and those that failed."""
    parts = every[stretch[0] : stretch[1] + 1]
    return _sum([one[0] for one in parts]) or 0, _sum([one[1] for one in parts]) or 0


def _slow(series: StepSeries, usual: float | None, window: Window) -> Worse | None:
    if usual is None:
        return None
    longest = [series.nearly_all.get(one) for one in (*window.earlier, *window.parts)]
    bad = [None if one is None else one > TWICE * usual for one in longest]
    stretch = _in_period(bad, window)
    if stretch is None:
        return None
    stretch = _from_begin(bad, [0 if one is None else 1 if one else -1 for one in bad], stretch)
    if sum(bool(one) for one in bad[stretch[0] : stretch[1] + 1]) < LEAST_SLOW:
        return None
    there = [one for one in longest[stretch[0] : stretch[1] + 1] if one is not None]

    def words(when: str, goes_on: bool) -> str:
        verb = "have taken" if goes_on else "took"
        return (
            f"99 % of the attempts {verb} up to {format_duration(round(median(there)))} {when}; "
            f"usually {format_duration(round(usual))}"
        )

    return _worse(bad, stretch, window, words, failures=False)


def _in_period(bad: Sequence[bool | None], window: Window) -> tuple[int, int] | None:
    """Return the worst stretch of the period; `bad` has the earlier parts, too."""
    begin = len(window.earlier)
    found = worst_stretch(bad[begin:])
    return None if found is None else (found[0] + begin, found[1] + begin)


def _from_begin(
    bad: Sequence[bool | None], beyond: Sequence[float], stretch: tuple[int, int]
) -> tuple[int, int]:
    """Return the stretch from the part from which on the sum of `beyond` is largest.

    That may be before the period. A failure by chance some hours before is no begin.
    """
    first, last = stretch
    outnumber, total, most = 0, 0.0, 0.0
    for place in range(last, -1, -1):
        one = bad[place]
        outnumber += 0 if one is None else 1 if one else -1
        if outnumber < 0:
            break
        total += beyond[place]
        if total > most:
            first, most = place, total
    return first, last


def _when(since: int, until: int | None) -> str:
    begin = second(since)
    return f"since {begin}" if until is None else f"from {begin} to {second(until)}"


def _is_over(bad: Sequence[bool | None], stretch: tuple[int, int]) -> bool:
    return sum(one is not None for one in bad[stretch[1] + 1 :]) >= AGAIN_WELL


def _worse(
    bad: Sequence[bool | None],
    stretch: tuple[int, int],
    window: Window,
    words: Callable[[str, bool], str],
    *,
    failures: bool,
) -> Worse:
    (first, last), begins = stretch, range(window.usual_since, window.until, window.every)
    since = begins[first]
    until = begins[last] + window.every if _is_over(bad, stretch) else None
    return Worse(
        since=since, until=until, failures=failures, words=words(_when(since, until), until is None)
    )


def with_versions(health: Health, published: Mapping[str, Sequence[Published]]) -> Health:
    """Add to each step that is worse which version of its agents was published about then.

    `published` are the versions by the name of the agent. About then is from one part before the
    first bad one to its end.
    """

    def told(step: StepHealth) -> StepHealth:
        worse = step.worse
        if worse is None:
            return step
        said = [
            f"Version {one.version} of {agent} was published at {second(one.at)}"
            for agent in step.agents
            for one in published.get(agent, ())
            if worse.since - health.every <= one.at < worse.since + health.every
        ]
        if not said:
            return step
        return replace(step, worse=replace(worse, words=". ".join([worse.words, *said])))

    told_of = replace(health, steps=[told(one) for one in health.steps])
    return replace(told_of, sentence=_sentence(told_of))


# --- In words ------------------------------------------------------------------------------------


def _sentence(health: Health) -> str:
    """Say which steps are worse and since when, or that none is, or that it is not known."""
    if health.missing is not None:
        return f"How the steps did is not known: {health.missing}."
    if not health.has_figures:
        return "CloudWatch has no figure of this stack in this period."
    if not any(one.attempts for one in health.steps):
        return "CloudWatch has no attempt of these steps in this period."
    worse = [f"{one.step}: {one.worse.words}." for one in health.steps if one.worse is not None]
    said = worse[:MOST_NAMED]
    if len(worse) > MOST_NAMED:
        said.append(f"{counted(len(worse) - MOST_NAMED, 'other step')} did worse than usual, too.")
    compared = [one for one in health.steps if one.attempts and one.is_known]
    unknown = [one for one in health.steps if one.attempts and not one.is_known]
    if not worse and compared:
        said.append("No step does worse than usual.")
    if unknown:
        days = format_days(health.since - health.usual_since)
        said.append(
            f"{counted(len(unknown), 'step')} cannot be compared: there were too few attempts in "
            f"the {days} before."
        )
    return " ".join(said)


def format_days(duration: int) -> str:
    """Return a duration in ms as whole days: `7 days`."""
    return counted(round(duration / DAY), "day")


def usual_words(health: Health) -> str:
    """Return what is called usual, in words."""
    parts = "hours" if health.every == HOUR else "days"
    days = format_days(health.since - health.usual_since)
    return f"Usual is the median of the {parts} in the {days} before {second(health.since)}."


def sources_words(health: Health) -> str:
    """Return in sentences where the numbers come from, or why there are none."""
    if health.missing is not None:
        return f"Attempts, failures and times: {health.missing}."
    return (
        f"The numbers are of the time since {second(health.since)} and of all versions of a "
        "workflow. The metric StepMs has the attempts that succeeded, and their times from the "
        "request to the reply; the metric StepFailures has the attempts that failed. An attempt "
        "without a reply is in neither. CloudWatch has its figures some 3 minutes later."
    )
