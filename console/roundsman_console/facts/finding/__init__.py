"""What is wrong with a deployed stack, and what was alerted and is not over.

`table` says what each kind of finding means and how to repair it. `tasks`, `queues` and `stack`
each read one part and find what is wrong with it, by pure functions; `orders` reads every row of
two tables; `doctor` makes the safe repairs; `report` is the result. `standing` has the alerts whose
cause still exists, `messages` the JSON of alerts, and `attention` what the overview shows of all.
"""
