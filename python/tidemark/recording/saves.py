"""What a script saves is left out: on the stand-in weights and states are no numbers, each step of a
capture would write them, and the file may be a real one. So is what rotates or uploads checkpoints.

Before the step runs, torch.save() of what lies on the host is no checkpoint, and is done: a data set
that is made once and read from its file.
"""

from __future__ import annotations

import functools
import importlib.abc
import io
import os
import pickle
import sys
from typing import Any, Callable

import torch

from .lines import Lines

TRAINER = "transformers.Trainer"
# By module: what is replaced, as whose it is said to be left out (None: nothing is said of it), and
# what it gives.
LEFT_OUT: dict[str, dict[str, tuple[str | None, Any]]] = {
    "torch.distributed.checkpoint.state_dict_saver": {
        name: ("torch.distributed.checkpoint", None) for name in ("save", "save_state_dict")},
    "safetensors.torch": {name: ("safetensors", None) for name in ("save_file", "save_model")},
    "safetensors.numpy": {"save_file": ("safetensors", None)},
    "transformers.modeling_utils": {"PreTrainedModel.save_pretrained": ("save_pretrained()", None)},
    "transformers.utils.hub": {"PushToHubMixin.push_to_hub": ("push_to_hub()", None)},
    "transformers.trainer": {"Trainer._save_checkpoint": (f"a checkpoint of {TRAINER}", None),
                             "Trainer.save_model": (f"{TRAINER}.save_model()", None),
                             "Trainer.save_state": (f"{TRAINER}.save_state()", None),
                             # What may be deleted when training is over: with 4.57, with 5.
                             "Trainer._sorted_checkpoints": (None, []),
                             "sort_checkpoints": (None, [])},
    "peft.peft_model": {"PeftModel.save_pretrained": ("save_pretrained()", None)},
    "accelerate.accelerator": {"Accelerator.save_state": ("Accelerator.save_state()", None),
                               "Accelerator.save_model": ("Accelerator.save_model()", None)},
    "timm.utils.checkpoint_saver": {
        "CheckpointSaver.save_checkpoint": ("timm's CheckpointSaver", (None, None)),
        "CheckpointSaver.save_recovery": ("timm's CheckpointSaver", None)},
}
_said: set[str] = set()
_unwritten: set[str] = set()  # paths
_step_runs = False


def step_runs() -> None:
    """From now on nothing is saved."""
    global _step_runs
    _step_runs = True


def say(name: str) -> None:
    if name in _said:
        return
    _said.add(name)
    place = Lines().current()
    print(f"tidemark capture: {place + ': ' if place else ''}{name} is left out: a capture has no numbers "
          "worth keeping, and the files may be real ones", file=sys.stderr)


class OfDevice(pickle.Pickler):
    """Looks whether what is to be saved lies on the device; what it writes nobody reads."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self.found = False

    def persistent_id(self, value: Any) -> Any:
        if not isinstance(value, (torch.Tensor, torch.UntypedStorage)):
            return None
        self.found = self.found or value.is_cuda
        return "a tensor"


def lies_on_device(value: Any) -> bool:
    pickler = OfDevice()
    try:
        pickler.dump(value)
    except Exception:  # which saving it says itself
        return False
    return pickler.found


def replace_save() -> None:
    plain = torch.save

    @functools.wraps(plain)
    def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        if not _step_runs and not lies_on_device(obj):
            return plain(obj, f, *args, **kwargs)
        if isinstance(f, (str, os.PathLike)):
            _unwritten.add(os.path.abspath(f))
        return say("torch.save()")

    torch.save = torch.serialization.save = save


def replace_renaming(name: str) -> None:
    """A file is written aside and takes the place of the last one, which stays here."""
    plain = getattr(os, name)

    @functools.wraps(plain)
    def renamed(source: Any, target: Any, **options: Any) -> None:
        if _unwritten and os.path.abspath(os.fsdecode(source)) in _unwritten:
            return _unwritten.add(os.path.abspath(os.fsdecode(target)))
        return plain(source, target, **options)

    setattr(os, name, renamed)


def leaves_out(plain: Callable[..., Any], name: str | None, result: Any) -> Callable[..., Any]:
    @functools.wraps(plain)
    def left_out(*_: Any, **__: Any) -> Any:
        if name is not None:
            say(name)
        return result

    return left_out


def replace_in(module: Any) -> None:
    for path, (name, result) in LEFT_OUT[module.__name__].items():
        owner, _, attribute = path.rpartition(".")
        at = getattr(module, owner, None) if owner else module
        plain = getattr(at, attribute, None)
        if plain is not None:  # not every version has all
            setattr(at, attribute, leaves_out(plain, name, result))


class WhenImported(importlib.abc.MetaPathFinder):
    """Replaces in modules that a script imports, right when they are there."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name not in LEFT_OUT:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        found = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        loader: Any = spec and spec.loader
        if loader is None:
            return spec
        plain = loader.exec_module

        def exec_module(module: Any) -> None:
            plain(module)
            replace_in(module)

        loader.exec_module = exec_module
        return spec


def install() -> None:
    """Before a user's modules import what is replaced here."""
    replace_save()
    for name in ("rename", "replace"):
        replace_renaming(name)
    for name in LEFT_OUT:
        if name in sys.modules:
            replace_in(sys.modules[name])
    sys.meta_path.insert(0, WhenImported())
