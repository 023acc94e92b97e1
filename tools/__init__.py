"""The project's own tools: run as `python -m tools.<name>` from the repository's root."""
