"""The Lambda handlers, and the adapters that each is made of."""
