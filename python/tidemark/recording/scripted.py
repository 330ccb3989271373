"""Functions and methods of TorchScript. A part of one that has gradients is one node of autograd, whose
operations run on tensors without a node, or in kernels that no dispatch mode sees: one op, as a
function of one's own is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .recorder import Recorder

_recorder: Recorder | None = None


def recorded_by(recorder: Recorder | None) -> None:
    global _recorder
    _recorder = recorder


def install() -> None:
    kinds: Any = (torch._C.ScriptFunction, torch._C.ScriptMethod)
    for kind in kinds:
        kind.__call__ = recorded(kind.__call__)


def recorded(plain: Any) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = _recorder
        if recorder is None or not recorder.begin_group("TorchScript", "script", (args, kwargs)):
            return plain(self, *args, **kwargs)
        result = plain(self, *args, **kwargs)
        recorder.end_group(result)
        return result

    return call
