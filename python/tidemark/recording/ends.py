"""Ways in which a script ends the process of a capture before its step is captured. Needs no PyTorch."""

from __future__ import annotations

import faulthandler
import os
import pathlib
import signal
import sys
from typing import Any

INTERRUPTED = 128 + signal.SIGINT  # as shells have it


def install(died_at: str | None) -> None:
    """`died_at`: the file that says the stack of one who dies by a signal."""
    leave = os._exit
    # At once: what a script does about it, saving a checkpoint, say, is for a run.
    signal.signal(signal.SIGINT, lambda *_: leave(INTERRUPTED))
    if died_at:
        faulthandler.enable(open(died_at, "w", encoding="utf-8"), all_threads=False)
    process = os.getpid()

    def left(code: int) -> Any:
        if os.getpid() == process:  # and no fork of it
            say_where(f"os._exit({code})")
            leave(1)
        leave(code)

    setattr(os, "_exit", left)


def ended_by(call: str) -> str:
    return f"{call} ends the script here, before its step is captured"


def say_where(call: str) -> None:
    from .lines import Lines

    place = Lines().current()
    print(f"tidemark capture: {place + ': ' if place else ''}{ended_by(call)}", file=sys.stderr, flush=True)


def said_by(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        code = "" if error.code is None else repr(error.code)
        return ended_by(f"sys.exit({code})")
    return ended_by(type(error).__name__)


def place_of_death(died_at: pathlib.Path) -> str:
    """The line of the user's that ran: of a stack whose innermost frame comes first."""
    lines = died_at.read_text(encoding="utf-8", errors="replace").splitlines() if died_at.exists() else []
    if not lines:
        return ""
    from .faults import innermost

    place = innermost("\n".join(reversed(lines)))
    return f"{place}: " if place else ""


def death_by(number: int, died_at: pathlib.Path) -> str:
    name = signal.Signals(number).name
    if number == signal.SIGKILL:
        return f"the process of the capture was ended ({name}): by the system, where memory is short"
    return (f"{place_of_death(died_at)}the process of the capture died here ({name}): what is called fails on a "
            "GPU, too, or asks the stand-in for more than it can answer; it is tested with PyTorch 2.6 and 2.9 "
            "(CUDA 12) and 2.15 (CUDA 13)")
