"""`roundsman preflight`: checks an account before a deployment.

`gather` reads the account; `checks` are pure functions of what the template needs (`PlannedStack`)
and of what the account has (`AccountFacts`).
"""
