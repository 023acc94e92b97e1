"""Leads a visitor of the shop through hold, repair and resubmit, as its data say how far they are."""

from collections.abc import Sequence

from roundsman_console.web.guide import GuideStep
from roundsman_testing.first_look.shop import PAYMENT, Shop


class ShopGuide:
    """The three sentences of the first look, in the order of the steps of an incident."""

    def __init__(self, shop: Shop) -> None:
        """Make the guide of a shop in which orders have failed."""
        self._shop = shop
        self._was_held = False
        self._group = next(iter(shop.failed().values()))

    def steps(self) -> Sequence[GuideStep]:
        """Return hold, repair and resubmit.

        The hold is done once it was seen, as it ends before the last step is done.
        """
        held, repaired = self._shop.is_held, self._shop.service.knows_merchant
        left = self._shop.failed()
        self._was_held = self._was_held or held
        incident = f"/groups/{self._group}"
        return (
            GuideStep(
                f"Orders fail because the service of the agent {PAYMENT} refuses every call. "
                f"Hold {PAYMENT}: then new orders wait, and no more of them fail.",
                self._was_held,
                "Show the incident",
                f"{incident}#stop",
            ),
            GuideStep(
                "Repair the service. In your stack that is the work of its owner, outside of this "
                "console; here you do it.",
                repaired,
                "Repair the service",
            ),
            GuideStep(
                f"Release {PAYMENT}, and resubmit the orders that failed: each goes on where it "
                "stopped, under the same keys.",
                repaired and not held and not left,
                "Let them go on",
                f"{incident}#go-on",
            ),
        )

    def ending(self) -> str:
        """Return what has come of it."""
        return (
            "No order needs a person any more, and each effect happened once. Look around as long "
            "as you like; Ctrl-C in the terminal ends the first look."
        )

    def press(self) -> None:
        """Repair the service."""
        self._shop.repair()
