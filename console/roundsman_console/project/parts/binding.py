

@{{agent}}.performs({{step}})
def perform_{{step}}(request: StepRequest) -> Json:
    """Perform {{step}}."""
    return create(request)
