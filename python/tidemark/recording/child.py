"""The process on the stand-in: loads a user's script, runs its step, writes the trace."""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import os
import pathlib
import sys
import warnings
from typing import Any

from . import ends, progress
from .errors import CaptureError
from .options import add_config_options, behind_dashes
from .target import is_config, is_program, module_in, script_and_name


def module_of(target: str, script: pathlib.Path) -> Any:
    """A module of a package by its name, a script by its file."""
    name = module_in(target)
    if name is not None:
        sys.path.insert(0, os.getcwd())
        return importlib.import_module(name)
    sys.path.insert(0, str(script.parent))
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[script.stem] = module
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        if "no known parent package" not in str(error):
            raise
        raise CaptureError(f"{script}: {error}; from the folder that holds the package, capture it by "
                           f"its module's name, as package.{script.stem}:FUNCTION") from error
    return module


def load_function(target: str, script_arguments: list[str]) -> Any:
    script, name = script_and_name(target)
    sys.argv = [str(script), *script_arguments]
    module = module_of(target, script)
    function = getattr(module, name, None)
    if not callable(function):
        known = [key for key, value in vars(module).items()
                 if callable(value) and getattr(value, "__module__", "") == module.__name__]
        raise CaptureError(f"{target.rpartition(':')[0]}: no function named {name!r} (it has: "
                           f"{', '.join(known) or 'none'})")
    return function


def place_of_function(target: str) -> str:
    """Where the stack of an error has no line of the user's: a step's own operators, say."""
    path, _, name = target.rpartition(":")
    module = sys.modules.get(module_in(target) or pathlib.Path(path).stem)
    code = getattr(getattr(module, name, None), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}: " if code is not None else ""


def require_no_arguments(function: Any, target: str) -> None:
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise CaptureError(f"{place_of_function(target)}a capture calls {function.__name__}() with "
                           f"nothing: {error}; give it a default") from error
    except ValueError:  # it has none that Python knows
        pass


def what_to_run(arguments: argparse.Namespace) -> Any:
    if not arguments.packed and is_program(arguments.target):
        from . import exported

        return exported.step_of(arguments.target)
    if not arguments.packed and is_config(arguments.target):
        from . import configs

        return configs.step_of(arguments.target, arguments)
    if not arguments.packed:
        function = load_function(arguments.target, arguments.script_arguments)
        require_no_arguments(function, arguments.target)
        return function()
    from . import transport

    return transport.unpacked(pathlib.Path(arguments.target).read_bytes())


def place_of(error: BaseException, script: str) -> str:
    """File and line where it went wrong: the innermost of the user's code, or else of the package
    whose model it is."""
    from .lines import Lines, Whose

    lines, folder = Lines(), str(pathlib.Path(script).resolve().parent)
    at, found, in_package = error.__traceback__, "", ""
    while at is not None:
        name = at.tb_frame.f_code.co_filename
        whose, path = lines.place(name)
        if name.startswith(folder):
            found = f"{name}:{at.tb_lineno}: "
        elif whose is Whose.USERS:
            found = f"{path}:{at.tb_lineno}: "
        elif whose is Whose.PACKAGE:
            in_package = f"{path}:{at.tb_lineno}: "
        at = at.tb_next
    return found or in_package


def batch_of(batch: Any) -> int:
    """Samples: as many as there are in a list of pictures, or else along the first axis."""
    import torch
    from torch.utils._pytree import tree_leaves

    first = batch[0] if isinstance(batch, (list, tuple)) and batch else batch
    if isinstance(first, list) and first and isinstance(first[0], torch.Tensor) and \
            first[0].dim() > 0:
        return len(first)
    tensors = [x for x in tree_leaves(batch) if isinstance(x, torch.Tensor) and x.dim() > 0]
    return tensors[0].shape[0] if tensors else 1


def captured(made: Any, arguments: argparse.Namespace, history: Any) -> tuple[Any, int]:
    from . import step

    made.precision = arguments.precision or made.precision
    made.optimizer = arguments.optimizer or made.optimizer
    step.place(made)
    return step.record(made, history), batch_of(made.batch)


