"""The supervisor: finds what is overdue, has the engine decide, and moves it on."""
