"""What a capture is at, on a terminal: one line, which the next one takes the place of. Needs no PyTorch."""

from __future__ import annotations

import atexit
import sys

CLEAR = "\r\x1b[K"
_is_shown = False


def show() -> None:
    """From now on, where somebody looks."""
    global _is_shown
    _is_shown = sys.stderr.isatty()
    if _is_shown:
        atexit.register(clear)


def say(text: str) -> None:
    """The cursor stands at its beginning, so that what a script prints is written over it."""
    if _is_shown:
        print(f"{CLEAR}{text} …", end="\r", file=sys.stderr, flush=True)


def clear() -> None:
    if _is_shown:
        print(CLEAR, end="", file=sys.stderr, flush=True)


def step(number: int, of: int = 4) -> None:
    say(f"step {number} of {of}")
