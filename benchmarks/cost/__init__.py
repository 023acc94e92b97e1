"""Counts what an order asks of AWS, and prices it. Two runs count the same."""
