"""The application's own part: its workflows and its order event."""
