"""What a tenant must be, and the problems that a rejected one is told."""

from collections.abc import Callable

import pytest

from roundsman import InvalidInput, Json
from roundsman_testing import World
from workflows.tenant import Tenant, User

Event = Callable[[str], dict[str, Json]]


def test_a_tenant_that_is_not_valid_is_rejected_with_each_problem_by_its_path(
    world: World, event: Event
) -> None:
    order_id = world.submit(event("invalid"))
    world.run()
    with pytest.raises(LookupError) as rejected:
        world.task(order_id)
    for path in ("country", "subdomain", "users[0].email", "users[0].role"):
        assert path in str(rejected.value)


def tenant(*users: User, plan: str = "trial") -> Tenant:
    """A tenant with these users."""
    return Tenant("Acme", "BE", "acme", "trial" if plan == "trial" else "business", users)


@pytest.mark.parametrize(
    ("users", "said"),
    [
        ((User("a@b.example"),), "exactly one owner"),
        ((User("a@b.example", "owner"), User("A@B.example")), "each e-mail address once"),
    ],
)
def test_users_have_one_owner_and_different_addresses(users: tuple[User, ...], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        tenant(*users)


def test_a_business_gives_its_vat_number() -> None:
    with pytest.raises(InvalidInput, match="vatNumber"):
        tenant(User("a@b.example", "owner"), plan="business")
