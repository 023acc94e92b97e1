"""DynamoDB in memory, for tests: the calls, conditions and errors that the stores rely on."""
