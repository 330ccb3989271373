"""Tables: named columns of equal length, which numpy, polars, pyarrow, pandas and DuckDB take as they are."""

from __future__ import annotations

import array
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Union

# Whole numbers and floating-point numbers without gaps are arrays ("q" and "d"), whose memory others
# can share; texts, truth values and whatever has gaps (None) are lists.
Column = Union["array.array[int]", "array.array[float]", Sequence[Any]]


class Table:
    """Columns by name. `numpy.asarray(table["time_ns"])` shares the column's memory;
    `polars.DataFrame(table)`, `pyarrow.table(table)`, `pandas.DataFrame.from_arrow(table)` and DuckDB
    read it through Arrow's PyCapsule interface, numbers without a copy."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        """Raises ValueError if the columns are not equally long."""
        self.columns = dict(columns)
        lengths = {len(column) for column in self.columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of different lengths: {sorted(lengths)}")
        self._length = lengths.pop() if lengths else 0

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def __len__(self) -> int:
        """How many rows."""
        return self._length

    def __repr__(self) -> str:
        return f"<Table: {len(self):,} rows of {', '.join(self.columns)}>"

    def to_pandas(self) -> Any:
        """A pandas.DataFrame; pandas must be installed."""
        import pandas

        return pandas.DataFrame(self.columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A PyCapsule with one batch (Arrow's PyCapsule interface). Types are as they are, whatever
        is requested: int64, float64, bool and utf8."""
        from . import arrow

        return arrow.stream_of(self)


def table_of(rows: Iterable[Mapping[str, Any]]) -> Table:
    """A table of rows, whose columns are all their keys, in the order in which they come. Keys within
    a mapping are joined by a dot ("saved.total_bytes"), lists become JSON, what a row lacks is None."""
    flat = [dict(_flattened(row)) for row in rows]
    names = dict.fromkeys(name for row in flat for name in row)
    mappings = {name.rpartition(".")[0] for name in names}  # None where a row has none
    return Table({name: column_of([row.get(name) for row in flat])
                  for name in names if name not in mappings})


def column_of(values: list[Any]) -> Column:
    """An array where the values are numbers of one kind, else themselves."""
    kinds = {type(value) for value in values}
    if kinds == {int}:
        return array.array("q", values)
    if kinds in ({float}, {int, float}):
        return array.array("d", values)
    return values


def _flattened(row: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", json.dumps(value) if isinstance(value, list) else value
