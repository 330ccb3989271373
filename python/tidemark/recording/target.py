"""What a capture is told to run: SCRIPT.py:FUNCTION, a program of torch.export (.pt2), or the
config.json of a model of transformers, or its folder. Needs no PyTorch."""

from __future__ import annotations

import pathlib
import re

from .errors import CaptureError


def is_program(target: str) -> bool:
    return target.endswith(".pt2")


def is_config(target: str) -> bool:
    return target.endswith(".json") or pathlib.Path(target).is_dir()


def module_in(target: str) -> str | None:
    """`pkg.train` of pkg.train:make_step, where this folder has pkg/train.py: a module of a package, which
    imports from others of it."""
    path = target.rpartition(":")[0]
    parts = path.split(".")
    is_one = all(part.isidentifier() for part in parts) and not pathlib.Path(path).is_file()
    return path if is_one and pathlib.Path(*parts).with_suffix(".py").is_file() else None


def script_and_name(target: str) -> tuple[pathlib.Path, str]:
    path, _, name = target.rpartition(":")
    if not path or not name:
        raise CaptureError(f"{target}: need SCRIPT.py:FUNCTION, package.module:FUNCTION, a config.json or "
                           "its folder")
    module = module_in(target)
    script = pathlib.Path(*module.split(".")).with_suffix(".py") if module else pathlib.Path(path)
    if not script.is_file():
        raise CaptureError(f"{path}: no such file")
    return script.resolve(), name


def check_target(target: str) -> None:
    """Before PyTorch is looked for."""
    if is_config(target):
        path = pathlib.Path(target)
        if not (path / "config.json" if path.is_dir() else path).is_file():
            raise CaptureError(f"{target}: no such file" if not path.is_dir() else
                               f"{target}: no config.json in it")
    elif not is_program(target):
        check_script(target)


def check_script(target: str) -> None:
    """A name that a script has from elsewhere it has in its text, too, unless it imports all there is."""
    script, name = script_and_name(target)
    text = script.read_text(encoding="utf-8", errors="replace")
    if not re.search(rf"\b{re.escape(name)}\b|import\s*\*", text):
        known = re.findall(r"^def (\w+)", text, re.MULTILINE)
        raise CaptureError(f"{target.rpartition(':')[0]}: no function named {name!r} (it has: "
                           f"{', '.join(known) or 'none'})")
