"""One order: its task, its timeline, what it waits for, and the commands on it."""
