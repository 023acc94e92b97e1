"""The application's part of the system: its workflows and its order event."""
