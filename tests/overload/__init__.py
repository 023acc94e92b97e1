"""Simulated overload: queues longer than their steps' time, a scheduler that is behind or down."""
