"""A proof on moto: its own project, deployed in this process, and its orders until they end."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path

import boto3

from roundsman_console.aws.stack import DeployedStack
from roundsman_dev.prove.application.orders import ProofOrder, order_id
from roundsman_dev.prove.application.services import RUNS_OUT
from roundsman_dev.prove.document import Circumstances, ProofDocument, SentOrder
from roundsman_dev.prove.function_logs import FUNCTIONS, function_log
from roundsman_dev.prove.project import PACKAGE, project_files, template_hashes, write_project
from roundsman_dev.prove.reading import read_document
from roundsman_testing.stack import Clock, Killed, Stack, deployed

RUN = "prove-1a2b3c"
COPIES_OF = 10
"""Every so many orders, one is sent twice."""


@dataclass(frozen=True)
class ProofOnMoto:
    """The stack of a proof, and the clock that its services use."""

    stack: Stack
    clock: Clock
    ends: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """What Lambda would log of the functions that did not come to their end, by function."""

    def failed(self, agent: str, status: str) -> Killed:
        """Note that an agent's function failed, and return what ends it."""
        record = {"requestId": f"{agent}-{len(self.ends.get(agent, ()))}", "status": status}
        line = json.dumps({"type": "platform.report", "record": record})
        self.ends.setdefault(agent, []).append((self.clock(), line))
        return Killed()

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
        first = (circumstances.began_at, "a line")
        logs = [function_log(name, [first, *self.ends.get(name, ())]) for name in FUNCTIONS]
        return replace(read_document(found, circumstances, sent, []), logs=logs)


@contextmanager
def proof_on_moto(folder: Path) -> Iterator[ProofOnMoto]:
    """Deploy the project of a proof, whose services take their time by the clock of the stack."""
    write_project(folder / "proof")
    clock = Clock()
    with deployed(folder / "proof" / "template.yaml", clock=clock) as stack:
        services = import_module(f"{PACKAGE}.services")
        proof = ProofOnMoto(stack, clock)

        @cache
        def of_agent(agent: str) -> object:
            table = stack.stack.outputs["LedgerTableName"]
            ledger = services.EffectLedger(boto3.client("dynamodb"), table)

            def sleep(seconds: float) -> None:
                if seconds >= RUNS_OUT:
                    raise proof.failed(agent, "timeout")  # Lambda ends the process
                clock.sleep(seconds)

            def leave(_: int) -> None:
                raise proof.failed(agent, "error")

            return services.ProofServices(ledger, agent, sleep, leave)

        # Every function has the modules of its layers in common.
        import_module(f"{PACKAGE}.agents").services = of_agent  # type: ignore[attr-defined]
        try:
            yield proof
        finally:
            for name in [one for one in sys.modules if one.partition(".")[0] == PACKAGE]:
                del sys.modules[name]
