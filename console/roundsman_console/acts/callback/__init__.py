"""Callbacks: the answer that a step waits for from a person or another system."""
