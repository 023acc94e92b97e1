"""Random worlds in which everything happens that a planted fault may need to be noticed.

Orders with and without many lines, a step of two agents, keys that their service forgets, steps
that add others or what they may not add, a scheduler that is behind, an agent with a rate limit,
one on hold, commands, an order that is corrected and begun again, orders that are erased, orders
that are archived, and a bulk run over those. Orders are found by a field. In every second world
orders are kept for a month, else for ever. In every fifth world orders sleep and are polled, in
another fifth they wait for signals, and in another parts of completed orders are taken back. In
every tenth world results are too long, and a person gives those that orders wait for. In two of 25
worlds orders have payloads. All of it is drawn from the seed.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from random import Random

from roundsman import (
    Archive,
    Compensation,
    Done,
    Json,
    Limit,
    NamedStep,
    Retry,
    Signal,
    Sleep,
    Step,
    StepRequest,
    Undo,
    Workflow,
)
from roundsman.agents.agent import Agent
from roundsman.engine.effects import depend_on
from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.bulk_run import PlannedOrder, RequestAction, Run, RunRequest, Terms
from roundsman.model.events import CommandSource, Resubmit
from roundsman.model.payloads import order_of
from roundsman.model.record_limits import LARGEST_RESULT
from roundsman.model.states import TaskState
from roundsman_testing import Capacity, Circuit, Mishaps, World, eventbridge_event
from roundsman_testing.world.capacity import SCHEDULER

SOON = Retry(max_attempts=3, first_delay=timedelta(seconds=2))
PATIENT = Retry(
    max_attempts=2, first_delay=timedelta(seconds=4), keep_trying_for=timedelta(minutes=20)
)
UNDONE = Compensation(fences_late_performs=True, retry=Retry(max_attempts=20))
HALF_A_MINUTE = timedelta(seconds=30)

reserve = Step(
    name="reserve", agent="stock", complete_within=HALF_A_MINUTE, retry=SOON, compensation=UNDONE
)
charge = Step(
    name="charge",
    agent="payment",
    after=(reserve,),
    complete_within=HALF_A_MINUTE,
    retry=PATIENT,
    compensation=UNDONE,
)
pick = Step(
    name="pick",
    agent="stock",
    after=(reserve,),
    complete_within=HALF_A_MINUTE,
    retry=SOON,
    for_each="input.lines",
    compensation=UNDONE,
)
wrap = Step(
    name="wrap",
    agents=("desk", "press"),
    after=(reserve,),
    complete_within=HALF_A_MINUTE,
    retry=SOON,
    compensation=UNDONE,
)
mail = Step(
    name="mail",
    agent="post",
    after=(charge, pick),
    complete_within=HALF_A_MINUTE,
    retry=Retry(max_attempts=2, first_delay=timedelta(seconds=2)),
    on_failure=Archive(),
)
gift = Step(
    name="gift", agent="stock", complete_within=HALF_A_MINUTE, retry=SOON, compensation=UNDONE
)
WORKFLOW = Workflow(
    name="random",
    steps=(reserve, charge, pick, wrap, mail),
    may_add=(gift,),
    most_added=4,
    complete_within=timedelta(hours=1),
    on_failure=Undo(),
    retain_for=timedelta(days=1),
    search=("input.email",),
)
FORGETFUL = replace(
    WORKFLOW,
    steps=(
        *(reserve, charge),
        replace(pick, key_lifetime=timedelta(minutes=5)),
        replace(wrap, compensation=replace(UNDONE, key_lifetime=timedelta(minutes=5))),
        replace(
            mail,
            after=("charge", "pick"),
            key_lifetime=timedelta(minutes=5),
            probe_outlives_key=True,
        ),
    ),
)
"""The workflow of every fourth world: services forget keys after five minutes."""

rest = Sleep(name="rest", for_=timedelta(minutes=2), after=(reserve,))
WAITING = replace(
    WORKFLOW, steps=(reserve, charge, pick, wrap, rest, replace(mail, after=(charge, pick, rest)))
)
"""The workflow of every fifth world: an order sleeps before its mail."""

deposit = Signal("paid", name="deposit", within=timedelta(minutes=30), after=(reserve,))
balance = Signal("paid", name="balance", within=timedelta(minutes=30), after=(reserve,))
checked = Signal("checked", within=timedelta(minutes=30), after=(charge,))
PAYING = replace(
    WORKFLOW,
    steps=(
        *(reserve, charge, pick, wrap, deposit, balance, checked),
        replace(mail, after=(pick, deposit, balance, checked)),
    ),
)
"""The workflow of every fifth world: an order waits for signals, of which two have one name."""

LIMITED = replace(WORKFLOW, limit=Limit(by="input.shop", at_once=2))
"""The workflow of every eleventh world: two orders of a shop are under way at once."""

MISHAPS = Mishaps.some(0.02).but(repeats=0.1, delays=0.1, troubles=0.15, refusals=0.01)

FEW = Capacity(instances=1, takes=timedelta(seconds=1), batch=10)
"""What the scheduler does at once in every fifth world."""

MANY = 10
"""So many lines that the settled steps of an order get a row of their own."""

BOX = gift.named("box", input={"size": 1})
RIBBON = gift.named("ribbon", input={"long": True}, after=(BOX,))
CARD = gift.named("card", input="Happy birthday")
WRONG: tuple[tuple[NamedStep, ...], ...] = (
    (BOX, charge.named("again")),
    (BOX, gift.named("box", input={"size": 2})),
    (RIBBON, gift.named("box", input={"size": 1}, after=(RIBBON,))),
    (BOX, gift.named("ribbon", after=("nowhere",))),
    (BOX, gift.named("ribbon", after=(mail,))),
    tuple(gift.named(f"box-{number}") for number in range(5)),
)
"""Steps of one reply of which some cannot be added."""

BULK_RUN, STARTER = "b-00000001", "AROAOPERATOR:amy"
ON_REQUEST = CommandSource(BULK_RUN, "amy", "mail is back")


class RandomWorld:
    """One world and its story."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(f"story {seed}")  # noqa: S311  # it must be repeatable
        self.waits = seed % 5 == 3
        # Drawn from seeds of their own, so that these choices change no other world.
        self.pays = Random(f"signals {seed}") if seed % 5 == 2 else None  # noqa: S311  # it must be repeatable
        self.takes_back = Random(f"parts {seed}") if seed % 5 == 0 else None  # noqa: S311  # it must be repeatable
        usual = FORGETFUL if seed % 4 == 3 else WORKFLOW
        self.limited = seed % 11 == 7
        self.tenants = seed % 25 in (13, 22)
        self.scans = seed % 25 in (16, 23)
        self.world = World(
            LIMITED
            if self.limited
            else WAITING
            if self.waits
            else PAYING
            if self.pays is not None
            else usual,
            agents=[self._stock()],
            seed=seed,
            mishaps=MISHAPS,
            circuits={"stock": Circuit(calls_per_second=5, tenant_calls_per_second=0.1)}
            if self.tenants
            else {"stock": Circuit(calls_per_second=5)},
            capacity={SCHEDULER: FEW} if seed % 5 == 4 else {},
            order_retention=timedelta(days=30) if seed % 2 else None,
            sources=("arn:aws:events:us-east-1:123456789012:rule/paid",),
        )
        self.lengthy = seed % 10 == 4
        self.orders: list[str] = []
        self.holds_all = seed % 5 == 1  # it is long: bulk runs have fewer failures after it

    def run(self) -> None:
        """Run the story to its end. Raises InvariantBroken."""
        world = self.world
        world.on("mail").fails(times=12)
        world.on("mail").refuses("NoAddress", times=12)
        for step in ("reserve", "charge"):
            world.on(step).fails(times=self.chance.choice((6, 12)))
        if self.waits:
            world.on("charge").is_not_done(timedelta(seconds=20), timedelta(minutes=5), times=20)
        for number in range(9):
            self._submit(number)
        world.run(for_=timedelta(seconds=self.chance.choice((1, 3, 20))))
        for order in self._that_are(TaskState.RETRY):
            world.operator.run_now(order)
        world.hold("payment", timedelta(minutes=4), "by chance")
        world.run(for_=timedelta(minutes=6))
        self._signal_some()
        if self.holds_all:
            world.hold_all(timedelta(minutes=5), "by chance", undos=self.chance.random() < 0.5)
        self._submit(9)
        self._commands()
        world.run(for_=timedelta(minutes=10))
        self._signal_some()
        self._take_back_some()
        self._begin_bulk_run()
        world.run(for_=timedelta(minutes=8))
        self._signal_some()
        self._begin_again()
        self._end()
        for _ in range(2):
            self._take_back_some()
            self._end()
        self._erase()
        self._end()
        self._check_payloads()

    def _stock(self) -> Agent:
        stock = Agent("stock")
        chance = self.chance

        wrong: set[str] = set()

        @stock.performs(reserve)
        def reserved(request: StepRequest) -> Done:
            by: dict[str, Json] = {"by": f"clerk-{request.task_id}@shop.example"}
            if self.scans:
                with request.open(request.input["scan"]) as scan:
                    by["text"] = request.upload(scan.read()[::-1])
            number = sum(map(ord, request.task_id))
            if number % 3 == 0:
                return Done(by)
            if number % 3 == 1 and request.task_id not in wrong:  # it is repaired then
                wrong.add(request.task_id)
                return Done(by, then=WRONG[number // 3 % len(WRONG)])
            return Done(by, then=(BOX, RIBBON))

        @stock.performs(gift)
        def gave(request: StepRequest) -> Done:
            gave = "x" * LARGEST_RESULT if self.lengthy else "gave"
            return Done(gave, then=() if request.step == CARD.name else (CARD,))

        @stock.performs(pick)
        def picked(request: StepRequest) -> Mapping[str, Json]:
            shelf = f"shelf {chance.randbytes(90).hex()}"
            if self.lengthy and request.index == 0:
                shelf += "x" * LARGEST_RESULT
            return {"shelf": shelf, "index": request.index}

        @stock.compensates(reserve)
        @stock.compensates(gift)
        @stock.compensates(pick)
        def put_back(_: StepRequest) -> None:
            return None

        return stock

    def _submit(self, number: int) -> None:
        lines = MANY if number < 2 else self.chance.randint(0, 2)
        order: dict[str, Json] = {
            "email": f"customer-{number}@mail.example",
            "lines": [{"sku": f"line {n}"} for n in range(lines)],
        }
        if self.limited:
            order["shop"] = f"shop-{number % 2}"
        tenant = f"shop-{number % 3}" if self.tenants and number % 3 else None
        options = ProcessingOptions(reply_to="https://queue.example/replies", tenant=tenant)
        if self.pays is not None:
            order["orderId"] = f"paid-{number}"
            if self.pays.random() < 0.3:
                self._signal(self.pays, f"paid-{number}")
        if self.scans:
            order["orderId"] = f"scanned-{number}"
            order["scan"] = self.world.upload(f"scanned-{number}", b"a page of %d" % number)
        self.orders.append(self.world.submit(order, options=options))

    def _signal_some(self) -> None:
        """Send signals to some orders: early, late, too many, again, or never."""
        chance = self.pays
        if chance is None:
            return
        for order in 3 * self.orders[1:]:
            if chance.random() < 0.4:
                self._signal(chance, order)

    def _signal(self, chance: Random, order: str) -> None:
        name, number = chance.choice(("paid", "paid", "checked")), chance.randint(1, 3)
        data: Json = {"amount": number, "card": f"card-{number}@bank.example"}
        if number > 1:
            self.world.signal(order, name, data, signal_id=f"{name}-{number}")
            return
        # A bank says it on a bus, whose rule sends it.
        signal: Json = {"name": name, "id": f"{name}-{number}", "data": data}
        detail = {"orderId": order, "signal": signal}
        self.world.send(eventbridge_event(detail, source="bank", detail_type="Paid"))

    def _take_back_some(self) -> None:
        """Take back one or two steps of some completed orders, mostly with what depends on them."""
        chance, world = self.takes_back, self.world
        if chance is None:
            return
        for order in self._that_are(TaskState.COMPLETED):
            task = world.task(order)
            plan = world.processes.plans.plan(task.plan)
            named = chance.sample([*task.steps], chance.choice((1, 1, 2)))
            if plan is not None and chance.random() < 0.7:
                named += depend_on(plan.for_task(task), task.steps, named)
            world.operator.undo(order, *named)

    def _commands(self) -> None:
        """People act on some orders."""
        world, operator = self.world, self.world.operator
        taken = [order for order in self.orders if order in world.processes.watch.tasks]
        for order in taken[:2]:
            operator.cancel(order)
        for order in taken[2:3]:
            operator.undo(order)
        for order in self.chance.sample(taken, 3):
            operator.extend(order, timedelta(minutes=5))

    def _that_are(self, state: TaskState) -> list[str]:
        tasks = self.world.processes.watch.tasks
        known = (order for order in self.orders if order in tasks)
        return [order for order in known if tasks[order].state is state]

    def _begin_again(self) -> None:
        """Begin one of the cancelled orders again."""
        for order in self._that_are(TaskState.CANCELLED)[:1]:
            again = {"email": "somebody-else@mail.example"}
            self.world.operator.resubmit(order, again=True, sets=again)

    def _begin_bulk_run(self) -> None:
        """Begin again what is archived; the mail may still be refused."""
        world, orders = self.world, self._that_are(TaskState.ARCHIVED)
        world.on("mail").is_up()
        if orders and self.chance.random() < 0.5:
            world.on("mail").refuses("NoAddress", times=2)
        for order in [one for one in orders if "mail" in world.task(one).steps][-1:]:
            world.operator.resolve(order, "mail", did=False)
        terms = Terms(canary=2, rate=0.5, at_once=4)
        event = Resubmit(ON_REQUEST)
        run = Run(BULK_RUN, event, "amy", STARTER, "", "", world.now, len(orders), terms)
        world.processes.bulk_runs.begin(run, [PlannedOrder(order) for order in orders])
        if self.chance.random() < 0.3:
            world.run(for_=timedelta(seconds=70))
            asked = RunRequest(RequestAction.PAUSE, "amy", STARTER, "by chance", world.now)
            world.processes.bulk_runs.ask(BULK_RUN, asked, seen=0)

    def _erase(self) -> None:
        """Erase all that ended well or was undone."""
        for order in self.orders:
            if self.world.task(order).state is not TaskState.ARCHIVED:
                self.world.operator.erase(order, "request 17")

    def _check_payloads(self) -> None:
        """Only archived orders, whose repair needs them, have payloads then."""
        stored = {order_of(key) for key in self.world.processes.payloads.objects}
        kept = self._that_are(TaskState.ARCHIVED) if self.scans else []
        assert stored == {*kept}, f"payloads of {stored}, not of {kept}"

    def _end(self) -> None:
        world = self.world
        world.all_is_well()
        world.run()
        world.redrive()
        world.run()
        world.give_results()
        world.check_all_ended()
