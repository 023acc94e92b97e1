"""What a person or an application asks of one order: its verbs, their forms, and what is sent."""
