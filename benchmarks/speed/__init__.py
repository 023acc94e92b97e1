"""Measures times: of this machine, of its local AWS, and by a model of AWS."""
