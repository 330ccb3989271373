"""Tidemark from Python: a training step of any PyTorch model as a trace, without a GPU.

    import tidemark
    tidemark.capture(model, batch, loss=loss, output="step.trace.json")

The trace is what the program `tidemark` takes wherever it takes a model: `compare`, `explain`,
`check`, `view`. See docs/capture.md.
"""

from __future__ import annotations

import pathlib
from typing import Any, Callable

from .recording.errors import CaptureError

__all__ = ["CaptureError", "capture"]


def capture(model: Any, batch: Any, *, loss: Callable[..., Any] | None = None,
            optimizer: Any = "adamw", precision: str = "fp32", device: str | None = None,
            sm: int | None = None, output: str | pathlib.Path = "step.trace.json",
            beside_gpu: bool = False) -> pathlib.Path:
    """Writes the trace of one training step; returns its path.

    `batch` is what the model is called with: keywords if it is a mapping, arguments if it is a tuple
    or list. `loss` takes the model's output, or that and the batch; without it the output is the
    loss, or has one. `optimizer` is a name (adamw, adam, sgd), an Optimizer, or a function of the
    parameters. `precision` is fp32, tf32, bf16, amp-bf16 or amp-fp16. `device` names one of
    `tidemark devices`, for whose kernels and limits PyTorch chooses; or `sm` its compute capability.

    Model and batch stay as they are. The step runs in a child process, on a stand-in for the CUDA
    runtime: kernels do nothing and weights take no memory.
    """
    from .recording import parent

    return parent.capture_objects(model, batch, loss, optimizer, precision, device, sm,
                                  pathlib.Path(output), beside_gpu)
