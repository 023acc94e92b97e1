"""The stack as a whole: its queues and its counts."""
