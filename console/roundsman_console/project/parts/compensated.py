

@{{agent}}.compensates({{step}})
def undo_{{step}}(request: StepRequest) -> None:
    """Undo {{step}}."""
    delete(request)
