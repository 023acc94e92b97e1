"""Leads a visitor of the shop through hold, repair and resubmit, by what its data say."""

from collections.abc import Sequence

from roundsman_console.faces.web.guide import GuideStep
from roundsman_testing.first_look.shop import PAYMENT, Shop


class ShopGuide:
    """The three sentences of the first look, in the order of the steps of an incident."""

    def __init__(self, shop: Shop) -> None:
        """Make the guide of a shop in which orders have failed."""
        self._shop = shop
        self._was_held = False
        self._failed = set[str]()
        self._group = next(iter(shop.failed().values()))

    def steps(self) -> Sequence[GuideStep]:
        """Return hold, repair and resubmit.

        The hold is done once it was seen, as it ends before the last step is done. The last step is
        done when each order that has failed has ended.
        """
        held, repaired = self._shop.is_held, self._shop.service.knows_merchant
        self._was_held = self._was_held or held
        self._failed |= self._shop.failed().keys()
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
                repaired and not held and not self._shop.open(self._failed),
                "Let them go on",
                f"{incident}#go-on",
            ),
        )

    def ending(self) -> str:
        """Return what has come of the orders that failed."""
        completed = len(self._shop.completed(self._failed))
        return (
            f"Of the {len(self._failed)} orders that failed, {completed} are Completed, with each "
            "effect once. Look around as long as you like; Ctrl-C in the terminal ends it."
        )

    def press(self) -> None:
        """Repair the service."""
        self._shop.repair()
