"""Prices of models from offline price data, read by ``python -m chatapp.llm.prices``."""

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

#: Time limit in seconds; it takes half a second.
PATIENCE = 60
_FOLDER = Path(__file__).resolve().parents[2]


class PriceList:
    """The price data for one server, looked up by a process that then ends.

    Results are kept, so that the server's list is not looked up twice.
    """

    def __init__(self, base_url: str = "") -> None:
        self._base_url = base_url
        self._known: dict[str, PriceFigures | None] = {}

    def __call__(self, names: Iterable[str]) -> dict[str, PriceFigures]:
        """The figures of these models; call it in a thread.

        If the data cannot be read, models not looked up before are missing, and the log says why.
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
        # Ctrl+C is for the server: this process would answer it with a traceback.
        start_new_session=True,
    )
    return {name: _figures(found) for name, found in json.loads(answer.stdout).items()}


def _figures(found: dict[str, Any] | None) -> PriceFigures | None:
    if found is None:
        return None
    window = found.pop("window")
    # Decimals are passed as text.
    prices = {field: Decimal(price) for field, price in found.items() if price is not None}
    return PriceFigures(window=window, **prices)


def price_figures(name: str, base_url: str = "") -> PriceFigures | None:
    """The offline figures of genai-prices for a model; None if it has none.

    Prices hold only for the provider's own address. Behind another ``base_url``, a model of the
    same name has other prices, so only its window is taken.
    """
    # Imported here, because its tables take 14 MB that a server need not hold.
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
    """A price, or its first step (the others begin at 128,000 tokens or more)."""
    price = getattr(price, "base", price)
    return price if isinstance(price, Decimal) else None


if __name__ == "__main__":
    wanted, address = json.load(sys.stdin)
    known = {name: price_figures(name, address) for name in wanted}
    told = {name: figures and asdict(figures) for name, figures in known.items()}
    print(json.dumps(told, default=str))
