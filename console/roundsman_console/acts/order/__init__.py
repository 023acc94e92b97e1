"""What a person or an application asks of one order, and what is sent."""
