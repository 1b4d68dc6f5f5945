"""What models cost, from the price data, offline: ``python -m chatapp.llm.prices`` looks one up."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

from chatapp.llm.profiles import PriceFigures

logger = logging.getLogger(__name__)

PATIENCE = 60
# Seconds; it takes half a one.
_FOLDER = Path(__file__).resolve().parents[2]


def prices_of(name: str, base_url: str = "") -> PriceFigures | None:
    """:func:`price_figures`, looked up by a process that ends with it. Call it in a thread.

    None, and a line in the log, when that fails.
    """
    try:
        return _looked_up(name, base_url)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        logger.warning("The price data could not be read: %s", error)
        return None


@lru_cache(maxsize=1024)
def _looked_up(name: str, base_url: str) -> PriceFigures | None:
    answer = subprocess.run(
        [sys.executable, "-m", __name__],
        cwd=_FOLDER,
        input=json.dumps([name, base_url]),
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    found = json.loads(answer.stdout)
    if found is None:
        return None
    window = found.pop("window")
    # Decimals travel as text.
    prices = {field: Decimal(price) for field, price in found.items() if price is not None}
    return PriceFigures(window=window, **prices)


def price_figures(name: str, base_url: str = "") -> PriceFigures | None:
    """What genai-prices, offline, knows of a model; None when it does not know it.

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
    figures = price_figures(*json.load(sys.stdin))
    print(json.dumps(figures and asdict(figures), default=str))
