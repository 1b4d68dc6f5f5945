"""Prices of models from the price data, which ``python -m chatapp.llm.prices`` reads offline."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from chatapp.llm.profiles import PriceFigures

logger = logging.getLogger(__name__)

#: Seconds; it takes half a one.
PATIENCE = 60
_FOLDER = Path(__file__).resolve().parents[2]


class PriceList:
    """The price data behind one address, looked up by a process that ends with it.

    What was looked up is kept, so that a server's list costs nothing when it is heard again.
    """

    def __init__(self, base_url: str = "") -> None:
        self._base_url = base_url
        self._known: dict[str, PriceFigures | None] = {}

    def __call__(self, names: Iterable[str]) -> dict[str, PriceFigures]:
        """The figures of these models; call it in a thread.

        Empty of what is new, and a line in the log, when the data cannot be read.
        """
        wanted = [*dict.fromkeys(names)]
        missing = [name for name in wanted if name not in self._known]
        if missing:
            try:
                self._known |= _looked_up(missing, self._base_url)
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                logger.warning("The price data could not be read: %s", error)
        found = {name: self._known.get(name) for name in wanted}
        return {name: figures for name, figures in found.items() if figures is not None}


def _looked_up(names: list[str], base_url: str) -> dict[str, PriceFigures | None]:
    answer = subprocess.run(
        [sys.executable, "-m", __name__],
        cwd=_FOLDER,
        input=json.dumps([names, base_url]),
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return {name: _figures(found) for name, found in json.loads(answer.stdout).items()}


def _figures(found: dict[str, Any] | None) -> PriceFigures | None:
    if found is None:
        return None
    window = found.pop("window")
    # Decimals travel as text.
    prices = {field: Decimal(price) for field, price in found.items() if price is not None}
    return PriceFigures(window=window, **prices)


def price_figures(name: str, base_url: str = "") -> PriceFigures | None:
    """The figures that genai-prices, offline, has of a model; None when it has none.

    Prices hold only for the provider's own address: a model of the same name behind another
    ``base_url`` costs whatever its owner asks, so only its window is taken.
    """
    # Imported here, since its tables take 14 MB that a server need not keep.
    from genai_prices import data_snapshot

    snapshot = data_snapshot.get_snapshot()
    addresses: tuple[str | None, ...] = (base_url, None) if base_url else (None,)
    for address in addresses:
        try:
            _, model = snapshot.find_provider_model(name, None, None, address)
        except LookupError:
            continue
        if base_url and address is None:
            return PriceFigures(window=model.context_window)
        listed = model.get_prices(datetime.now(UTC))
        return PriceFigures(
            window=model.context_window,
            input_price=_base(getattr(listed, "input_mtok", None)),
            cached_input_price=_base(getattr(listed, "cache_read_mtok", None)),
            output_price=_base(getattr(listed, "output_mtok", None)),
        )
    return None


def _base(price: object) -> Decimal | None:
    """A price, or the first step of a price in steps (which begin at 128,000 tokens and more)."""
    price = getattr(price, "base", price)
    return price if isinstance(price, Decimal) else None


if __name__ == "__main__":
    wanted, address = json.load(sys.stdin)
    known = {name: price_figures(name, address) for name in wanted}
    told = {name: figures and asdict(figures) for name, figures in known.items()}
    print(json.dumps(told, default=str))
