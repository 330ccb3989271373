"""Kernels that a model starts itself: of Triton none is compiled, and none is started here.

Launches are counted, with the bytes of what they are given. What a kernel writes has no value, as what
the stand-in's kernels make. CUDA graphs, which hold launches and memory of their own, are refused.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
import types
from typing import Any

import torch

from .recorder import Launches, Recorder, physical_bytes
from .watching import refuse

_launches: Launches | None = None
_recorder: Recorder | None = None


def started_by(recorder: Recorder | None) -> None:
    """Kernels count in this recording."""
    global _recorder
    _recorder = recorder


def started(args: Any, kwargs: Any, written_over: int = 0) -> None:
    """`written_over`: of its tensors the first ones, which are read and written."""
    global _launches
    if _launches is None:
        _launches = Launches()
    _launches.count.value += 1
    recorder = _recorder
    if recorder is None or recorder.phase == "idle":
        return
    tensors = recorder.on_device((args, kwargs))
    references = [recorder.reference(x, with_source=False) for x in tensors]
    recorder.kernel_started(references,
                            sum(map(physical_bytes, references + references[:written_over])))


def replace_triton() -> None:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.runtime import autotuner, jit

    major, minor = torch.cuda.get_device_capability()
    target = GPUTarget("cuda", 10 * major + minor, 32)
    triton.runtime.driver.set_active(types.SimpleNamespace(
        get_current_target=lambda: target, get_current_device=lambda: 0,
        get_current_stream=lambda device=0: 0, get_benchmarker=lambda: None,
        get_active_torch_device=lambda: torch.device("cuda", 0)))
    jit.JITFunction.run = lambda self, *args, grid, warmup, **kwargs: started(args, kwargs)
    # Which is the fastest, a GPU would say.
    autotuner.Autotuner._bench = lambda *args, **kwargs: [0.0, 0.0, 0.0]


class AfterImport(importlib.abc.MetaPathFinder):
    """Importing Triton takes a quarter of a second, which most captures need not spend."""

    asks = False

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != "triton" or self.asks:
            return None
        self.asks = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.asks = False
        if spec is not None and spec.loader is not None:
            plain = spec.loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                plain(module)
                replace_triton()

            setattr(spec.loader, "exec_module", exec_module)
        return spec


def refuse_graphs(*_: Any, **__: Any) -> None:
    refuse("CUDA graphs have memory pools of their own, which are not captured: run what is in the graph "
           "without it")


def install() -> None:
    if "triton" in sys.modules:
        replace_triton()
    else:
        sys.meta_path.insert(0, AfterImport())
    setattr(torch.cuda.CUDAGraph, "capture_begin", refuse_graphs)
