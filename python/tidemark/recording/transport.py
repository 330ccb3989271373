"""A model on its way to the process on the stand-in: its structure, without its weights.

Tensors travel as shapes; small ones that are no parameters (masks, ids, tables) with their values.
Functions without a name of their own travel as code.
"""

from __future__ import annotations

import importlib
import io
import marshal
import os
import pickle
import sys
import types
from typing import Any

import torch

from . import exported
from .errors import CaptureError

MOST_ELEMENTS = 1 << 20


def refuse_compiled(model: Any) -> None:
    """What was compiled does not travel, and would be run without."""
    for name, module in model.named_modules() if isinstance(model, torch.nn.Module) else ():
        if module._compiled_call_impl is not None or type(module).__name__ == "OptimizedModule":
            raise CaptureError(f"{name or 'the model'} is compiled, which stays in this process: "
                               "capture a script that compiles it, `tidemark capture "
                               "SCRIPT.py:FUNCTION`")


def described(tensor: torch.Tensor) -> dict[str, Any]:
    is_parameter = isinstance(tensor, torch.nn.Parameter)
    values = None
    if not is_parameter and tensor.numel() <= MOST_ELEMENTS and tensor.device.type != "meta":
        buffer = io.BytesIO()
        torch.save(tensor.detach().cpu().contiguous(), buffer)
        values = buffer.getvalue()
    return dict(shape=tuple(tensor.shape), strides=tensor.stride(), dtype=tensor.dtype,
                requires_grad=tensor.requires_grad, is_parameter=is_parameter, values=values)


def is_nameless(function: types.FunctionType) -> bool:
    name = function.__qualname__
    return "<lambda>" in name or "<locals>" in name or function.__module__ == "__main__"


def used_globals(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= used_globals(constant)
    return names


def made_function(code: bytes, name: str, defaults: Any, cells: tuple[Any, ...],
                  around: dict[str, Any]) -> types.FunctionType:
    scope = {"__builtins__": __builtins__, **around}
    closure = tuple(types.CellType(value) for value in cells)
    return types.FunctionType(marshal.loads(code), scope, name, defaults, closure or None)


class Packer(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=4)
        self.sent: dict[int, torch.Tensor] = {}

    def persistent_id(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return None
        is_new = id(value) not in self.sent
        self.sent[id(value)] = value  # kept, so that its number stays its own
        return id(value), described(value) if is_new else None

    def reducer_override(self, value: Any) -> Any:
        if exported.is_program(value):
            file = io.BytesIO()
            torch.export.save(value, file)
            return exported.loaded, (file.getvalue(), "the exported program")
        if isinstance(value, types.ModuleType):
            return importlib.import_module, (value.__name__,)
        if not isinstance(value, types.FunctionType) or not is_nameless(value):
            return NotImplemented
        around = {name: value.__globals__[name] for name in used_globals(value.__code__)
                  if name in value.__globals__}
        cells = tuple(cell.cell_contents for cell in value.__closure__ or ())
        return made_function, (marshal.dumps(value.__code__), value.__name__, value.__defaults__,
                               cells, around)


class Unpacker(pickle.Unpickler):
    """Makes the tensors anew on the device; ties stay."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.made: dict[int, torch.Tensor] = {}

    def persistent_load(self, key: Any) -> torch.Tensor:
        number, description = key
        if number not in self.made:
            self.made[number] = made_tensor(**description)
        return self.made[number]


def made_tensor(shape: Any, strides: Any, dtype: torch.dtype, requires_grad: bool,
                is_parameter: bool, values: bytes | None) -> torch.Tensor:
    if values is not None:
        tensor = torch.load(io.BytesIO(values), map_location="cpu", weights_only=True).to("cuda")
    else:
        tensor = torch.empty_strided(shape, strides, dtype=dtype, device="cuda")
    if is_parameter:
        return torch.nn.Parameter(tensor, requires_grad=requires_grad)
    return tensor.requires_grad_(requires_grad)


def require_model(model: Any) -> None:
    if isinstance(model, torch.nn.Module) or exported.is_program(model):
        return
    if callable(model):
        raise CaptureError("the model is a function: need a torch.nn.Module. A function that does a whole step is "
                           "captured from a script, `tidemark capture SCRIPT.py:FUNCTION`, where FUNCTION returns it")
    raise CaptureError(f"the model is {type(model).__name__}; need a torch.nn.Module, or a program of torch.export")


def packed(step: dict[str, Any]) -> bytes:
    refuse_compiled(step["model"])
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    is_file = main is not None and os.path.isfile(main)  # and not <stdin>
    file = io.BytesIO()
    pickle.dump(dict(main=main if is_file else None, path=sys.path), file)
    try:
        Packer(file).dump(step)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise CaptureError(f"the step cannot travel to the process of the capture: {error} (define "
                           "it in a module, or use `python -m tidemark.capture SCRIPT.py:FUNCTION`)"
                           ) from error
    return file.getvalue()


def unpacked(data: bytes) -> dict[str, Any]:
    from multiprocessing import spawn

    file = io.BytesIO(data)
    head = pickle.load(file)
    sys.path[:] = head["path"]
    if head["main"]:
        spawn._fixup_main_from_path(head["main"])  # type: ignore[attr-defined]
    try:
        return Unpacker(file).load()
    except AttributeError as error:
        raise CaptureError(f"{error}: what is defined in a notebook or at a prompt stays there; put "
                           "the model into a file and import it") from error
