"""Numbers of orders in words."""


def count_of_orders(count: int) -> str:
    """Return `1 order`, or `3 orders`."""
    return "1 order" if count == 1 else f"{count} orders"
