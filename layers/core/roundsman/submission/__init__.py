"""Submission: takes an order event and stores the order and its task together."""
