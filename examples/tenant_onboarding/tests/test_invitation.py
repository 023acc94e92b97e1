"""The invitation of more users, in memory."""

from collections.abc import Callable

import pytest

from functions.agents.accounts.app import accounts
from roundsman import Json
from roundsman_testing import TaskState, World
from workflows.user_invitation import user_invitation


@pytest.mark.usefixtures("world")
def test_more_users_are_invited(event: Callable[[str], dict[str, Json]]) -> None:
    world = World(user_invitation, agents=[accounts])
    order_id = world.submit(event("invitation"))
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED
    assert world.standing(order_id) == ["invite_more[0]", "invite_more[1]"]
