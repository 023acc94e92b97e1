"""Changing a deployed stack: commands to tasks, holds, and what follows from them."""
