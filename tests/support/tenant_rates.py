"""A tenant that is at its rate at an agent of a stack on moto."""

from roundsman.aws.dynamodb.tenant_rates import DynamoTenantRates, tenant_row_id
from roundsman.model.tenant_rate import tenant_key
from roundsman_testing.stack import Stack


def at_its_rate(stack: Stack, agent: str, tenant: str, order: str) -> None:
    """Note that the tenant is at its rate for the next minute, as the order shows."""
    table, key = stack.stack.outputs["ControlTableName"], tenant_key(agent, tenant)
    DynamoTenantRates(stack.dynamodb, control_table=table).note(agent, key, order)
    stack.dynamodb.update_item(
        TableName=table,
        Key={"ControlId": {"S": tenant_row_id(agent, key)}},
        UpdateExpression="SET ReturnAt = :at",
        ExpressionAttributeValues={":at": {"N": str((stack.clock() + 60_000) * 1_000)}},
    )
