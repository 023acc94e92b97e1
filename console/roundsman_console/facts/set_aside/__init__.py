"""What was set aside: dead letters and rejected messages, read and assessed."""
