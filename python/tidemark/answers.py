"""Answers: mappings with the keys of `--format json`, which also know how to show themselves."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from typing import Any, Callable

from .tables import Table, table_of

# Of --format json: sizes are bytes, and times nanoseconds, both whole numbers.
Row = Mapping[str, Any]
_Show = Callable[[str], str]


class Answer(Mapping[str, Any]):
    """One answer of the program. `answer["device"]["name"]`; keys are those of --format json."""

    def __init__(self, content: dict[str, Any], show: _Show) -> None:
        self._content = content
        self._show = show

    def __getitem__(self, key: str) -> Any:
        return self._content[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._content.get('format', 'answer')}>"

    def __str__(self) -> str:
        """The table that the program prints."""
        return self._show("table")

    def to_dict(self) -> dict[str, Any]:
        return self._content

    @property
    def svg(self) -> str:
        """The picture that the program draws. Raises UsageError where it draws none."""
        return self._show("svg")

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class Rows(Answer):
    """An answer that consists of rows."""

    @property
    def rows(self) -> list[Row]:
        return list(self._content["rows"])

    @property
    def table(self) -> Table:
        """The rows as columns, for polars, pyarrow, DuckDB and numpy. Keys within a mapping are joined
        by a dot ("saved.total_bytes"), lists become JSON."""
        return table_of(self.rows)

    def to_pandas(self) -> Any:
        """The rows as a pandas.DataFrame; pandas must be installed."""
        import pandas

        return pandas.DataFrame(self.rows)


class Comparison(Rows):
    """What each strategy needs and costs: `rows`, in the order asked for."""

    @property
    def rows(self) -> list[Row]:
        """A mapping per strategy: allocated_peak_bytes, step_ns, fits, … For lists of batches or
        devices, those of all points, with the point's own keys before them."""
        if "rows" in self._content:
            return self._content["rows"]
        return [{**_inputs_of(point), **row} for point in self._content["points"]
                for row in point["rows"]]

    def __getitem__(self, key: Any) -> Any:
        return self._content[key]

    def row(self, strategy: str) -> Row:
        """The row of one strategy. Raises KeyError with the names that there are."""
        for row in self.rows:
            if row["strategy"] == strategy:
                return row
        raise KeyError(f"{strategy} (there are: {', '.join(r['strategy'] for r in self.rows)})")

    def _repr_html_(self) -> str:
        columns = ["strategy", "allocated_peak_bytes", "reserved_peak_bytes", "step_ns", "fits"]
        head = "".join(f"<th>{column}</th>" for column in columns)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(_cell(row.get(column)))}</td>"
                                        for column in columns) + "</tr>" for row in self.rows)
        return f"<table><tr>{head}</tr>{body}</table>{self.svg}"


class Explanation(Answer):
    """Why the peak is where it is. `largest(5)` are those alive there."""

    @property
    def peak_bytes(self) -> int:
        """Live bytes at the peak; of a memory snapshot, bytes in use."""
        if "peak" in self._content:
            return int(self._content["peak"]["bytes"])
        return int(self._content["active_peak_bytes"])

    def largest(self, count: int = 5) -> list[Row]:
        """The largest buffers alive at the peak, largest first."""
        return self._content["alive"][:count]

    def _repr_html_(self) -> str:
        return self.svg


class Difference(Answer):
    """Why a run needed another amount of memory than was predicted; its causes add up to it."""

    @property
    def difference_bytes(self) -> int:
        """What the run's peak has more; negative: less."""
        return int(self._content["difference_bytes"])

    @property
    def causes(self) -> list[Row]:
        """kind, text, bytes and tensors of each, the one of most bytes first."""
        return self._content["causes"]


class PlanAnswer(Answer):
    """The fastest plan that keeps to a budget, and how far from the best it can be."""


class LayoutSearch(Rows):
    """The layouts of a job over many GPUs: `rows`, the fastest that fit before the smaller ones."""

    @property
    def rows(self) -> list[Row]:
        """mesh, batch, accumulate, shard, strategy, allocated_bytes, step_ns, command, … of
        each. Empty where nothing fits; `search["nearest"]` is then the layout nearest to it."""
        return self._content["rows"]

    @property
    def fastest(self) -> Row | None:
        """Of the rows; None where nothing fits."""
        return self.rows[0] if self.rows else None

    @property
    def front(self) -> list[Row]:
        """Those that need less memory than any that is as fast."""
        return [row for row in self.rows if row["is_on_front"]]


def _inputs_of(point: Mapping[str, Any]) -> dict[str, Any]:
    options = {key: point["options"][key] for key in ("batch", "sequence", "image")}
    return {"device": point["device"]["name"], **options}


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)
