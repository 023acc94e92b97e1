"""The engine: pure functions that decide what an event changes about a task."""
