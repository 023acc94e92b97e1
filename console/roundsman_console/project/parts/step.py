{{step}} = Step(
    name="{{step}}",
    agent="{{agent}}",{{after}}
    complete_within=timedelta(seconds=30),{{compensation}}
)
