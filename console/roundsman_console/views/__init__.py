"""What a task looks like to people and scripts; pure functions of what was read."""
