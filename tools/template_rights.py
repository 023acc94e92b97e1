"""Tables of the rights in the stacks, for docs/explanation/threat-model.md.

Each table is made of the templates of the engine and of an agent as they are written, with every
statement that only an option adds. A resource of an agent is named with `<Agent>` before its
logical id, since each agent has one.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from roundsman_dev.check.reading import at, items, mappings_in, of_type, queues
from roundsman_dev.template import Document, Json, mapping_of, part

AGENT = "<Agent>"
ACCOUNT = "every principal of the account"
NO_SERVICE: Document = {"BoolIfExists": {"aws:PrincipalIsAWSService": "false"}}
"""The condition of a refusal that is not about services of AWS."""
ROOT = "the root user of the account"
APPLICATIONS = "queues of applications, `STACK-reply-*`"
READS = frozenset({"BatchGetItem", "GetItem", "Query", "Scan"})
"""The actions of DynamoDB that return the contents of rows."""
_QUEUE_ARN = "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:"
_LOOKS = re.compile(
    r"(cloudformation|cloudwatch|dynamodb|lambda|scheduler|sns):(Describe|Get|List)\w+"
    r"|sqs:(GetQueueAttributes|ListQueues|ChangeMessageVisibility)"
)
"""Actions that return settings and figures, or hide a message for a time. No table has them."""
SEND = "sqs:SendMessage"
_OF_MESSAGES = frozenset({"sqs:ReceiveMessage", "sqs:DeleteMessage"})
_NAMED = frozenset(
    {
        "lambda:InvokeFunction",
        "s3:DeleteObjectVersion",
        "s3:GetObject",
        "s3:ListBucketVersions",
        "s3:PutObject",
        "secretsmanager:GetSecretValue",
        "sns:Publish",
        "ssm:GetParameter",
    }
)
"""Actions that a table names as they are."""
_LEFT_OUT = ("ec2:", "kms:", "logs:", "xray:")
"""Services of which the tables say nothing. A function writes its own log; keys are on the page."""


@dataclass(frozen=True)
class Stacks:
    """The templates of the engine and of an agent, as they are written."""

    engine: Document
    agent: Document

    def parts(self) -> tuple[tuple[Document, str], tuple[Document, str]]:
        """Return each template with what stands before the names of its resources."""
        return (self.engine, ""), (self.agent, AGENT)

    def queue_names(self) -> dict[str, str]:
        """Return the name that each queue has in AWS, by the name that the tables have for it."""
        found = {}
        for template, prefix in self.parts():
            for name, queue in queues(template).items():
                given = at(queue, "QueueName", "Fn::Sub")
                made = f"${{Stack}}-Nested-{name}-0A1B"  # as CloudFormation makes them
                found[prefix + name] = str(given or made).replace("${Name}", "Name")
        return found

    def named(self, value: Json, prefix: str) -> list[str]:
        """Return the resources that a value in a statement names, as the tables name them.

        `prefix` is that of the template in which the value is written.
        """
        match value:
            case {"Fn::Select": [int(index), {"Fn::Split": [",", {"Ref": "Engine"}]}]}:
                return self.named(self._for_agents()[index], "")
            case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), _]}:
                return [prefix + name.removesuffix(".Alias")]
            case {"Fn::Sub": str(text)} if text.startswith(_QUEUE_ARN):
                return self._queues_like(text.removeprefix(_QUEUE_ARN))
            case {"Fn::Sub": str(text)}:
                return [re.sub(r"\$\{(\w+)\.Arn\}(/index/\w+|:live|/\*)?", r"\1", text)]
            case {"Fn::Join": ["", [_, named, "/*"]]} | {"Fn::If": [_, named, ""]}:
                return self.named(named, prefix)
            case _:
                return [str(value)]

    def _for_agents(self) -> list[Json]:
        value = at(self.engine, "Outputs", "ForAgents", "Value", "Fn::Join")
        return items(items(value)[1])

    def _queues_like(self, pattern: str) -> list[str]:
        if pattern == "${Stack}-reply-*":
            return [APPLICATIONS]
        names = self.queue_names().items()
        found = [queue for queue, name in names if fnmatchcase(name, pattern)]
        if not found:
            raise ValueError(f"no queue of the stacks has a name like {pattern}")
        return found


@dataclass(frozen=True)
class Right:
    """One action on one resource that a statement allows."""

    action: str
    resource: str
    rows: tuple[str, ...] = ()
    """The partition keys that the statement is limited to; empty for all rows."""
    attributes: tuple[str, ...] = ()
    """The attributes that the statement is limited to; empty for all of a row."""


def senders(engine: Document, agent: Document) -> str:
    """Return the table of who may send to which queue."""
    stacks = Stacks(engine, agent)
    roles, people = _roles(stacks), _people(stacks)
    lines = [
        "| queue | the stack's own roles | policies for people | whom the queue refuses |",
        "| --- | --- | --- | --- |",
    ]
    for queue in (*stacks.queue_names(), APPLICATIONS):
        cells = [queue if queue == APPLICATIONS else f"`{queue}`"]
        for owners in (roles, people):
            may = [
                owner
                for owner, rights in owners.items()
                if any(one.action == SEND and one.resource == queue for one in rights)
            ]
            cells.append(_code(may) or "none")
        cells.append(_refused(stacks, queue))
        lines.append(_row(*cells))
    return "\n".join(lines)


def defaults(engine: Document, agent: Document) -> str:
    """Return the table of the parameters that limit who may send, with what their default admits.

    Raises ValueError if a parameter is not empty by default.
    """
    stacks = Stacks(engine, agent)
    found: dict[tuple[str, str, str], list[str]] = {}
    for queue in stacks.queue_names():
        for parameter, otherwise in _exceptions(stacks, queue):
            if parameter in part(engine, "Parameters"):
                template, block = engine, "`Engine`"
            else:
                template, block = agent, "an agent's"
            if not parameter or otherwise not in (ACCOUNT, ROOT):
                continue
            if at(template, "Parameters", parameter, "Default") != "":
                raise ValueError(f"{parameter} is not empty by default: say what it admits")
            found.setdefault((parameter, block, otherwise), []).append(queue)
    lines = ["| parameter | of the block | queues | empty, the default, admits |"]
    lines.append("| --- | --- | --- | --- |")
    lines += [
        _row(f"`{parameter}`", block, _code(of), f"**{admits}**" if admits == ACCOUNT else admits)
        for (parameter, block, admits), of in found.items()
    ]
    return "\n".join(lines)


def rights_of_roles(engine: Document, agent: Document) -> str:
    """Return the table of what each role of the stack may do."""
    stacks = Stacks(engine, agent)
    return _rights("role", _roles(stacks))


def rights_of_people(engine: Document, agent: Document) -> str:
    """Return the table of what each policy for people and applications allows."""
    stacks = Stacks(engine, agent)
    return _rights("policy", _people(stacks))


def _rights(what: str, owners: Mapping[str, list[Right]]) -> str:
    lines = [
        f"| {what} | reads rows of | writes rows of | receives or deletes messages of | also |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        _row(f"`{owner}`", _tables(rights, True), _tables(rights, False), *_others(rights))
        for owner, rights in owners.items()
    ]
    return "\n".join(lines)


def _tables(rights: list[Right], reads: bool) -> str:
    found: dict[tuple[str, tuple[str, ...]], dict[str, list[str]]] = {}
    for one in rights:
        service, _, action = one.action.partition(":")
        looks = action not in READS and _LOOKS.fullmatch(one.action)
        if service == "dynamodb" and not looks and (action in READS) == reads:
            rows = found.setdefault((one.resource, one.attributes), {})
            verb = action.removesuffix("Item").lower()
            for row in one.rows or ("",):
                rows.setdefault(row, []).append(verb)
    return "; ".join(
        f"{f'{_code(attributes)} of ' if attributes else ''}`{table}`{_in_rows(rows, reads)}"
        for (table, attributes), rows in found.items()
    )


def _in_rows(rows: Mapping[str, list[str]], reads: bool) -> str:
    """Return what is done to which rows of a table. A right to all rows includes the others."""
    verbs_of = {"": rows[""]} if reads and "" in rows else rows
    by_verbs: dict[str, list[str]] = {}
    for row, verbs in verbs_of.items():
        by_verbs.setdefault("" if reads else ", ".join(dict.fromkeys(verbs)), []).append(row)
    said = []
    for done, keys in by_verbs.items():
        only = f"row{'s' if len(keys) > 1 else ''} {_code(keys)}" if keys != [""] else ""
        said.append(f"{done} {only}".strip())
    return f" ({'; '.join(said)})" if any(said) else ""


def _others(rights: list[Right]) -> tuple[str, str]:
    messages: dict[str, list[str]] = {}
    also: dict[str, list[str]] = {}
    for one in rights:
        service, _, action = one.action.partition(":")
        if one.action in _OF_MESSAGES:
            messages.setdefault(one.resource, []).append(action.removesuffix("Message").lower())
        elif one.action in _NAMED:
            also.setdefault(one.action, []).append(one.resource)
        elif not (service == "dynamodb" or one.action == SEND or _LOOKS.fullmatch(one.action)):
            raise ValueError(f"the tables of rights have no place for {one.action}")
    by_verbs: dict[str, list[str]] = {}
    for queue, verbs in messages.items():
        by_verbs.setdefault(" and ".join(dict.fromkeys(verbs)), []).append(queue)
    said = "; ".join(f"{verbs} {_code(of)}" for verbs, of in by_verbs.items())
    return said, "; ".join(f"`{action}` on {_code(of)}" for action, of in also.items())


def _roles(stacks: Stacks) -> dict[str, list[Right]]:
    """Return the rights of each role, by its name, with those that other resources add to it."""
    found: dict[str, list[Right]] = {}
    for template, prefix in stacks.parts():
        for name, role in of_type(template, "AWS::IAM::Role").items():
            policies = items(at(role, "Policies"))
            policies += [
                policy
                for policy in of_type(template, "AWS::IAM::Policy").values()
                if {"Ref": name} in items(at(policy, "Roles"))
            ]
            found[prefix + name] = [
                right
                for policy in policies
                for right in _allowed(stacks, at(policy, "PolicyDocument"), prefix)
            ]
    return found


def _people(stacks: Stacks) -> dict[str, list[Right]]:
    """Return the rights that each policy for people and applications gives, by its name."""
    return {
        prefix + name: list(_allowed(stacks, at(policy, "PolicyDocument"), prefix))
        for template, prefix in stacks.parts()
        for name, policy in of_type(template, "AWS::IAM::ManagedPolicy").items()
    }


def _allowed(stacks: Stacks, document: Json, prefix: str) -> Iterator[Right]:
    for statement in _statements(document):
        if statement.get("Effect") != "Allow":
            continue
        rows = _tested(statement, "dynamodb:LeadingKeys")
        attributes = _tested(statement, "dynamodb:Attributes")
        for action in map(str, items(statement.get("Action"))):
            if not action.startswith(_LEFT_OUT):
                for resource in items(statement.get("Resource")):
                    for name in stacks.named(resource, prefix):
                        yield Right(action, name, rows, attributes)


def _statements(document: Json) -> Iterator[Document]:
    """Yield the statements of a policy, also those that depend on a condition."""
    for statement in mappings_in(at(document, "Statement")):
        branches = statement.get("Fn::If")
        if isinstance(branches, list):
            yield from (one for one in mappings_in(branches) if "Effect" in one)
        else:
            yield statement


def _tested(statement: Document, name: str) -> tuple[str, ...]:
    """Return the values that the conditions of a statement allow for this key of IAM."""
    keys = [
        key
        for tests in mappings_in(list(mapping_of(statement.get("Condition") or {}).values()))
        for key in items(tests.get(name))
    ]
    return tuple(str(at(key, "Fn::Sub") or key).replace("${Agent}", AGENT) for key in keys)


def _refused(stacks: Stacks, queue: str) -> str:
    if queue == APPLICATIONS:
        return "as its owner says"
    known = [
        f"`{parameter}` (empty: {otherwise})" if parameter else f"`{otherwise}`"
        for parameter, otherwise in _exceptions(stacks, queue)
    ]
    said = [f"all but {', '.join(known)}" if known else "nobody"]
    for statement, _ in _about_senders(stacks, queue, "Allow"):
        said.append(f"it allows {_admitted(statement, queue)}")
    return "; ".join(said)


def _exceptions(stacks: Stacks, queue: str) -> Iterator[tuple[str, str]]:
    """Yield whom a queue does not refuse: a parameter with what it is if empty, or "" and a role.

    Yields nothing if the queue refuses nobody. Raises ValueError if its policy has another form, of
    which the table could not tell the truth.
    """
    for statement, prefix in _about_senders(stacks, queue, "Deny"):
        if _is_about_the_account_of_buckets(statement):
            continue  # those of this account are all that is allowed
        yield from (_exception(one, prefix) for one in _excepted(statement, queue))


def _about_senders(stacks: Stacks, queue: str, effect: str) -> Iterator[tuple[Document, str]]:
    """Yield the statements of a queue's policy with this effect, but not the one about TLS."""
    for template, prefix in stacks.parts():
        for policy in of_type(template, "AWS::SQS::QueuePolicy").values():
            about = [prefix + str(at(one, "Ref")) for one in items(at(policy, "Queues"))]
            if queue in about:
                for statement in _statements(at(policy, "PolicyDocument")):
                    if statement.get("Effect") == effect and not _is_about_tls(statement):
                        yield statement, prefix


