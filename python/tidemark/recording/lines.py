"""Which line of the model's code an operation was called from.

The innermost frame of the user's own files counts: not of PyTorch, of installed packages and of
Python itself. Where no such file is on the stack, as in a model of transformers that nothing wraps,
it is the innermost frame of an installed package other than PyTorch.
"""

from __future__ import annotations

import enum
import os
import sys
import sysconfig
import types

import torch

INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)


class Whose(enum.Enum):
    USERS = 0
    PACKAGE = 1
    NOBODYS = 2  # PyTorch's, Python's, ours


def folder(path: str) -> str:
    return os.path.abspath(path) + os.sep


class Lines:
    """Remembers whose each file is, because the same ones are on the stack again and again."""

    def __init__(self) -> None:
        self.passed_over = [folder(os.path.dirname(torch.__file__)),
                            folder(os.path.dirname(os.path.dirname(__file__)))]
        self.python = [folder(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
        self.known: dict[str, tuple[Whose, str]] = {}

    def whose(self, path: str) -> Whose:
        if path.startswith("<") or any(path.startswith(x) for x in self.passed_over):
            return Whose.NOBODYS
        if any(part in path for part in INSTALLED):
            return Whose.PACKAGE
        return Whose.NOBODYS if any(path.startswith(x) for x in self.python) else Whose.USERS

    def place(self, path: str) -> tuple[Whose, str]:
        if path not in self.known:
            self.known[path] = self.whose(path), short(path)
        return self.known[path]

    def current(self) -> str:
        """Of who called the operation that is being recorded: "train.py:41", or nothing."""
        frame: types.FrameType | None = sys._getframe(1)
        in_package = ""
        while frame is not None:
            whose, path = self.place(frame.f_code.co_filename)
            if whose is Whose.USERS:
                return f"{path}:{frame.f_lineno}"
            if whose is Whose.PACKAGE and not in_package:
                in_package = f"{path}:{frame.f_lineno}"
            frame = frame.f_back
        return in_package


def short(path: str) -> str:
    """As an import would find it: behind the longest entry of sys.path, or the file alone."""
    roots = [folder(entry) for entry in sys.path if path.startswith(folder(entry))]
    return path[max(map(len, roots)):] if roots else os.path.basename(path)
