"""The whole on moto: the real template's queues and tables, the real functions, real services."""
