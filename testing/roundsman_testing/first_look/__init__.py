"""A first look at Roundsman: orders that run in memory, and a service that fails some of them."""
