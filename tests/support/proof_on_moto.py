"""A proof on moto: its own project, deployed in this process, and its orders until they end."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

import boto3

from roundsman_console.prove.application.orders import ProofOrder, order_id
from roundsman_console.prove.application.services import RUNS_OUT
from roundsman_console.prove.document import Circumstances, ProofDocument, SentOrder
from roundsman_console.prove.project import PACKAGE, project_files, template_hashes, write_project
from roundsman_console.prove.reading import read_document
from roundsman_console.stack.stack import DeployedStack
from roundsman_testing.stack import Clock, Killed, Stack, deployed

RUN = "prove-1a2b3c"
COPIES_OF = 10
"""Every so many orders, one is sent twice."""


@dataclass(frozen=True)
class ProofOnMoto:
    """The stack of a proof, and the clock that its services use."""

    stack: Stack
    clock: Clock

    def send(self, numbers: range) -> list[SentOrder]:
        """Send the orders with these numbers, some of them twice."""
        sent = []
        for number in numbers:
            name = order_id(RUN, number)
            copies = 2 if number % COPIES_OF == 0 else 1
            self.stack.submit(*[ProofOrder(number).event(name)] * copies)
            sent.append(SentOrder(name, self.clock(), copies))
        return sent

    def document(self, sent: list[SentOrder]) -> ProofDocument:
        """All that there is now."""
        found = DeployedStack(RUN, dict(self.stack.stack.outputs), {"DueShards": "4"})
        circumstances = Circumstances(
            run=RUN,
            region="us-east-1",
            local=True,
            version="0.1.0",
            templates=template_hashes(project_files()),
            runtime="python3.13",
            began_at=sent[0].at if sent else 0,
            ended_at=self.clock(),
            finished=True,
        )
        return read_document(found, circumstances, sent, [])


@contextmanager
def proof_on_moto(folder: Path) -> Iterator[ProofOnMoto]:
    """Deploy the project of a proof, whose services take their time by the clock of the stack."""
    write_project(folder / "proof")
    clock = Clock()
    with deployed(folder / "proof" / "template.yaml", clock=clock) as stack:
        services = import_module(f"{PACKAGE}.services")

        def sleep(seconds: float) -> None:
            if seconds >= RUNS_OUT:
                raise Killed  # Lambda ends the process
            clock.sleep(seconds)

        def leave(_: int) -> None:
            raise Killed

        @cache
        def of_agent(agent: str) -> object:
            table = stack.stack.outputs["LedgerTableName"]
            ledger = services.Ledger(boto3.client("dynamodb"), table)
            return services.Services(ledger, agent, sleep, leave)

        # Every function has the modules of its layers in common.
        import_module(f"{PACKAGE}.agents").services = of_agent  # type: ignore[attr-defined]
        try:
            yield ProofOnMoto(stack, clock)
        finally:
            for name in [one for one in sys.modules if one.partition(".")[0] == PACKAGE]:
                del sys.modules[name]
