"""Reading a deployed stack: its outputs, tasks, groups, queues and counts."""
