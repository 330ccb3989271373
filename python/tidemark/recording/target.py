"""What a capture is told to run: SCRIPT.py:FUNCTION. Needs no PyTorch."""

from __future__ import annotations

import pathlib
import re

from .errors import CaptureError


def script_and_name(target: str) -> tuple[pathlib.Path, str]:
    path, _, name = target.rpartition(":")
    if not path or not name:
        raise CaptureError(f"{target}: need SCRIPT.py:FUNCTION")
    script = pathlib.Path(path).resolve()
    if not script.is_file():
        raise CaptureError(f"{path}: no such file")
    return script, name


def check_target(target: str) -> None:
    """Before PyTorch is looked for. A name that a script has from elsewhere it has in its text, too,
    unless it imports all there is."""
    script, name = script_and_name(target)
    text = script.read_text(encoding="utf-8", errors="replace")
    if not re.search(rf"\b{re.escape(name)}\b|import\s*\*", text):
        known = re.findall(r"^def (\w+)", text, re.MULTILINE)
        raise CaptureError(f"{target.rpartition(':')[0]}: no function named {name!r} (it has: "
                           f"{', '.join(known) or 'none'})")
