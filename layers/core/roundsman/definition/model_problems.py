"""The sentence about each kind of error that pydantic finds. No sentence quotes a value.

Pydantic's own messages may: the text of an exception, an unknown tag of a union, a character of a
UUID. So a sentence is made of the error's type and of what its model says, such as a bound. The
error types are those of `pydantic_core.core_schema.ErrorType`, and others that authors define.
"""

import re
from collections.abc import Mapping

NO_OBJECT = "must be an object"
_LIST = "must be a list"
_TEXT = "must be text"
_WHOLE = "must be a whole number"
_NUMBER = "must be a number"
_TRUTH = "must be true or false"
_DATE = "must be a date such as 2026-12-01"
_TIME = "must be a time such as 09:30:00"
_INSTANT = "must be a date and time such as 2026-12-01T09:00:00Z"
_DURATION = "must be a duration such as PT1H30M"
_URL = "must be a URL"
_UUID = "must be a UUID"

_SENTENCES: Mapping[str, str] = {
    "missing": "missing",
    "extra_forbidden": "unknown field",
    "invalid_key": "the keys of an object are text",
    "model_type": NO_OBJECT,
    "model_attributes_type": NO_OBJECT,
    "dataclass_type": NO_OBJECT,
    "dict_type": NO_OBJECT,
    "mapping_type": NO_OBJECT,
    "list_type": _LIST,
    "tuple_type": _LIST,
    "set_type": _LIST,
    "frozen_set_type": _LIST,
    "iterable_type": _LIST,
    "too_short": "must have a length of at least {min_length}",
    "too_long": "must have a length of at most {max_length}",
    "string_type": _TEXT,
    "string_sub_type": _TEXT,
    "string_unicode": _TEXT,
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "string_not_ascii": "must have ASCII characters only",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "none_required": "must be null",
    "bool_type": _TRUTH,
    "bool_parsing": _TRUTH,
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_parsing_size": _WHOLE,
    "int_from_float": _WHOLE,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": _NUMBER,
    "decimal_type": _NUMBER,
    "decimal_parsing": _NUMBER,
    "decimal_max_digits": "must have at most {max_digits} digits",
    "decimal_max_places": "must have at most {decimal_places} digits after the point",
    "decimal_whole_digits": "must have at most {whole_digits} digits before the point",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "bytes_type": _TEXT,
    "bytes_too_short": "must have at least {min_length} bytes",
    "bytes_too_long": "must have at most {max_length} bytes",
    "bytes_invalid_encoding": "must be {encoding}",
    "date_type": _DATE,
    "date_parsing": _DATE,
    "date_from_datetime_parsing": _DATE,
    "date_from_datetime_inexact": _DATE,
    "date_past": "must be in the past",
    "date_future": "must be in the future",
    "time_type": _TIME,
    "time_parsing": _TIME,
    "datetime_type": _INSTANT,
    "datetime_parsing": _INSTANT,
    "datetime_object_invalid": _INSTANT,
    "datetime_from_date_parsing": _INSTANT,
    "datetime_past": "must be in the past",
    "datetime_future": "must be in the future",
    "timezone_naive": "must have no offset from UTC",
    "timezone_aware": "must include its offset from UTC",
    "timezone_offset": "must have the offset of {tz_expected} s from UTC",
    "time_delta_type": _DURATION,
    "time_delta_parsing": _DURATION,
    "url_type": _URL,
    "url_parsing": _URL,
    "url_syntax_violation": _URL,
    "url_too_long": "must have at most {max_length} characters",
    "url_scheme": "must be a URL that begins with {expected_schemes}",
    "uuid_type": _UUID,
    "uuid_parsing": _UUID,
    "uuid_version": "must be a UUID of version {expected_version}",
    "json_type": "must be text that is JSON",
    "json_invalid": "must be text that is JSON",
    "union_tag_invalid": "must have {discriminator}, which must be one of {expected_tags}",
    "union_tag_not_found": "must have {discriminator}, which says of which kind it is",
}
_PLAIN_TYPE = re.compile("[a-z][a-z0-9_]{0,63}")
_UNTYPED = frozenset({"value_error", "assertion_error"})
"""The types of exceptions of validators, whose text may be anything."""


def sentence_of(error: Mapping[str, object]) -> str:
    """Return what is wrong, from one item of `ValidationError.errors()`."""
    name, context = str(error["type"]), error.get("ctx")
    if error.get("input", "") is None and name.endswith("_type"):
        return "must not be null"
    try:
        return _SENTENCES[name].format_map(context if isinstance(context, Mapping) else {})
    except KeyError:  # an error that authors define, and the name says which
        is_known = name not in _UNTYPED and _PLAIN_TYPE.fullmatch(name)
        return f"is not valid: {name}" if is_known else "is not valid"
