"""The simulation: all of Roundsman in memory, on a simulated clock."""
