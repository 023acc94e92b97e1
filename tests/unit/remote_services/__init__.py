"""The example's remote services, over real HTTP on loopback and at their pure core."""
