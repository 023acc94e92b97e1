"""Reading a deployed stack: its outputs, tasks, failure groups, queues and counts."""
