"""Decides what happens to a task: pure functions of its record, its plan and an event."""
