"""The scheduler: loads a task, has the engine decide, stores the decision, sends what follows."""
