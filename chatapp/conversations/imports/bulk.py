"""Insertion of many rows of one model, with little work for each.

``bulk_create`` prepares every field of every row inside the transaction that others wait for. That
took ten times as long as the database itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.db.models import Model

# Rows per statement that returns ids; each column of each row takes a parameter.
RETURNED = 200


class BulkInsert:
    """An INSERT of rows that differ only in a few columns.

    ``same`` is an unsaved instance with the values that all rows share; ``differing`` names the
    other fields. Make one for each transaction, since it belongs to one connection.
    """

    def __init__(self, same: Model, *differing: str) -> None:
        meta = same._meta
        fields = [one for one in meta.concrete_fields if not one.primary_key]
        by_name = {one.name: one for one in fields}
        self._fields = [by_name[name] for name in differing]
        others = [one for one in fields if one.name not in differing]
        self._same = tuple(
            one.get_db_prep_save(one.pre_save(same, add=True), connection) for one in others
        )
        quote = connection.ops.quote_name
        columns = ", ".join(quote(one.column or one.name) for one in (*self._fields, *others))
        self._into = f"INSERT INTO {quote(meta.db_table)} ({columns}) VALUES "
        self._row = f"({', '.join(['%s'] * len(fields))})"

    def prepared(self, name: str, value: Any) -> Any:
        """A field's value in the form that the database takes."""
        field = next(one for one in self._fields if one.name == name)
        return field.get_db_prep_save(value, connection)

    def insert(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows, each the prepared values of the differing fields in their order."""
        with connection.cursor() as cursor:
            cursor.executemany(self._into + self._row, [(*row, *self._same) for row in rows])

    def insert_returning(self, rows: Sequence[tuple[Any, ...]]) -> list[int]:
        """The same; returns the ids of the new rows in their order."""
        ids: list[int] = []
        with connection.cursor() as cursor:
            for first in range(0, len(rows), RETURNED):
                some = rows[first : first + RETURNED]
                values = [value for row in some for value in (*row, *self._same)]
                places = ", ".join([self._row] * len(some))
                cursor.execute(f"{self._into}{places} RETURNING id", values)
                ids += [row[0] for row in cursor.fetchall()]
        return ids
