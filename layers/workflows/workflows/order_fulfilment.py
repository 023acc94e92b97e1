"""Order fulfilment: reserve stock, charge the card, create the shipment, confirm."""

from datetime import timedelta

from roundsman import Archive, Compensation, Priority, Retry, Step, Undo, Workflow
from workflows.order import with_total

# Steps without a retry are patient: an outage of the warehouse or of the carrier, or a bad
# deployment of their agents, delays orders but undoes none.

reserve_stock = Step(
    name="reserve_stock",
    agent="inventory",
    complete_within=timedelta(seconds=30),
    compensation=Compensation(fences_late_performs=True),
)
charge_card = Step(
    name="charge_card",
    agent="payment",
    after=(reserve_stock,),
    complete_within=timedelta(seconds=60),
    # Impatient: the customer waits for the answer, and can pay in another way.
    retry=Retry(max_attempts=5, first_delay=timedelta(seconds=2), not_on=("CardDeclined",)),
    compensation=Compensation(complete_within=timedelta(minutes=5), fences_late_performs=True),
)
create_shipment = Step(
    name="create_shipment",
    agent="shipping",
    after=(charge_card,),
    complete_within=timedelta(minutes=2),
    compensation=Compensation(fences_late_performs=True),
)
send_confirmation = Step(
    name="send_confirmation",
    agent="mail",
    after=(create_shipment,),
    complete_within=timedelta(seconds=30),
    # Impatient: the order stays as it is, and a person who sees it at once can still write.
    retry=Retry(max_attempts=3),
    on_failure=Archive(),
)

order_fulfilment = Workflow(
    name="order_fulfilment",
    input=with_total,
    steps=(reserve_stock, charge_card, create_shipment, send_confirmation),
    complete_within=timedelta(hours=2),
    on_failure=Undo(),
    retain_for=timedelta(days=7),
    priority=Priority.NORMAL,
    point_of_no_return=None,
)
