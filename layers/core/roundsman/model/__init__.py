"""The domain model: workflows, plans, tasks and events. It performs no I/O."""
