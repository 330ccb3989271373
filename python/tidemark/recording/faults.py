"""Where what a backward fails at was made: the stack of its error ends at the call of backward().

The step is run again while each node remembers the stack that it was made under (PyTorch's anomaly
mode, which is too slow for every capture), and says it when it fails again.
"""

from __future__ import annotations

import os
import re
import traceback
import warnings
from typing import Any, Callable

import torch

from .errors import CaptureError
from .lines import Lines, Whose

AUTOGRAD = os.path.dirname(torch.autograd.__file__) + os.sep
MIXED_DEVICES = re.compile(r"tensors to be on the same device|cpu.*cuda:0|cuda:0.*cpu")
# Of what make_step makes itself a capture takes care.
OF_DEVICES = "; what is made later, by the model, its loss or the step, needs device=\"cuda\""
HINTS = re.compile(r" Hint: enable anomaly detection|\. This could be because the operator doesn't exist")
OF_HIGHER_ORDER = re.compile(r"no rule registered for (?:HOP|HigherOrderOperator) (\w+) and mode")
# Of what a step asks of numbers.
OF_ZEROS = (ArithmeticError, AssertionError)
SAYS_ZERO = re.compile(r"\b(loss|norm|grad\w*)\b.*(\b0\b|\bzero\b|\bnan\b|finite)", re.IGNORECASE)
ARE_ZERO = "; numbers that depend on weights count as zero in a capture: leave out what asks for others"
OF_NESTED = re.compile(r"NestedTensor")
FRAME = re.compile(r'^  File "(.+)", line (\d+)', re.MULTILINE)


def has_no_line(error: BaseException) -> bool:
    """It is of a backward, and not of code of the user's that a backward runs."""
    lines = Lines()
    names = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    at = max((i for i, name in enumerate(names) if name.startswith(AUTOGRAD)), default=len(names))
    return at < len(names) and all(lines.whose(name) is not Whose.USERS for name in names[at:])


def innermost(stack: str) -> str:
    """Of the frames of a stack as it is printed, as Lines.current() has it."""
    lines, in_package = Lines(), ""
    for name, number in reversed(FRAME.findall(stack)):
        whose, path = lines.place(name)
        if whose is Whose.USERS:
            return f"{path}:{number}"
        if whose is Whose.PACKAGE and not in_package:
            in_package = f"{path}:{number}"
    return in_package


def asks_for_numbers(error: BaseException) -> bool:
    """Of a step that ran, by run_or_say_where()."""
    ran = any(frame.filename == __file__ for frame in traceback.extract_tb(error.__traceback__))
    return ran and (isinstance(error, OF_ZEROS) or SAYS_ZERO.search(str(error)) is not None)


def said_by(error: BaseException) -> str:
    """Its type and message in one line: the last one where it tells of an error elsewhere."""
    lines = [line for line in str(error).splitlines() if line.strip()] or ["no message"]
    if any(line.startswith("Traceback (most recent call last)") or line.startswith("Original ")
           for line in lines):
        return lines[-1].strip()
    if isinstance(error, StopIteration):
        return "the data ends here, and a capture runs a step up to five times"
    if OF_NESTED.search(lines[0]):
        return ("nested tensors are not captured: pad them, or have their values in one tensor and their "
                "offsets in another")
    operator = OF_HIGHER_ORDER.search(lines[0])
    if operator:
        return f"{operator[1]} is captured within torch.compile alone: torch.compile({operator[1]})(…)"
    said = f"{type(error).__name__}: {HINTS.split(lines[0].strip())[0]}"
    if MIXED_DEVICES.search(said):
        return said + OF_DEVICES
    return said + (ARE_ZERO if asks_for_numbers(error) else "")


def made_at(run: Callable[[], Any]) -> str:
    with warnings.catch_warnings(record=True) as said, \
            torch.autograd.set_multithreading_enabled(False), \
            torch.autograd.set_detect_anomaly(True, check_nan=False):
        warnings.simplefilter("always")
        try:
            run()
        except Exception:  # as before
            pass
    stacks = [str(each.message) for each in said
              if str(each.message).startswith("Error detected in ")]
    return innermost(stacks[0]) if stacks else ""


def run_or_say_where(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except CaptureError:
        raise
    except Exception as error:
        place = made_at(run) if has_no_line(error) else ""
        if not place:
            raise
        raise CaptureError(f"{place}: the backward of what is made here fails: "
                           f"{said_by(error)}") from error
