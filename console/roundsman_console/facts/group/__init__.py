"""Failure groups: tasks that failed for the same cause."""
