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


def script_and_name(target: str) -> tuple[pathlib.Path, str]:
    path, _, name = target.rpartition(":")
    if not path or not name:
        raise CaptureError(f"{target}: need SCRIPT.py:FUNCTION, a config.json or its folder")
    script = pathlib.Path(path).resolve()
    if not script.is_file():
        raise CaptureError(f"{path}: no such file")
    return script, name


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
