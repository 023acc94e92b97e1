"""Records of steps for tests, by the names of the stored attributes."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from roundsman.aws.dynamodb.stored_step import StoredSituation, stored_situation
from roundsman.aws.dynamodb.stored_step import step_record as read_step
from roundsman.model.polling import Polling
from roundsman.model.task import StepRecord

_OF_SITUATION = frozenset(one.name for one in fields(StoredSituation))
_OF_WINDOW = {"retry_until": "until", "unexpected_since": "unexpected_since", "waits": "waits"}
_OF_POLLING = {"polls": "count", "polled_since": "since", "poll_until": "until"}


def step_record(**attributes: object) -> StepRecord:
    """Return the step that is stored with these attributes."""
    return changed_step(StepRecord(), **attributes)


def stored_step(record: StepRecord) -> StoredSituation:
    """Return the attributes of the step's situation as they are stored."""
    return stored_situation(record)


def changed_step(record: StepRecord, **attributes: object) -> StepRecord:
    """Return the step with other values of these stored attributes."""
    situation = _those(attributes, {name: name for name in _OF_SITUATION})
    window = _those(attributes, _OF_WINDOW)
    polling = _those(attributes, _OF_POLLING)
    apart = {*_OF_SITUATION, *_OF_WINDOW, *_OF_POLLING}
    lasting = {one.name: getattr(record, one.name) for one in fields(record)}
    del lasting["operation"], lasting["situation"]
    lasting |= {name: value for name, value in attributes.items() if name not in apart}
    lasting["retry_window"] = replace(record.retry_window, **window)
    if polling:
        lasting["polling"] = replace(record.polling or NOT_YET, **polling)
    return read_step(replace(stored_situation(record), **situation), lasting)


NOT_YET = Polling(count=1, since=0, until=0)


def _those(attributes: Mapping[str, object], names: Mapping[str, str]) -> dict[str, Any]:
    return {names[name]: value for name, value in attributes.items() if name in names}
