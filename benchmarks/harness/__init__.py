"""What the benchmarks run and count with: the stack on DynamoDB Local, its meter, and orders.

stack.py deploys the handlers, and meter.py counts their requests and units, by the sizes of
sizes.py. orders.py has the order, stand_ins.py workflows of any shape, and shop.py an application.
processor.py reads the processor time of other processes.
"""
