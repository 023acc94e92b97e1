"""What verbs print as JSON, held against docs/schemas, where scripts look up what they may read."""

import json
from functools import cache
from pathlib import Path

from jsonschema import Draft202012Validator

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"


@cache
def _validator(name: str) -> Draft202012Validator:
    path = SCHEMAS / f"{name}.json"
    assert path.is_file(), f"what {name} prints has no schema: add its type to tools/schemas.py"
    schema = json.loads(path.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def assert_schema(name: str, document: object) -> None:
    """The document is as docs/schemas/<name>.json says: `ls`, `rejected-ls`."""
    # Through JSON and back: a tuple is an array there, and what JSON cannot hold is told here.
    printed = json.loads(json.dumps(document))
    problems = [f"{one.json_path}: {one.message}" for one in _validator(name).iter_errors(printed)]
    assert not problems, f"not as docs/schemas/{name}.json says: {'; '.join(problems)}"
