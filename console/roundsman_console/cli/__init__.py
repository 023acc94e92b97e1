"""The commands of `roundsman`, one module each, named as the command is typed."""
