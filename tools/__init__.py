"""The project's own tools; run them as `python -m tools.<name>` from the repository's root."""
