"""What the parameters of an agent's block give its role and its function for its service."""

from dataclasses import replace

import pytest

from roundsman_dev.check import RULES, Application
from roundsman_dev.check.reading import (
    at,
    chosen,
    functions,
)
from roundsman_dev.template import Document
from tests.project import TEMPLATE, translate
from tests.support.template_reading import (
    NO_VALUE,
    allowed_to,
    environment,
    roles,
    services_granted,
)
from tests.template.example.services import GIVEN, KEY, SECRET
from workflows.registry import WORKFLOWS

OPTIONAL = {"secretsmanager", "ssm", "ec2"}


@pytest.fixture(scope="module")
def document(session_without_real_aws: None) -> Document:
    return translate(GIVEN)


def by_sid(template: Document, role: str) -> dict[str, Document]:
    return {str(statement["Sid"]): statement for statement in allowed_to(template, role)}


def test_no_role_has_rights_for_what_its_block_does_not_ask_for() -> None:
    template = translate()
    assert not [role for role in roles(template) if services_granted(template, role) & OPTIONAL]
    networks = [chosen(template, at(one, "VpcConfig")) for one in functions(template).values()]
    assert all(network in (None, NO_VALUE) for network in networks)


def test_only_the_agent_of_a_block_gets_its_rights(document: Document) -> None:
    assert services_granted(document, "PaymentRole") >= OPTIONAL
    others = set(roles(document)) - {"PaymentRole"}
    assert not [role for role in others if services_granted(document, role) & OPTIONAL]


def test_an_agent_may_read_its_credential_and_decrypt_it_by_the_stores_alone(
    document: Document,
) -> None:
    found = by_sid(document, "PaymentRole")
    assert found["ReadsItsCredential"]["Resource"] == SECRET
    assert found["DecryptsItsCredential"]["Resource"] == KEY
    region = {"Fn::Select": [3, {"Fn::Split": [":", KEY]}]}
    via = at(found["DecryptsItsCredential"], "Condition", "StringEquals", "kms:ViaService")
    assert via == [
        {"Fn::Join": [".", [store, region, "amazonaws.com"]]} for store in ("secretsmanager", "ssm")
    ]
    variables = environment(document, "PaymentFunction")
    assert (variables["CREDENTIAL"], variables["SERVICE_CA"]) == (SECRET, "certificates/ca.pem")


def test_a_function_in_a_vpc_is_in_its_subnets_and_groups(document: Document) -> None:
    network = chosen(document, at(functions(document)["PaymentFunction"], "VpcConfig"))
    assert network == {
        "SubnetIds": {"Fn::Split": [",", "subnet-0a1b2c3d,subnet-1a2b3c4d"]},
        "SecurityGroupIds": {"Fn::Split": [",", "sg-0a1b2c3d"]},
    }


def test_an_application_with_all_of_it_keeps_every_rule(document: Document) -> None:
    application = Application.read(TEMPLATE, WORKFLOWS.values())
    larger = replace(application, template=document)
    assert [problem for rule in RULES for problem in rule(larger)] == []
