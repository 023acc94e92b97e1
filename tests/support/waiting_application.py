"""An application as `roundsman init` writes it, whose steps then wait in every way there is.

Only what its author writes is changed: the workflow, the agents and the orders, and not its tests.
"""

from pathlib import Path

WORKFLOW = '''"""The workflow shop."""

from datetime import timedelta
from typing import Annotated, TypedDict

from roundsman import Compensation, Signal, Sleep, Step, Text, Undo, Workflow


class ShopOrder(TypedDict):
    """What an order of this workflow must be."""

    customer: Annotated[str, Text(200)]


SHORT = timedelta(seconds=30)
UNDONE = Compensation(fences_late_performs=True)
pack = Step(name="pack", agent="stock", complete_within=SHORT, compensation=UNDONE)
rest = Sleep(name="rest", for_=timedelta(hours=6))
shop_stock = Step(name="shop_stock", agent="stock", complete_within=SHORT, compensation=UNDONE)
convert = Step(
    name="convert",
    agent="stock",
    after=(shop_stock,),
    complete_within=SHORT,
    compensation=UNDONE,
)
approve = Step(
    name="approve",
    agent="payment",
    after=(convert,),
    complete_within=SHORT,
    compensation=UNDONE,
)
paid = Signal("paid", after=(approve,), within=timedelta(days=3))
cool_off = Sleep(name="cool_off", for_=timedelta(days=14), after=(paid,))
shop_payment = Step(
    name="shop_payment",
    agent="payment",
    after=(cool_off,),
    complete_within=SHORT,
    compensation=UNDONE,
)
goodbye = Sleep(name="goodbye", for_=timedelta(days=1), after=(shop_payment,))
shop = Workflow(
    name="shop",
    input=ShopOrder,
    steps=(shop_stock, convert, approve, paid, cool_off, shop_payment, goodbye),
    may_add=(pack, rest),
    complete_within=timedelta(days=60),
    on_failure=Undo(),
    retain_for=timedelta(days=7),
)
'''

IN_STOCK = '''

@stock.performs(shop_stock)
def perform_shop_stock(request: StepRequest) -> Done:
    """Create the resource, and add two steps with a sleep between them."""
    first = pack.named("one")
    night = rest.named("night", after=(first,))
    return Done(_create(request), then=(first, night, pack.named("two", after=(night,))))


@stock.compensates(shop_stock)
@stock.compensates(pack)
@stock.compensates(convert)
def undo(request: StepRequest) -> None:
    """Undo the step, also if it may not have happened: delete its resource."""
    _delete(request)


@stock.performs(pack)
def perform_pack(request: StepRequest) -> Json:
    """Do the work of an added step."""
    return _create(request)


_begun: set[str] = set()


@stock.performs(convert)
def perform_convert(request: StepRequest) -> "Json | NotYet":
    """Begin an outside job, which is done at the second look."""
    made = _create(request)
    if request.idempotency_key in _begun:
        return made
    _begun.add(request.idempotency_key)
    return NotYet(again_in=timedelta(hours=2), within=timedelta(days=2))


handler = stock.lambda_handler
'''

IN_PAYMENT = '''

@payment.performs(approve)
def perform_approve(request: StepRequest) -> Callback:
    """Ask somebody, whose answer ends the step."""
    _create(request)
    return Callback(within=timedelta(days=1))


@payment.compensates(approve)
def undo_approve(request: StepRequest) -> None:
    """Undo the question."""
    _delete(request)


handler = payment.lambda_handler
'''


def let_it_wait(application: Path) -> None:
    """Give the application `shop`, of the agents stock and payment, steps that wait."""
    (application / "layers/workflows/workflows/shop.py").write_text(WORKFLOW)
    stock = application / "functions/agents/stock/app.py"
    code = (
        stock.read_text()
        .partition("\n\n@stock.performs")[0]
        .replace("\n\nhandler = stock.lambda_handler\n", "")
    )
    code = _importing(code, "Agent, Done, Json, NotYet, StepRequest")
    code = code.replace("import shop_stock", "import convert, pack, rest, shop_stock")
    stock.write_text(code.rstrip() + "\n" + IN_STOCK)
    payment = application / "functions/agents/payment/app.py"
    code = payment.read_text().replace("\n\nhandler = payment.lambda_handler\n", "")
    code = _importing(code, "Agent, Callback, Json, StepRequest")
    code = code.replace("import shop_payment", "import approve, shop_payment")
    payment.write_text(code.rstrip() + "\n" + IN_PAYMENT)


def _importing(code: str, names: str) -> str:
    code = code.replace("from functools", "from datetime import timedelta\nfrom functools")
    return code.replace("import Agent, Json, StepRequest", f"import {names}")
