"""One order: its task, its timeline, and what it waits for."""
