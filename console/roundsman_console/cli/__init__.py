"""The commands of `roundsman`. Most modules have the name of their command or command group."""
