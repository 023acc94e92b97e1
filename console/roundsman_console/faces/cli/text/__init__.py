"""What is printed about each noun."""
