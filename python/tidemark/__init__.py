"""Tidemark from Python: what training steps need of GPU memory, and what each way of needing less costs.

    import tidemark
    tidemark.compare("gpt2", batch=8, strategies=["vanilla", "checkpoint"], device="rtx-4090").rows
    step = tidemark.capture(model, batch, loss=loss)    # any PyTorch model, without a GPU
    print(tidemark.plan(step, budget="22GiB"))

Answers are mappings with the keys of the program's `--format json`: sizes in bytes, times in
nanoseconds. See docs/python.md.
"""

from __future__ import annotations

import pathlib
from typing import Any, Callable

from .answers import Answer, Comparison, Difference, Explanation, LayoutSearch, PlanAnswer
from .errors import TidemarkError, UsageError
from .program import program
from .questions import check, compare, diff, explain, merged_search, plan, search
from .recording.errors import CaptureError
from .sweep import SweepRow, sweep
from .tables import Table
from .timeline import Timeline, read_timeline, timeline

__all__ = ["Answer", "CaptureError", "Comparison", "Difference", "Explanation", "LayoutSearch",
           "PlanAnswer", "SweepRow", "Table", "TidemarkError", "Timeline", "UsageError", "capture",
           "check", "compare", "diff", "explain", "merged_search", "plan", "program", "read_timeline",
           "search", "sweep", "timeline"]


def capture(model: Any, batch: Any, *, loss: Callable[..., Any] | None = None,
            optimizer: Any = "adamw", precision: str = "fp32", device: str | None = None,
            sm: int | None = None, output: str | pathlib.Path | None = None,
            beside_gpu: bool = False) -> pathlib.Path:
    """Writes the trace of one training step; returns its path, which is `output`, or lies in a folder
    that goes with this process.

    `batch` is what the model is called with: keywords if it is a mapping, arguments if it is a tuple
    or list. `loss` takes the model's output, or that and the batch; without it the output is the
    loss, or has one. `optimizer` is a name (adamw, adam, sgd), an Optimizer, or a function of the
    parameters. `precision` is fp32, tf32, bf16, amp-bf16 or amp-fp16. `device` names one of
    `tidemark devices`, for whose kernels and limits PyTorch chooses; or `sm` its compute capability.

    Model and batch stay as they are. The step runs in a child process, on a stand-in for the CUDA
    runtime: kernels do nothing and weights take no memory.
    """
    from .recording import parent

    path = parent.path_of_its_own(model) if output is None else pathlib.Path(output)
    return parent.capture_objects(model, batch, loss, optimizer, precision, device, sm, path, beside_gpu)
