"""Checks what commands print as JSON with their schemas, which the site shows to who reads it."""

import json
from functools import cache

from jsonschema import Draft202012Validator

from tools.schemas import documents, schema_of

COMMANDS = {command.replace(" ", "-"): command for command in documents()}
"""The command of each schema, by the schema's name: `bulk ls` of `bulk-ls`."""


@cache
def _validator(name: str) -> Draft202012Validator:
    assert name in COMMANDS, f"what {name} prints has no schema: add its type to tools/schemas.py"
    schema = schema_of(COMMANDS[name])
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def assert_schema(name: str, document: object) -> None:
    """The document is as the schema says that the site has as `schemas/<name>.json`."""
    # Through JSON and back: a tuple is an array there, and a value without JSON raises here.
    printed = json.loads(json.dumps(document))
    problems = [f"{one.json_path}: {one.message}" for one in _validator(name).iter_errors(printed)]
    assert not problems, f"not as schemas/{name}.json says: {'; '.join(problems)}"
