"""The benchmarks: the cost and the speed of an order. `make bench` runs `__main__.py`, in parts:

units        cost/units.py, with cost/counting.py, which the guard in CI (cost/guard.py) also uses
money        cost/money.py, with the prices and the calculation of `roundsman cost`
growth       cost/growth.py
added        cost/added.py
cold         speed/cold.py
scale        scale/: plan.py calculates, measure.py makes the tables
latency      speed/latency.py
throughput   speed/throughput.py, and a comparison with Step Functions (speed/step_functions.py,
             speed/step_function_task.py)

harness/ is what they run and count with. cost/recording.py writes the counts, and the processor
times of speed/timing.py, to the file that `roundsman cost` reads. report.py and page.py make
tables, and blocks of pages in docs/explanation.
"""
