"""Who may use the console: doors for one browser and for a team, and the session behind them."""
