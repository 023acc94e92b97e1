"""Acting on many orders at once: a plan, a canary, a rate, and a record of how far it came."""
