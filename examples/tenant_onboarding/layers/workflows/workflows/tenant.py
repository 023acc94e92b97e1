"""The input of the workflows: a tenant of the platform, and its users."""

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Literal

from roundsman import InvalidInput, Items, Masked, Pattern, Problem, Range, Text

MOST_USERS = 50

Email = Annotated[
    str,
    Pattern(r"[^@\s]{1,64}@[^@\s]{1,190}", "an e-mail address, such as ada@acme.example"),
    Masked(),
]


@dataclass(frozen=True)
class User:
    """A person who is invited."""

    email: Email
    role: Literal["owner", "member"] = "member"
    name: Annotated[str, Text(200), Masked()] | None = None


@dataclass(frozen=True)
class Database:
    """What the database of the tenant must be."""

    region: Literal["eu", "us"] = "eu"
    gigabytes: Annotated[int, Range(10, 2_000)] = 10


@dataclass(frozen=True)
class Tenant:
    """A company that becomes a tenant."""

    company: Annotated[str, Text(200)]
    country: Annotated[str, Pattern("[A-Z]{2}", "two capital letters (ISO 3166), such as BE")]
    subdomain: Annotated[
        str, Pattern("[a-z][a-z0-9-]{1,61}[a-z0-9]", "3 to 63 of a-z, 0-9 and -, such as acme")
    ]
    plan: Literal["trial", "business"]
    users: Annotated[tuple[User, ...], Items(MOST_USERS, least=1)]
    vatNumber: Annotated[str, Text(20), Masked()] | None = None
    database: Database = Database()

    def __post_init__(self) -> None:
        """Check what several fields must be together."""
        problems = problems_of_users(self.users)
        if sum(user.role == "owner" for user in self.users) != 1:
            problems.append(Problem("users", "must have exactly one owner"))
        if self.plan == "business" and self.vatNumber is None:
            problems.append(Problem("vatNumber", "must be given for the plan business"))
        if problems:
            raise InvalidInput(problems)

    @property
    def owner(self) -> User:
        """The user who manages the others."""
        return next(user for user in self.users if user.role == "owner")


def problems_of_users(users: tuple[User, ...]) -> list[Problem]:
    """The problems of a list of users as a whole."""
    times = Counter(user.email.lower() for user in users)
    if max(times.values(), default=0) > 1:
        return [Problem("users", "must have each e-mail address once")]
    return []
