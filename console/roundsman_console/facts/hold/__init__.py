"""Holds on agents and on orders, as they are stored."""
