"""From Python values to what one would type."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import tempfile
from typing import Any, Iterator, Mapping, Sequence, Union

# A preset's name; the path of a config.json, a trace file or a memory snapshot; a config as a
# mapping, or as an object of transformers.
Step = Union[str, "os.PathLike[str]", Mapping[str, Any], Any]


def option_arguments(options: Mapping[str, Any]) -> list[str]:
    """`batch=8, ema=True, max_batch=None` as `--batch 8 --ema`. A list is joined with commas."""
    arguments: list[str] = []
    for name, value in options.items():
        flag = "--" + name.strip("_").replace("_", "-")
        if value is None:
            continue
        if value is True:
            arguments.append(flag)
        elif value is False:
            arguments.append("--no-" + flag[2:])
        else:
            arguments.append(f"{flag}={_text(value)}")
    return arguments


def _text(value: Any) -> str:
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, (list, tuple)):
        return ",".join(_text(item) for item in value)
    return str(value)


@contextlib.contextmanager
def subject_of(step: Step) -> Iterator[str]:
    """What names the step on a command line, for as long as it takes to answer."""
    if isinstance(step, (str, os.PathLike)):
        yield os.fspath(step)
        return
    config = step if isinstance(step, Mapping) else getattr(step, "to_dict", lambda: None)()
    if not isinstance(config, Mapping):
        raise TypeError(f"a step is a preset's name, a path, a config or what capture() returns, "
                        f"not a {type(step).__name__}")
    with tempfile.TemporaryDirectory(prefix="tidemark-") as folder:
        path = pathlib.Path(folder) / "config.json"
        path.write_text(json.dumps(dict(config), default=str), encoding="utf-8")
        yield str(path)


def strategy_arguments(strategies: str | Sequence[str] | None) -> list[str]:
    return option_arguments({"strategies": strategies})
