"""Chooses a function's tracer. Where tracing is off, nothing of it is imported."""

import os

from roundsman.aws.tracing import OFF, Tracer


def tracer_of(percent: float) -> Tracer:
    """The tracer of this function, for a percentage of all orders; 0 traces nothing."""
    if not percent:
        return OFF
    from roundsman.aws.xray import XRayTracer, put_segments

    service = os.environ.get("POWERTOOLS_SERVICE_NAME", "roundsman")
    return XRayTracer(service, percent, put=put_segments())
