"""The workflow of the example, whose orders are found by three fields."""

from dataclasses import replace

from workflows.order_fulfilment import order_fulfilment

SEARCHED = replace(
    order_fulfilment,
    search=("input.customerId", "input.paymentToken", "input.shippingAddress.city"),
)
