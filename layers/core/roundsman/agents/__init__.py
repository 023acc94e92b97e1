"""Agents call the author's function for each attempt at a step, and reply to the scheduler."""
