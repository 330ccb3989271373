"""The program `tidemark`: where it is, and one question to it. Everything that the package computes,
the program computes; its JSON is what comes back."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
from typing import Any, Sequence

from .errors import TidemarkError, UsageError

_BUNDLED = pathlib.Path(__file__).parent / "bin" / "tidemark"
_ERROR, _USAGE, _REGRESSION, _DOES_NOT_FIT = 1, 2, 3, 4


def program() -> str:
    """The path of the program: $TIDEMARK_PROGRAM, the one of this package, or the one on PATH."""
    named = os.environ.get("TIDEMARK_PROGRAM")
    if named:
        return named
    if _BUNDLED.is_file():
        return str(_BUNDLED)
    found = shutil.which("tidemark")
    if found:
        return found
    raise TidemarkError("the program tidemark is not here: install the package with pip, put the "
                        "program on PATH, or name it in TIDEMARK_PROGRAM")


def run(arguments: Sequence[str]) -> str:
    """What `tidemark ARGUMENTS…` prints. Raises UsageError or TidemarkError with its message."""
    try:
        done = subprocess.run([program(), *arguments], capture_output=True, text=True,
                              encoding="utf-8", stdin=subprocess.DEVNULL,
                              env={**os.environ, "NO_COLOR": "1", "COLUMNS": "120",
                                   "LC_ALL": "C.UTF-8"})
    except OSError as error:
        raise TidemarkError(f"{program()}: cannot be run: {error.strerror}") from error
    if done.returncode in (0, _REGRESSION, _DOES_NOT_FIT):
        return done.stdout
    message = done.stderr.strip().removeprefix("tidemark: ")
    if done.returncode == _USAGE:
        raise UsageError(message)
    if done.returncode < 0:
        message = f"{message} (the program ended by signal {-done.returncode})".strip()
    raise TidemarkError(message or f"the program ended with exit code {done.returncode}")


def ask(arguments: Sequence[str]) -> dict[str, Any]:
    """The program's answer in JSON."""
    return json.loads(run([*arguments, "--format", "json"]))
