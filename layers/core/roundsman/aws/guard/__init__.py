"""Protects a remote service: holds, a rate limit and a circuit breaker."""
