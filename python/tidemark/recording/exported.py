"""Programs that torch.export wrote down (.pt2): run as the modules that they were, and so captured.

    tidemark capture model.pt2                     where the program's output is its loss
    return torch.export.load("model.pt2"), None, loss     in make_step; None: the batch of the export

A program has the operators that the model called, before autograd and autocast saw them: what
backwards keep is PyTorch's choice here as ever. It has no more than that: which way the model went,
whether dropout was on, and the shapes are those of the export; checkpoints are gone.
"""

from __future__ import annotations

import functools
import io
import pathlib
import sys
import types
from typing import Any, NamedTuple

import torch

from .errors import CaptureError


class Example(NamedTuple):
    """What a program was exported with."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def is_program(model: Any) -> bool:
    """Nothing of torch.export is loaded for the sake of the question."""
    module = sys.modules.get("torch.export.exported_program")
    return module is not None and isinstance(model, module.ExportedProgram)


def read(path: pathlib.Path) -> Any:
    if not path.is_file():
        raise CaptureError(f"{path}: no such file")
    return loaded(path.read_bytes(), str(path))


def loaded(data: bytes, name: str) -> Any:
    import torch.export

    try:
        return torch.export.load(io.BytesIO(data))
    except Exception as error:  # a file of anything, or of another version
        text = str(error).strip().splitlines()
        raise CaptureError(f"{name}: torch.export.load of PyTorch {torch.__version__} cannot read "
                           f"it: {text[0] if text else type(error).__name__}") from error


def install() -> None:
    """Scripts load with a device as default; a program's tensors lie where its file has them, as ever."""
    import torch.export

    load = torch.export.load

    @functools.wraps(load)
    def on_cpu(*args: Any, **kwargs: Any) -> Any:
        with torch.device("cpu"):
            return load(*args, **kwargs)

    setattr(torch.export, "load", on_cpu)


def batch_of(program: Any) -> Any:
    if program.example_inputs is None:
        raise CaptureError("the program was exported without example inputs: return it and a batch "
                           "from make_step")
    args, kwargs = program.example_inputs
    if args and kwargs:
        return Example(tuple(args), dict(kwargs))
    return dict(kwargs) if kwargs else tuple(args)


def module_of(program: Any) -> torch.nn.Module:
    """With the modules that the model had; their operators on the device of the capture."""
    import torch.export

    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            retarget(module)
    report_evaluation(program)
    try:
        return torch.export.unflatten(program)
    except Exception:  # of strict exports, some: names of modules that are none
        print("tidemark capture: torch.export.unflatten cannot tell the program's modules apart: no "
              "blocks, and operators by their own names (torch.export.export with strict=False "
              "helps)", file=sys.stderr)
    flat = program.module()
    flat.train = types.MethodType(lambda self, mode=True: self, flat)  # which it refuses
    return flat


def retarget(module: torch.fx.GraphModule) -> None:
    """Devices are part of an export, and so are checks of dtypes, which other precisions fail."""
    def moved(value: Any) -> Any:
        return torch.device("cuda") if isinstance(value, torch.device) else value

    for node in list(module.graph.nodes):
        if str(node.target).startswith("aten._assert_tensor_metadata"):
            module.graph.erase_node(node)
            continue
        node.args = torch.fx.node.map_aggregate(node.args, moved)
        node.kwargs = torch.fx.node.map_aggregate(node.kwargs, moved)
    module.recompile()


def report_evaluation(program: Any) -> None:
    """Dropouts and batch norms that were off stay off."""
    off: dict[str, int] = {}
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            name = str(node.target).partition(".default")[0]
            at = {"aten.dropout": 2, "aten.batch_norm": 5}.get(name)
            if at is not None and len(node.args) > at and node.args[at] is False:
                off[name] = off.get(name, 0) + 1
    if off:
        found = ", ".join(f"{count} {name}" for name, count in off.items())
        print(f"tidemark capture: exported for evaluation, and run so: {found} (model.train() before "
              "torch.export.export is training)", file=sys.stderr)


def step_of(path: str) -> tuple[Any, Any]:
    return read(pathlib.Path(path)), None
