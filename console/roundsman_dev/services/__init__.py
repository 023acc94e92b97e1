"""Stand-ins for the remote services of an application's agents."""
