"""Queries that the ORM words once, and that are executed again and again with new values.

Wording a query takes the ORM four times as long as all the rest: the database's work, and making
the rows. Only for reads that every send or every open page makes again and again; what is written
is worded each time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from django.db import connection
from django.db.models import Expression, Field, QuerySet

Row = TypeVar("Row")


class _Given(Expression):
    """Stands in a query for a value that is given when it is executed."""

    def __init__(self, name: str, output_field: Field[Any, Any]) -> None:
        super().__init__(output_field=output_field)
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        """A placeholder, with itself as its value."""
        return "%s", (self,)


@dataclass(slots=True)
class _Wording:
    """A query as one thread's connection is asked it."""

    rows: QuerySet[Any, Any]
    compiler: Any
    sql: str
    parameters: tuple[Any, ...]


@dataclass(slots=True, eq=False)
class Worded(Generic[Row]):
    """A query whose values are given by name; made by :func:`worded`."""

    query: Callable[..., QuerySet[Any, Row]]
    """The query as the ORM words it for these values."""
    fields: dict[str, Field[Any, Any]]
    _wordings: threading.local = field(default_factory=threading.local)

    def __call__(self, **values: Any) -> list[Row]:
        """The rows for these values."""
        wording = self._wording()
        filled = tuple(
            one.output_field.get_db_prep_value(values[one.name], wording.compiler.connection)
            if isinstance(one, _Given)
            else one
            for one in wording.parameters
        )
        # The ORM's own making of rows asks its compiler for the wording.
        wording.compiler.as_sql = lambda *_, **__: (wording.sql, filled)
        rows: Iterable[Any] = wording.rows._iterable_class(wording.rows)  # type: ignore[assignment]
        return list(rows)

    def first(self, **values: Any) -> Row | None:
        """The first row for these values, None if there is none."""
        return next(iter(self(**values)), None)

    def _wording(self) -> _Wording:
        made: _Wording | None = getattr(self._wordings, "made", None)
        # A test may give its thread another connection.
        if made is None or made.compiler.connection is not _this_connection():
            rows = self.query(**{name: _Given(name, one) for name, one in self.fields.items()})
            compiler: Any = rows.query.get_compiler(connection=_this_connection())
            sql, parameters = compiler.as_sql()
            rows.query.get_compiler = lambda *_, **__: compiler  # type: ignore[method-assign]
            made = _Wording(rows, compiler, sql, tuple(parameters))
            self._wordings.made = made
        return made


def _this_connection() -> Any:
    """This thread's connection itself, of which ``connection`` is a proxy."""
    return connection._connections[connection._alias]  # type: ignore[attr-defined]


def worded(
    **fields: type[Field[Any, Any]],
) -> Callable[[Callable[..., QuerySet[Any, Row]]], Worded[Row]]:
    """A decorator for functions that make a query of values, of these fields by name.

    Values may stand wherever a query takes an expression, and must not be None.
    """
    return lambda query: Worded(query, {name: one() for name, one in fields.items()})
