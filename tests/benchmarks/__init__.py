"""What orders ask of AWS may not rise unnoticed, and the cost model says what was counted."""
