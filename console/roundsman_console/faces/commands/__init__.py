"""The commands of `roundsman` that operate a stack: a module has the name of its command."""
