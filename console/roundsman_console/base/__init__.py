"""What every floor above may use: errors, the clock, threads, limits, and texts made inert."""