def run(arguments: argparse.Namespace) -> None:
    progress.say("importing PyTorch")
    import torch

    from . import (accumulation, compiled, convolutions, document, exported, history, hooks, host, host_data,
                   kernels, loaders, loops, replicas, saves, scripted, step, streams, values, watching)

    warnings.filterwarnings("ignore")
    torch.backends.cudnn.enabled = False
    torch.set_num_threads(1)
    torch.distributions.Distribution.set_default_validate_args(False)  # no number means anything
    step.install_groups()
    compiled.install_compile()
    replicas.install()
    hooks.install()
    loaders.install()
    host.install()
    streams.install()
    kernels.install()
    scripted.install()
    exported.install()
    watching.install()
    saves.install()
    values.install()
    accumulation.learn()
    asked = history.History()
    origins = host_data.Origins()
    progress.say("making the model" if arguments.packed else f"running {pathlib.Path(arguments.target).name}")
    with values.Values() as known:
        known.seen = origins.note
        with torch.device("cuda"):
            returned = what_to_run(arguments)
        known.seen = None
        saves.step_runs()
        if loops.is_own_step(returned):
            made, recording, batch, recorders = loops.captured(returned, arguments, asked)
        else:
            made = step.as_step(returned)
            recording, batch = captured(made, arguments, asked)
            recorders = [recording.recorder]
    classes = {compiled.plain_name(name): type(module).__name__
               for name, module in made.model.named_modules()}
    model = getattr(made.model, "_orig_mod", made.model)
    progress.say("writing the trace")
    host_data.say(recorders, recording.recorder, origins)
    trace = document.write(recording, arguments, classes, type(model).__name__, batch)
    if arguments.measured:
        report_measured(recording, arguments.measured)
    for text in trace.unexplained:
        print(f"tidemark capture: kept beyond the forward by the model itself: {text}",
              file=sys.stderr)
    convolutions.report(recording.recorder.convolution_scratch)


def report_measured(recording: Any, path: str) -> None:
    """What PyTorch's allocator said of the step, for whoever compares."""
    import dataclasses
    import json

    saved = sum(recording.saved.values())
    with open(path, "w", encoding="utf-8") as file:
        allocated = dataclasses.asdict(recording.measured)
        json.dump(dict(saved=saved, live=recording.recorder.live_peaks,
                       reserved=allocated.pop("reserved"), allocated=allocated,
                       parameters=recording.parameters, trainable=recording.trainable,
                       versions=recording.versions), file)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("--packed", action="store_true")
    parser.add_argument("--output", required=True)
    parser.add_argument("--precision")
    parser.add_argument("--optimizer")
    parser.add_argument("--sm", type=int, default=80)
    parser.add_argument("--measured")
    add_config_options(parser)
    parser.add_argument("--died-at")
    parser.add_argument("--quiet", action="store_true")
    argv, script_arguments = behind_dashes(argv)
    arguments = parser.parse_args(argv)
    arguments.script_arguments = script_arguments
    ends.install(arguments.died_at)
    if not arguments.quiet:
        progress.show()
    try:
        run(arguments)
    except CaptureError as error:
        print(f"tidemark capture: {error}", file=sys.stderr)
        return 1
    except (SystemExit, KeyboardInterrupt) as error:
        print(f"tidemark capture: {place_of(error, script_of(arguments))}{ends.said_by(error)}", file=sys.stderr)
        return 1
    except Exception as error:  # of the user's code, or of what PyTorch does with it
        import traceback

        if os.environ.get("TIDEMARK_TRACEBACK"):
            traceback.print_exc()
        from .faults import said_by

        place = place_of(error, script_of(arguments)) or place_of_function(arguments.target)
        print(f"tidemark capture: {place}{said_by(error)} (TIDEMARK_TRACEBACK=1 shows where)", file=sys.stderr)
        return 1
    return 0


def script_of(arguments: argparse.Namespace) -> str:
    return arguments.target.rpartition(":")[0] or arguments.target


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
