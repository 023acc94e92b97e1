"""What an order costs and how fast it goes. `make bench` runs `__main__.py`, part by part:

units        units.py, by counting.py, which the guard in CI goes by too (guard.py)
money        money.py; prices and the reckoning are those of `roundsman cost`
growth       growth.py, with workflows of any shape (stand_ins.py)
machine      decisions.py
cold         cold.py
supervisor   passes.py
scale        scale/: plan.py is arithmetic, hot.py and rounds.py simulate, measure.py makes tables
overload     scale/overload.py
throughput   throughput.py, with the application (shop.py), SIGKILL of all workers (killing.py),
             and Step Functions beside it (step_functions.py, step_function_task.py)

What is counted runs the deployed handlers on DynamoDB Local (stack.py) under a meter (meter.py,
sizes.py); orders.py says which order. timing.py takes what functions use of a processor,
processor.py what other processes do. recording.py writes counts and times to where
`roundsman cost` reads them. report.py, plot.py and page.py make tables, drawings, and blocks of
docs/explanation/cost.md and docs/explanation/scale.md.
"""
