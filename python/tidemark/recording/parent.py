"""Starts the process on the stand-in, and says what became of it."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

from . import ends, stand_in
from .errors import CaptureError
from .options import check_config_options, check_names, typed
from .target import check_target

DEFAULT_DEVICE = "a100-80gb"
OURS = "tidemark capture: "
MOST_SAID = 1 << 14  # characters
_count = itertools.count(1)
PACKAGE = pathlib.Path(__file__).parent.parent


def device_folders() -> list[pathlib.Path]:
    """In an installed package, and in a checkout of the repository."""
    return [PACKAGE / "devices", PACKAGE.parent.parent / "simulator" / "devices"]


@dataclasses.dataclass(frozen=True)
class Target:
    """The device that the step is captured for."""

    capability: int  # as 80
    multiprocessors: int | None = None
    memory: int | None = None  # bytes
    title: str | None = None


def device_figures(name: str) -> Target:
    for folder in device_folders():
        path = folder / f"{name}.json"
        if path.is_file():
            data = json.loads(path.read_text())
            capability = data["compute_capability"]["value"].replace(".", "")
            figures = {key: figure["value"] for key, figure in data["figures"].items()}
            count = figures.get("sm_count")
            return Target(int(capability), int(count) if count else None, int(figures["capacity"]), data["title"])
    known = sorted(path.stem for folder in device_folders() for path in folder.glob("*.json"))
    raise CaptureError(f"no device named {name!r} (known: {', '.join(known) or 'none here'}; or "
                       "give its compute capability: sm=80)")


def target_of(device: str | None, sm: int | None, multiprocessors: int | None = None,
              memory: int | None = None, title: str | None = None) -> Target:
    if device is not None and sm is not None:
        raise CaptureError("device and sm both say whose kernels run: give one of them")
    if sm is not None:
        if not 50 <= sm <= 200:
            raise CaptureError(f"sm {sm}: need a compute capability without its point: 75, 80, 90")
        return Target(sm, multiprocessors, memory, title)
    if device is None and not any(folder.is_dir() for folder in device_folders()):
        return Target(80, multiprocessors or 108)
    return device_figures(device or DEFAULT_DEVICE)


def check_machine(beside_gpu: bool) -> None:
    if os.environ.get("TIDEMARK_STAND_IN"):
        raise CaptureError("a capture within a capture: put the call under "
                           "`if __name__ == \"__main__\":`")
    if not sys.platform.startswith("linux"):
        raise CaptureError("the stand-in for the CUDA runtime is for Linux; capture there (a "
                           "container does), the trace file is good everywhere")
    if stand_in.has_gpu() and not beside_gpu:
        raise CaptureError("this machine has a GPU, and the stand-in would take its place in the "
                           "child process: --beside-gpu (beside_gpu=True) says that this is meant")


def run_child(arguments: list[str], target: Target, keep_said: bool = False) -> tuple[int, str]:
    """Its exit code, and, where that is asked for, the last line of what it said of itself."""
    environment = stand_in.environment(target.capability, target.multiprocessors, target.memory, target.title)
    paths = [str(PACKAGE.parent), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    # Of a set of strings a model makes one thing after the other in the order of their hashes.
    environment.setdefault("PYTHONHASHSEED", "0")
    with tempfile.TemporaryDirectory(prefix="tidemark-") as folder:
        died_at = pathlib.Path(folder) / "died_at"
        command = [sys.executable, "-m", "tidemark.recording.child", "--sm", str(target.capability),
                   "--died-at", str(died_at), *arguments]
        with subprocess.Popen(command, env=environment | compiler_caches(folder),
                              stderr=subprocess.PIPE if keep_said else None) as process:
            try:
                said = passed_on(process.stderr) if keep_said else ""
                code = process.wait()
            except BaseException:
                process.kill()
                raise
        if code < 0:
            raise CaptureError(ends.death_by(-code, died_at))
    return code, said


def passed_on(stream: Any) -> str:
    """Shown as it comes: in a notebook, too, which has an sys.stderr of its own."""
    tail = ""
    for part in iter(lambda: stream.read1(1 << 16), b""):
        text = part.decode("utf-8", "replace")
        sys.stderr.write(text)
        sys.stderr.flush()
        tail = (tail + text)[-MOST_SAID:]
    return next((line[len(OURS):] for line in reversed(tail.splitlines()) if line.startswith(OURS)), "")


def compiler_caches(folder: str) -> dict[str, str]:
    """Nothing that is compiled for the stand-in is found by a run on a GPU."""
    return dict(TORCHINDUCTOR_CACHE_DIR=folder, TORCHINDUCTOR_FX_GRAPH_CACHE="0",
                TORCHINDUCTOR_AUTOGRAD_CACHE="0", TORCHINDUCTOR_COMPILE_THREADS="1")


def capture_script(target: str, output: pathlib.Path, options: argparse.Namespace) -> int:
    check_target(target)
    check_config_options(target, options)
    check_names(options.precision, options.optimizer)
    check_machine(options.beside_gpu)
    for_device = target_of(options.device, options.sm, options.multiprocessors, options.memory, options.title)
    arguments = [target, "--output", str(output), *typed(options)]
    if options.quiet:
        arguments.append("--quiet")
    for key in ("precision", "optimizer", "measured"):
        if getattr(options, key):
            arguments += [f"--{key}", getattr(options, key)]
    arguments += ["--", *options.script_arguments]
    return run_child(arguments, for_device)[0]


def capture_objects(model: Any, batch: Any, loss: Any, optimizer: Any, precision: str,
                    device: str | None, sm: int | None, output: pathlib.Path,
                    beside_gpu: bool) -> pathlib.Path:
    from . import exported, transport
    from .replicas import without_wrappers

    check_machine(beside_gpu)
    transport.require_model(model)
    check_names(precision, optimizer)
    for_device = target_of(device, sm)
    model, replicas = (model, None) if exported.is_program(model) else without_wrappers(model)
    step = dict(model=model, batch=batch, loss=loss, optimizer=optimizer, precision=precision,
                replicas=replicas)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "step.pickle"
        path.write_bytes(transport.packed(step))
        arguments = [str(path), "--packed", "--output", str(output)]
        code, said = run_child(arguments, for_device, keep_said=True)
    if code == ends.INTERRUPTED:
        raise KeyboardInterrupt
    if code != 0:
        raise CaptureError(said or f"the process of the capture ended with exit code {code}")
    return output


@functools.cache
def folder_of_process() -> tempfile.TemporaryDirectory[str]:
    """Goes when the process does."""
    return tempfile.TemporaryDirectory(prefix="tidemark-")


def path_of_its_own(model: Any) -> pathlib.Path:
    """Of a capture that names no file: two of them are two."""
    return pathlib.Path(folder_of_process().name) / f"{type(model).__name__}-{next(_count)}.trace.json"

