"""The whole stack at a glance: how many tasks stand where, what waits, who is behind."""
