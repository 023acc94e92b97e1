"""Calls of tests to DynamoDB and SQS on moto, without the work that only a network needs.

A call of a test never leaves its process. Yet botocore signs it, moto makes a request of a web
server of it and reads its form, both walk through each attribute of an item, and a transaction
copies whole tables: two thirds of the processor time of the tests of the console. The short way
leaves that out. What is asked and what is answered are the same, as `test_short_way` compares.
"""

import copy
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.metadata import entry_points
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any, TypeAlias
from unittest.mock import patch
from urllib.parse import urlparse

from botocore.auth import AUTH_TYPE_MAPS
from botocore.awsrequest import AWSPreparedRequest, AWSRequest, HeadersDict
from botocore.httpsession import create_urllib3_context
from botocore.model import Shape
from botocore.parsers import BaseJSONParser as AnswerParser
from botocore.serialize import JSONSerializer
from botocore.validate import ParamValidator, ValidationErrors
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.models import DEFAULT_ACCOUNT_ID, botocore_stubber
from moto.core.parse import BaseJSONParser as RequestParser
from moto.core.parse import JSONParser
from moto.core.responses import BaseResponse
from moto.core.utils import get_service_model, unix_time, utcnow
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.table import Table
from moto.dynamodb.responses import DynamoHandler
from moto.sqs.models import Message, SQSBackend
from moto.sqs.responses import SQSResponse
from werkzeug.http import http_date

Answer: TypeAlias = tuple[int, Mapping[str, str], str | bytes]

ADDRESS = re.compile(r"https://(dynamodb|sqs)\.([a-z0-9-]+)\.amazonaws\.com/")
RESPONSES: Mapping[str, type[BaseResponse]] = {"dynamodb": DynamoHandler, "sqs": SQSResponse}

Signer: type[Any] = AUTH_TYPE_MAPS["v4"]
_sign = Signer.add_auth
_process = BotocoreStubber.process_request
_parse_asked: Callable[..., object] = RequestParser._parse_structure
# botocore's types leave out private names.
_parse_answered = AnswerParser._handle_structure  # type: ignore[attr-defined]
_serialize = JSONSerializer._serialize_type_structure  # type: ignore[attr-defined]
_validate = ParamValidator._validate_structure  # type: ignore[attr-defined]
_transact = DynamoDBBackend.transact_write_items


@contextmanager
def short_way() -> Iterator[None]:
    """Let the calls of this process go the short way."""
    with ExitStack() as changes:
        for target, new in REPLACED.items():
            changes.enter_context(patch(target, new))
        yield


def sign(self: Any, request: AWSRequest) -> None:  # noqa: ANN401  # one of two classes
    """Say who calls and in which region, without a signature, if only moto can receive it."""
    if (
        self.credentials is None
        or not botocore_stubber.enabled
        or not ADDRESS.match(str(request.url))
    ):
        _sign(self, request)
        return
    scope = f"20270115/{self._region_name}/{self._service_name}/aws4_request"
    credential = f"Credential={self.credentials.access_key}/{scope}"
    request.headers["Authorization"] = f"AWS4-HMAC-SHA256 {credential}, Signature=none"


def process_request(self: BotocoreStubber, request: AWSPreparedRequest) -> Answer | None:
    """moto's answer. A request of DynamoDB or SQS is given to its method as it is."""
    found = ADDRESS.match(request.url)
    if found is None or "X-Amz-Target" not in request.headers:
        return _process(self, request)
    service, region = found.groups()
    sent: Any = request.headers  # the values of some are bytes
    headers = HeadersDict(
        {name: each.decode() if isinstance(each, bytes) else each for name, each in sent.items()}
    )
    asked = RESPONSES[service]()
    asked.headers, asked.querystring, asked.uri_match = headers, {}, {}
    asked.body = asked.raw_body = request.body
    asked.uri, asked.parsed_url, asked.path = request.url, urlparse(request.url), "/"
    asked.region, asked.partition = region, "aws"
    asked.current_account = os.environ.get("MOTO_ACCOUNT_ID", DEFAULT_ACCOUNT_ID)
    asked.response_headers = {"server": "amazon.com", "date": http_date(utcnow())}
    operation = get_service_model(service).operation_model(asked._get_action())
    body: Any = {"body": request.body}  # nothing else of a request in JSON is read
    asked.params = JSONParser(operation).parse(body)
    return asked.call_action()


# ---- attributes ---------------------------------------------------------------------------------


def is_plain(value: object) -> bool:
    """Whether this is an attribute as DynamoDB wants it, of parts that JSON has itself."""
    if type(value) is not dict or len(value) != 1:
        return False
    [(kind, held)] = value.items()
    match kind, held:
        case (("S" | "N"), str()) | (("BOOL" | "NULL"), bool()):
            return True
        case "M", dict():
            return all(type(name) is str and is_plain(each) for name, each in held.items())
        case "L", list():
            return all(map(is_plain, held))
        case _:
            return False


