"""What everything else is about: workflows, plans, tasks, events. Values without I/O."""
