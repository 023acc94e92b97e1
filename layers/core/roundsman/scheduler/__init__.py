"""The scheduler loads a task, gets a decision from the engine, stores it and sends its actions."""
