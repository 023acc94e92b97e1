"""The benchmarks: the cost and the speed of an order. `make bench` runs `__main__.py`, in parts:

units        units.py, with counting.py, which the guard in CI (guard.py) also uses
money        money.py, with the prices and the calculation of `roundsman cost`
growth       growth.py, with workflows of any shape (stand_ins.py)
machine      decisions.py
cold         cold.py
supervisor   passes.py
scale        scale/: plan.py calculates, hot.py and rounds.py simulate, measure.py makes the tables
overload     scale/overload.py
throughput   throughput.py, with an application (shop.py), SIGKILL of all workers (killing.py),
             and a comparison with Step Functions (step_functions.py, step_function_task.py)

The counts come from the deployed handlers on DynamoDB Local (stack.py) with a meter (meter.py,
sizes.py); orders.py contains the order. timing.py measures the processor time of the functions, and
processor.py that of other processes. recording.py writes the counts and times to the file that
`roundsman cost` reads. report.py, plot.py and page.py make tables, plots, and blocks of
docs/explanation/cost.md and docs/explanation/scale.md.
"""
