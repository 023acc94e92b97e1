"""What a deployment of a project would change, with the clients of the account it goes to."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from roundsman_console.base.errors import ConsoleError
from roundsman_console.base.process import ProgramRunner, run_program
from roundsman_dev.changes.change_set import (
    FoundChangeSet,
    PlannedDeployment,
    execute,
    find_change_set,
    handed_on,
    make_change_set,
    read_changes,
)
from roundsman_dev.changes.engine_first import engine_first
from roundsman_dev.changes.live import LiveStack, read_live
from roundsman_dev.changes.package import package
from roundsman_dev.changes.review import Review, compare_with_live, parameter_values, reviewed
from roundsman_dev.changes.whole import StackTemplate
from roundsman_dev.check.project import AGENTS
from roundsman_dev.local.parameters import read_template
from roundsman_dev.sam import CONFIG, deploy_settings, parameter_overrides, stack_tags

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_s3 import S3Client

NOT_HANDED_ON = ("notification_arns", "image_repository", "image_repositories", "signing_profiles")
"""Settings of `sam deploy` that are not handed on here."""
_CONNECT = Config(connect_timeout=5)


@dataclass(frozen=True)
class ProjectChanges:
    """A project, the stack that it is deployed to, and the account."""

    project: Path
    stack: str
    settings: Mapping[str, object]
    """Those of `sam deploy` in samconfig.toml."""
    given: Mapping[str, str]
    """The values of parameters that are given; the others stay as they are."""
    region: str
    progress: Callable[[str], None]
    runner: ProgramRunner = run_program
    _found: dict[str, tuple[FoundChangeSet, LiveStack]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        project: Path,
        environment: str,
        given: Mapping[str, str],
        progress: Callable[[str], None],
        runner: ProgramRunner = run_program,
    ) -> "ProjectChanges":
        """Read samconfig.toml as `sam deploy --config-env ENVIRONMENT` does.

        Raises ConsoleError if it cannot be read, names no stack, or has a setting that cannot be
        handed on, or if no region is set.
        """
        settings = deploy_settings(project / CONFIG, environment)
        stack = settings.get("stack_name")
        if not isinstance(stack, str) or not stack:
            raise ConsoleError(f"{CONFIG} sets no stack_name in the environment {environment}.")
        for name in NOT_HANDED_ON:
            if settings.get(name):
                raise ConsoleError(
                    f"{CONFIG} sets {name}, which is not handed on here. Deploy with sam deploy."
                )
        region = settings.get("region") or boto3.Session().region_name
        if not isinstance(region, str) or not region:
            raise ConsoleError("No region is set: set AWS_DEFAULT_REGION, or region in samconfig.")
        values = parameter_overrides(settings, project) | dict(given)
        return cls(project, stack, settings, values, region, progress, runner)

    @property
    def _cloudformation(self) -> "CloudFormationClient":
        client: CloudFormationClient = boto3.client(
            "cloudformation", region_name=self.region, config=_CONNECT
        )
        return client

    @property
    def _s3(self) -> "S3Client":
        client: S3Client = boto3.client("s3", region_name=self.region, config=_CONNECT)
        return client

    def made(self, allowed: Collection[str]) -> Review:
        """Package the project, make a change set of it, and return what it does.

        Raises InspectorError with the reason if it cannot be packaged, or if AWS makes no change
        set, and the errors of boto3.
        """
        client = self._cloudformation
        self.progress("Reading the stack")
        live = read_live(client, self.stack)
        written = StackTemplate(read_template(self.project / "template.yaml"))
        values = parameter_values(written, live, self.given)
        packaged = package(
            self.project,
            self._s3,
            self.settings,
            values,
            region=self.region,
            runner=self.runner,
            progress=self.progress,
        )
        changes = compare_with_live(live, packaged.templates, self.given)
        names = list(packaged.templates.parameters)
        if unknown := sorted(self.given.keys() - set(names)):
            raise ConsoleError(f"template.yaml has no parameter {', '.join(unknown)}.")
        self.progress("Making the change set")
        made = make_change_set(
            client,
            PlannedDeployment(
                stack=self.stack,
                url=packaged.url,
                parameters=handed_on(names, self.given, live),
                tags=stack_tags(self.settings),
                role=str(self.settings.get("role_arn") or "") or None,
            ),
            live,
            f"roundsman-{int(time.time())}",
        )
        if made is None:
            return reviewed(self.stack, changes, ())
        if made.nested:
            changes = changes.joined(read_changes(client, made.arn))
        return replace(
            reviewed(self.stack, changes, allowed),
            change_set=made.arn,
            nested=made.nested,
            refused=made.refused,
            engine_first=engine_first(self._sources(), live.settings) if live.exists else (),
        )

    def found(self, name: str, allowed: Collection[str]) -> Review:
        """Return what a change set that was made before does, compared with the stack as it is now.

        `name` is its name or ARN. Raises NotFound if the stack has none, InspectorError if it
        cannot be carried out any more, and the errors of boto3.
        """
        client = self._cloudformation
        self.progress("Reading the change set")
        found = find_change_set(client, self._s3, self.stack, name)
        live = read_live(client, self.stack)
        changes = compare_with_live(live, found.templates, found.parameters)
        if found.nested:
            changes = changes.joined(read_changes(client, found.arn))
        self._found[found.arn] = found, live
        review = reviewed(self.stack, changes, allowed)
        return replace(review, change_set=found.arn, nested=found.nested)

    def carried_out(self, review: Review) -> Review:
        """Carry out the change set of a review of `found`, and return when the stack is as it says.

        Raises InspectorError with the first event that failed, and the errors of boto3.
        """
        found, live = self._found[str(review.change_set)]
        self.progress("Deploying the stack")
        execute(self._cloudformation, found, live)
        return replace(review, executed=True)

    def _sources(self) -> dict[str, str]:
        """The text of each module of the agents, by its path in the project."""
        return {
            path.relative_to(self.project).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted((self.project / AGENTS).rglob("*.py"))
        }
