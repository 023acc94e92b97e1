"""A small shop: three steps after one another, each at an agent of its own name."""

from datetime import timedelta

from roundsman import Compensation, Retry, Step, Undo, Workflow

FENCED = Compensation(fences_late_performs=True, retry=Retry(max_attempts=8))
SOON = Retry(max_attempts=3, first_delay=timedelta(seconds=2))
HALF_A_MINUTE = timedelta(seconds=30)

reserve = Step(
    name="reserve", agent="stock", complete_within=HALF_A_MINUTE, retry=SOON, compensation=FENCED
)
charge = Step(
    name="charge",
    agent="payment",
    after=(reserve,),
    complete_within=HALF_A_MINUTE,
    retry=SOON,
    compensation=FENCED,
)
pick = Step(
    name="pick",
    agent="stock",
    after=(charge,),
    complete_within=HALF_A_MINUTE,
    retry=SOON,
    for_each="input.lines",
    compensation=FENCED,
)
mail = Step(name="mail", agent="post", after=(charge,), complete_within=HALF_A_MINUTE, retry=SOON)

SHOP = Workflow(
    name="shop",
    steps=(reserve, charge, mail),
    complete_within=timedelta(hours=1),
    on_failure=Undo(),
    retain_for=timedelta(days=1),
)
PICKING = Workflow(
    name="picking",
    steps=(reserve, charge, pick),
    complete_within=timedelta(hours=1),
    on_failure=Undo(),
    retain_for=timedelta(days=1),
)
BESIDE = Workflow(
    name="beside",
    steps=(
        reserve,
        charge,
        Step(name="pack", agent="stock", complete_within=HALF_A_MINUTE, retry=SOON),
    ),
    complete_within=timedelta(hours=1),
    retain_for=timedelta(days=1),
)
"""Packed without waiting for the card."""