def parse_asked(self: RequestParser, shape: Shape, value: object) -> object:
    """What is asked for; an attribute is what JSON has of it."""
    if shape.name == "AttributeValue" and is_plain(value):
        return value
    return _parse_asked(self, shape, value)


def parse_answered(self: AnswerParser, shape: Shape, value: object) -> object:
    """What is answered; an attribute is what JSON has of it."""
    if shape.name == "AttributeValue" and is_plain(value):
        return value
    return _parse_answered(self, shape, value)


def serialize(
    self: JSONSerializer, serialized: dict[str, object], value: object, shape: Shape, key: str
) -> None:
    """Write a structure of a request; an attribute is JSON already."""
    if shape.name == "AttributeValue" and is_plain(value):
        serialized[key] = value
    else:
        _serialize(self, serialized, value, shape, key)


def validate(
    self: ParamValidator, params: object, shape: Shape, errors: ValidationErrors, name: str
) -> None:
    """Report what is wrong with a structure; nothing is with a plain attribute."""
    if shape.name != "AttributeValue" or not is_plain(params):
        _validate(self, params, shape, errors, name)


# ---- moto's own work ----------------------------------------------------------------------------


def transact_write_items(self: DynamoDBBackend, transact_items: list[dict[str, Any]]) -> None:
    """All writes or none, without copies of whole tables: only what is updated is copied."""
    tables = {one["TableName"] for each in transact_items for one in each.values()}
    before = {name: _kept(self.tables[name]) for name in tables & self.tables.keys()}
    for each in transact_items:
        if "Update" in each and each["Update"]["TableName"] in before:
            _make_own(self.tables[each["Update"]["TableName"]], each["Update"]["Key"])
    try:
        _transact(self, transact_items)
    except Exception:
        for name, items in before.items():
            self.tables[name].items = items
        raise


def _kept(table: Table) -> defaultdict[DynamoType, Any]:
    """The items of a table as they are, which replacing one in the table does not change."""
    found: defaultdict[DynamoType, Any] = defaultdict(dict)
    held: Any  # the one item of a key, or the items by their second keys
    for key, held in table.items.items():
        found[key] = dict(held) if isinstance(held, dict) else held
    return found


def _make_own(table: Table, key: Mapping[str, Any]) -> None:
    """Replace an item, which moto will change in its place, by a copy."""
    at = DynamoType(key[table.hash_key_attr])
    if at not in table.items:
        return
    if table.range_key_attr is None:
        table.items[at] = copy.deepcopy(table.items[at])
        return
    place = DynamoType(key[table.range_key_attr])
    if place in table.items[at]:
        table.items[at][place] = copy.deepcopy(table.items[at][place])


def _deepcopy(value: object) -> object:
    """A copy; of a table, whose items `transact_write_items` has kept, its outside only."""
    if isinstance(value, Table) and value.stream_shard is None:
        return copy.copy(value)
    return copy.deepcopy(value)


def is_retained(self: SQSBackend, queue_name: str, message: Message) -> bool:
    """Whether the queue still has the message, without a look at all its other attributes."""
    retained = vars(self.get_queue(queue_name))["message_retention_period"]
    return bool(retained + vars(message)["sent_timestamp"] / 1000 > unix_time())


REPLACED: Mapping[str, object] = {
    "botocore.parsers.BaseJSONParser._handle_structure": parse_answered,
    "botocore.serialize.JSONSerializer._serialize_type_structure": serialize,
    "botocore.validate.ParamValidator._validate_structure": validate,
    f"{Signer.__module__}.{Signer.__qualname__}.add_auth": sign,
    "moto.core.botocore_stubber.BotocoreStubber.process_request": process_request,
    "moto.core.parse.BaseJSONParser._parse_structure": parse_asked,
    "moto.dynamodb.models.DynamoDBBackend.transact_write_items": transact_write_items,
    "moto.dynamodb.models.copy": SimpleNamespace(deepcopy=_deepcopy),
    "moto.sqs.models.SQSBackend.is_message_valid_based_on_retention_period": is_retained,
    # No client has a setting of its own for TLS, and none goes to a network.
    "botocore.httpsession.create_urllib3_context": cache(create_urllib3_context),
    # The metadata of all installed packages is read anew for each command.
    "roundsman_console.commands.entry_points": cache(entry_points),
}
PLAIN: Mapping[str, object] = {target: resolve_name(target) for target in REPLACED}
"""What botocore and moto do themselves."""
