"""`roundsman doctor`: finds what is stuck, lost or switched off in a deployed stack.

`tasks`, `queues` and `stack` each read one part and find what is wrong with it, by pure functions;
`orders` reads every row of two tables; `catalog` says what each kind of finding means and how to
repair it; `doctor` makes the safe repairs; `report` is the result.
"""
