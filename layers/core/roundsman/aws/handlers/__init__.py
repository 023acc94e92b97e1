"""The Lambda handlers, and the adapters that each one uses."""
