"""Where a step leaves the default stream. Calls of the allocator are written of one stream alone."""

from __future__ import annotations

import sys
from typing import Any

import torch

from .lines import Lines

_left_at: list[str] = []  # lines


def install() -> None:
    plain = torch.cuda.set_stream

    def set_stream(stream: Any) -> None:
        if stream is not None and stream.cuda_stream != 0:
            _left_at.append(Lines().current())
        plain(stream)

    setattr(torch.cuda, "set_stream", set_stream)


def say_that_calls_are_missing() -> None:
    place = f"{_left_at[0]}: " if _left_at else ""
    print(f"tidemark capture: {place}memory of several streams is allocated: the trace has no calls of the "
          "allocator, and reserved memory follows from the operations, as if there were one stream",
          file=sys.stderr)