def _is_about_tls(statement: Document) -> bool:
    return statement.get("Condition") == {"Bool": {"aws:SecureTransport": "false"}}


def _is_about_the_account_of_buckets(statement: Document) -> bool:
    return statement.get("Principal") == {"Service": "s3.amazonaws.com"} and statement.get(
        "Condition"
    ) == {"StringNotEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def _admitted(statement: Document, queue: str) -> str:
    """Return what a statement allows in words: the parameter that names it, and of which account.

    Raises ValueError if the statement has another form, of which the table could not tell.
    """
    match statement:
        case {
            "Action": "sqs:SendMessage",
            "Condition": {
                "ArnLike": {"aws:PrincipalArn": {"Fn::Split": [",", {"Ref": str(parameter)}]}}
            },
        }:
            return f"`{parameter}`, of any account"
        case {
            "Action": "sqs:SendMessage",
            "Principal": {"Service": list(services)},
            "Condition": {
                "ArnLike": {"aws:SourceArn": {"Fn::Split": [",", {"Ref": str(parameter)}]}},
                "ArnEquals": {"aws:SourceArn": list()},
                "StringEqualsIfExists": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}},
            },
        }:
            return f"`{parameter}` of this account by {_code(map(str, services))}"
        case _:
            raise ValueError(f"{queue} allows something of which the table cannot tell")


