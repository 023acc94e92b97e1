"""What develops an application: its commands make, check, run, compare and prove it."""
