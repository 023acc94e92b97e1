"""The deployed stack: how it is found, its queues, its numbers, its last version."""
