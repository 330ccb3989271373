"""Timelines: what is there when, and what runs when, as tables."""

from __future__ import annotations

import array
import itertools
import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

from .arguments import Step, option_arguments, subject_of
from .program import run
from .tables import Table, column_of


class Timeline:
    """One step. Times are nanoseconds from its beginning, sizes bytes.

    `memory` has a row for each time something appears or goes: time_ns, change_bytes, live_bytes (behind
    the change) and buffer, a row of `buffers`. `buffers` are name, role, category, bytes, stream,
    begin_ns and end_ns; what persists is there from 0 to the end, what never appears has no times.
    `runs` are kernels and copies: task, op, stream, begin_ns and end_ns.
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = content
        self.duration_ns: int = content["duration_ns"]
        self.buffers = _buffers(content)
        self.memory = _memory(content)
        self.runs = _runs(content)

    def __repr__(self) -> str:
        return (f"<Timeline: {self._content['strategy']} on {self._content['device']}, "
                f"{len(self.memory):,} changes of memory, {len(self.runs):,} runs>")

    @property
    def live_peak_bytes(self) -> int:
        return max(self.memory["live_bytes"], default=_persistent_bytes(self._content))


def timeline(step: Step, *, strategy: str | None = None, device: str | None = None,
             **options: Any) -> Timeline:
    """The predicted timeline of a step; options as those of `explain`.

    polars.DataFrame(timeline("gpt2", batch=8, strategy="checkpoint").memory)
    """
    with subject_of(step) as subject:
        arguments = ["explain", subject,
                     *option_arguments({"strategy": strategy, "device": device, **options})]
        return Timeline(json.loads(run([*arguments, "--format", "timeline"])))


def read_timeline(path: str | os.PathLike[str]) -> Timeline:
    """That of a file, FILE.timeline.json, predicted or measured (docs/timeline_format.md)."""
    return Timeline(json.loads(pathlib.Path(path).read_text(encoding="utf-8")))


def _persistent_bytes(content: Mapping[str, Any]) -> int:
    buffers = content["buffers"]
    return sum(size for size, stays in zip(buffers["bytes"], buffers["persistent"]) if stays)


def _memory(content: Mapping[str, Any]) -> Table:
    events, sizes = content["memory"], content["buffers"]["bytes"]
    changes = [sizes[buffer] if appears else -sizes[buffer]
               for buffer, appears in zip(events["buffer"], events["appears"])]
    live = itertools.accumulate(changes, initial=_persistent_bytes(content))
    next(live)  # before any change
    return Table({"time_ns": array.array("q", events["time_ns"]),
                  "change_bytes": array.array("q", changes),
                  "live_bytes": array.array("q", live),
                  "buffer": array.array("q", events["buffer"])})


def _buffers(content: Mapping[str, Any]) -> Table:
    buffers, names = content["buffers"], content["names"]
    tensors = [tensor["name"] for tensor in content["trace"]["tensors"]]
    begin: list[int | None] = [0 if stays else None for stays in buffers["persistent"]]
    end: list[int | None] = [content["duration_ns"] if stays else None
                             for stays in buffers["persistent"]]
    events = content["memory"]
    for time, buffer, appears in zip(events["time_ns"], events["buffer"], events["appears"]):
        (begin if appears else end)[buffer] = time
    return Table({"name": [None if tensor < 0 else tensors[tensor] for tensor in buffers["tensor"]],
                  "role": [names["role"][role] for role in buffers["role"]],
                  "category": [names["category"][category] for category in buffers["category"]],
                  "bytes": array.array("q", buffers["bytes"]),
                  "stream": array.array("q", buffers["stream"]),
                  "begin_ns": column_of(begin), "end_ns": column_of(end)})


def _runs(content: Mapping[str, Any]) -> Table:
    steps, names, runs = content["steps"], content["names"], content["runs"]
    kinds = [names["step"][kind] for kind in steps["kind"]]
    tasks = iter(content["run_steps"]["task"])
    task_of = [names["task"][next(tasks)] if kind == "run" else kind for kind in kinds]
    ops = [op["name"] for op in content["trace"]["ops"]]
    ran = [steps["of"][step] if kinds[step] == "run" else -1 for step in runs["step"]]
    return Table({"task": [task_of[step] for step in runs["step"]],
                  "op": [ops[op] if op >= 0 else None for op in ran],
                  "stream": array.array("q", (steps["stream"][step] for step in runs["step"])),
                  "begin_ns": array.array("q", runs["begin_ns"]),
                  "end_ns": array.array("q", runs["end_ns"])})
