"""What several pages show: read once for some minutes, or remembered while the console runs."""
