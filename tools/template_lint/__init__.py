"""Checks the templates with parliament (policies) and checkov (resources): `make template-lint`.

1. `resolve` expands an application's template to plain CloudFormation without intrinsic functions,
   once with its defaults and once with every option.
2. `linters` runs both programs on the result, in the virtual environment that has them.
3. `findings` takes out what exceptions.toml excepts, and reports what remains.
"""
