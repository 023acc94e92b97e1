"""What the engine decides on: tasks, their steps, events, holds and marks. No I/O."""
