"""User invitation: more users for a tenant that is onboarded."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from roundsman import Archive, Compensation, InvalidInput, Items, Step, Text, Workflow
from workflows.tenant import MOST_USERS, User, problems_of_users


@dataclass(frozen=True)
class Invitation:
    """The users that a tenant invites."""

    tenant: Annotated[str, Text(128)]
    """The order id of its onboarding."""
    users: Annotated[tuple[User, ...], Items(MOST_USERS, least=1)]

    def __post_init__(self) -> None:
        """Check the users as a whole."""
        if problems := problems_of_users(self.users):
            raise InvalidInput(problems)


invite_more = Step(
    name="invite_more",
    agent="accounts",
    for_each="input.users",
    tolerate=3,
    complete_within=timedelta(seconds=30),
    compensation=Compensation(fences_late_performs=True),
)

user_invitation = Workflow(
    name="user_invitation",
    input=Invitation,
    steps=(invite_more,),
    complete_within=timedelta(hours=2),
    on_failure=Archive(),
    retain_for=timedelta(days=7),
)
