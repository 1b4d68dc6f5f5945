"""What ``streams`` measures, on PostgreSQL and with Redis as the bus."""

from __future__ import annotations

from tests.benchmarks.streams import measure
from tests.services import postgres, redis


def main() -> int:
    """Print one row a figure; 0 when all are reached. Takes about five minutes."""
    with postgres() as database, redis() as bus:
        return measure(DATABASE_URL=database, REDIS_URL=bus)
