"""`python -m tidemark.capture SCRIPT.py:FUNCTION -o step.trace.json`, or of a config.json."""

from __future__ import annotations

import argparse
import pathlib
import signal
import sys

from .recording import ends, parent
from .recording.errors import CaptureError
from .recording.options import OPTIMIZERS, PRECISIONS, add_config_options, behind_dashes

DESCRIPTION = """Writes the trace of a training step of any PyTorch model, without a GPU.
FUNCTION takes nothing and returns (model, batch), (model, batch, loss), (model, batch, loss,
optimizer), or a function that does a whole step. Of the config.json of a model of transformers, or
its folder, model and batch are made here. What follows -- are the script's own arguments."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tidemark.capture", description=DESCRIPTION)
    parser.add_argument("target", metavar="SCRIPT.py:FUNCTION|CONFIG")
    parser.add_argument("-o", "--output", default="step.trace.json", help="the trace file")
    parser.add_argument("--device", help="whose kernels PyTorch chooses: a name that `tidemark "
                        "devices` lists (default: a100-80gb)")
    parser.add_argument("--sm", type=int, help="its compute capability instead: 75, 80, 90, …")
    parser.add_argument("--multiprocessors", type=int, help="how many it has; some kernels' "
                        "scratch depends on it")
    parser.add_argument("--precision", help=f"{', '.join(PRECISIONS)} (default: what FUNCTION says, or fp32)")
    parser.add_argument("--optimizer", help=f"{', '.join(OPTIMIZERS)} (default: what FUNCTION says, or adamw)")
    parser.add_argument("--beside-gpu", action="store_true", help="although this machine has a GPU, "
                        "which is not used")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on a terminal")
    add_config_options(parser)
    parser.add_argument("--measured", help=argparse.SUPPRESS)
    # Of the device, beside --sm, by the program, which knows device files.
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--title", help=argparse.SUPPRESS)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # and with it the child
    argv, script_arguments = behind_dashes(sys.argv[1:] if argv is None else argv)
    arguments = parser.parse_args(argv)
    arguments.script_arguments = script_arguments
    try:
        return parent.capture_script(arguments.target, pathlib.Path(arguments.output), arguments)
    except CaptureError as error:
        print(f"tidemark capture: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return ends.INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
