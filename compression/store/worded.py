"""Statements that the ORM words once, and that are executed again and again with new values.

Wording a statement takes the ORM four times as long as all the rest: the database's work, and
making the rows. Only for what every send or every open page does again and again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from django.db import connection, transaction
from django.db.models import Expression, Field, Model, QuerySet
from django.db.models.sql import InsertQuery, UpdateQuery

Row = TypeVar("Row")
Type: TypeAlias = "Field[Any, Any] | type[Field[Any, Any]]"


class _Given(Expression):
    """Stands in a statement for a value that is given when it is executed."""

    def __init__(self, name: str, output_field: Field[Any, Any]) -> None:
        super().__init__(output_field=output_field)
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        """A placeholder, with itself as its value."""
        return "%s", (self,)


@dataclass(slots=True)
class _Wording:
    """A statement as one thread's connection is given it."""

    compiler: Any
    sql: str
    parameters: tuple[Any, ...]
    rows: Any = None
    """Of a query: what makes its rows."""

    def filled(self, values: dict[str, Any]) -> tuple[Any, ...]:
        """The parameters, in the form that the database takes."""
        database = self.compiler.connection
        return tuple(
            one.output_field.get_db_prep_save(values[one.name], database)
            if isinstance(one, _Given)
            else one
            for one in self.parameters
        )


@dataclass(slots=True, eq=False)
class _Statement:
    """What all kinds have in common: one wording for each thread."""

    make: Callable[..., Any]
    """What the ORM is told for these values; they are given by name."""
    fields: dict[str, Field[Any, Any]]
    _wordings: threading.local = field(default_factory=threading.local)

    def _wording(self) -> _Wording:
        made: _Wording | None = getattr(self._wordings, "made", None)
        # A test may give its thread another connection.
        if made is None or made.compiler.connection is not _this_connection():
            made = self._worded({name: _Given(name, one) for name, one in self.fields.items()})
            self._wordings.made = made
        return made

    def _worded(self, given: dict[str, _Given]) -> _Wording:
        raise NotImplementedError


@dataclass(slots=True, eq=False)
class Worded(_Statement, Generic[Row]):
    """A query; made by :func:`worded`."""

    def __call__(self, **values: Any) -> list[Row]:
        """The rows for these values."""
        wording = self._wording()
        filled = wording.filled(values)
        # The ORM's own making of rows asks its compiler for the wording.
        wording.compiler.as_sql = lambda *_, **__: (wording.sql, filled)
        rows: Iterable[Any] = wording.rows._iterable_class(wording.rows)
        return list(rows)

    def first(self, **values: Any) -> Row | None:
        """The first row for these values, None if there is none."""
        return next(iter(self(**values)), None)

    def _worded(self, given: dict[str, _Given]) -> _Wording:
        rows = self.make(**given)
        compiler: Any = rows.query.get_compiler(connection=_this_connection())
        sql, parameters = compiler.as_sql()
        rows.query.get_compiler = lambda *_, **__: compiler
        return _Wording(compiler, sql, tuple(parameters), rows)


@dataclass(slots=True, eq=False)
class WordedUpdate(_Statement):
    """An UPDATE; made by :func:`worded_update`."""

    def __call__(self, **values: Any) -> int:
        """Carry it out for these values. Returns how many rows there were."""
        wording = self._wording()
        with (
            transaction.mark_for_rollback_on_error(connection.alias),
            connection.cursor() as cursor,
        ):
            cursor.execute(wording.sql, wording.filled(values))
            return int(cursor.rowcount)

    def _worded(self, given: dict[str, _Given]) -> _Wording:
        rows, changes = self.make(**given)
        query = rows.query.chain(UpdateQuery)
        query.add_update_values(changes)
        compiler = query.get_compiler(connection=_this_connection())
        sql, parameters = compiler.as_sql()
        return _Wording(compiler, sql, tuple(parameters))


@dataclass(slots=True, eq=False)
class WordedInsert(_Statement):
    """An INSERT of rows of one model; made by :func:`worded_insert`."""

    def __call__(self, **values: Any) -> list[int]:
        """Insert the rows for these values. Returns their ids, in the order of the rows."""
        wording = self._wording()
        with (
            transaction.mark_for_rollback_on_error(connection.alias),
            connection.cursor() as cursor,
        ):
            cursor.execute(wording.sql, wording.filled(values))
            return [row[0] for row in cursor.fetchall()]

    def _worded(self, given: dict[str, _Given]) -> _Wording:
        rows: Sequence[Model] = self.make(**given)
        meta = rows[0]._meta
        columns = [one for one in meta.concrete_fields if not one.primary_key]
        for one in columns:
            # Worded once, it would be the time of the first row for ever.
            if getattr(one, "auto_now", False) or getattr(one, "auto_now_add", False):
                assert all(isinstance(getattr(row, one.attname), _Given) for row in rows), one
        query = InsertQuery(type(rows[0]))
        query.insert_values(columns, list(rows), raw=True)
        compiler: Any = query.get_compiler(connection=_this_connection())
        compiler.returning_fields = [meta.pk]
        ((sql, parameters),) = compiler.as_sql()
        return _Wording(compiler, sql, tuple(parameters))


def _this_connection() -> Any:
    """This thread's connection itself, of which ``connection`` is a proxy."""
    return connection._connections[connection._alias]  # type: ignore[attr-defined]


def _made(fields: dict[str, Type]) -> dict[str, Field[Any, Any]]:
    return {name: one() if isinstance(one, type) else one for name, one in fields.items()}


def worded(
    **fields: Type,
) -> Callable[[Callable[..., QuerySet[Any, Row]]], Worded[Row]]:
    """A decorator for functions that make a query of values, of these fields by name.

    Values may stand wherever a query takes an expression, and must not be None.
    """
    return lambda make: Worded(make, _made(fields))


def worded_update(
    **fields: Type,
) -> Callable[[Callable[..., tuple[QuerySet[Any, Any], dict[str, Any]]]], WordedUpdate]:
    """The same for functions that return rows, and their new values by the names of fields.

    Only new values may be None.
    """
    return lambda make: WordedUpdate(make, _made(fields))


def worded_insert(**fields: Type) -> Callable[[Callable[..., Sequence[Model]]], WordedInsert]:
    """The same for functions that make rows of one model, which are not saved; None is a value.

    Nothing is done to a field as it is saved: ``auto_now`` and ``auto_now_add`` must be given.
    """
    return lambda make: WordedInsert(make, _made(fields))
