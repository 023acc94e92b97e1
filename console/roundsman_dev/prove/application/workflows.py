"""The workflows of a proof: between them they have every form that a workflow may have."""

from dataclasses import replace
from datetime import timedelta

from roundsman import Archive, Compensation, Step, Undo, Workflow
from roundsman_dev.prove.application.orders import FULL

ATTEMPT = timedelta(seconds=10)
"""The time of an attempt. A service that hangs takes longer."""

_FENCED = Compensation(fences_late_performs=True)


def _step(name: str, agent: str, *after: Step) -> Step:
    return Step(name=name, agent=agent, after=after, complete_within=ATTEMPT, compensation=_FENCED)


def _workflow(name: str, *steps: Step, on_failure: Undo | Archive = Undo()) -> Workflow:  # noqa: B008 - it is frozen
    return Workflow(
        name=name,
        steps=steps,
        complete_within=timedelta(hours=2),
        on_failure=on_failure,
        retain_for=timedelta(days=1),  # its record is read when the order has ended
    )


reserve = _step("reserve", "stock")
charge = _step("charge", "payment", reserve)
ship = _step("ship", "courier", charge)

pack = _step("pack", "stock", reserve)
ship_packed = _step("ship", "courier", charge, pack)

pick = replace(_step("pick", "stock"), for_each="input.items", tolerate=1)
charge_picked = _step("charge", "payment", pick)

wrap = replace(_step("wrap", "stock", reserve), when="input.gift")
ship_wrapped = _step("ship", "courier", wrap)

send = Step(
    name="send",
    agents=("courier", "payment"),
    after=(reserve,),
    complete_within=ATTEMPT,
    compensation=_FENCED,
    next_agent_on=(FULL,),
)
debit = replace(
    _step("debit", "payment", reserve),
    compensation=Compensation(fences_late_performs=True, verify=True),
)

WORKFLOWS = {
    workflow.name: workflow
    for workflow in (
        _workflow("line", reserve, charge, ship),
        _workflow("diamond", reserve, charge, pack, ship_packed),
        _workflow("items", pick, charge_picked),
        _workflow("choice", reserve, wrap, ship_wrapped),
        _workflow("backup", reserve, send),
        _workflow("verified", reserve, debit),
        _workflow("archive", reserve, charge, ship, on_failure=Archive()),
        replace(_workflow("no_return", reserve, charge, ship), point_of_no_return=charge),
    )
}
"""By name, as an order names them."""