def _excepted(statement: Document, queue: str) -> list[Json]:
    match statement:
        case {
            "Action": "sqs:SendMessage",
            "Principal": "*",
            "Condition": {
                "ArnNotLike": {
                    "aws:PrincipalArn": {"Fn::Split": [",", {"Fn::Join": [",", list(found)]}]}
                },
                **others,
            },
        } if others in ({}, NO_SERVICE):
            return found
        case _:
            raise ValueError(f"{queue} refuses something of which the table cannot tell")


def _exception(value: Json, prefix: str) -> tuple[str, str]:
    match value:
        case {"Fn::If": [_, {"Ref": str(parameter)}, {"Fn::Sub": str(arn)}]}:
            if arn == "arn:${AWS::Partition}:*::${AWS::AccountId}:*":
                return parameter, ACCOUNT
            if arn == "arn:${AWS::Partition}:iam::${AWS::AccountId}:root":
                return parameter, ROOT
            raise ValueError(f"{parameter}, if empty, admits {arn}: name it here")
        case {"Fn::If": [_, {"Fn::GetAtt": [str(role), _]}, _]} | {"Fn::GetAtt": [str(role), _]}:
            return "", prefix + role
        case _:
            raise ValueError(f"a queue takes messages of {value}, of which the table cannot tell")


def _code(names: Iterable[str]) -> str:
    return ", ".join(one if one == APPLICATIONS else f"`{one}`" for one in names)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
