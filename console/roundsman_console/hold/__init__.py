"""Holds on agents and on orders: placed, released, and those who waited woken."""
