"""The supervisor finds overdue tasks, gets decisions from the engine and sends their actions."""
