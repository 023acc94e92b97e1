"""One suite for what `roundsman.ports` promises, over memory, moto and DynamoDB Local."""
