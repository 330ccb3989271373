"""What is asked for by name, options of a config.json's step, which SCRIPT.py:FUNCTION says by what it
returns, and what stands behind --, which is the script's. Needs no PyTorch."""

from __future__ import annotations

import argparse

from .errors import CaptureError
from .target import is_config, is_program


PRECISIONS = ("fp32", "tf32", "amp-bf16", "amp-fp16", "bf16")
OPTIMIZERS = ("adamw", "adam", "sgd")


def check_names(precision: object, optimizer: object) -> None:
    """Before PyTorch is imported. An optimizer may be an object."""
    if isinstance(precision, str) and precision not in PRECISIONS:
        raise CaptureError(f"no precision named {precision!r} (known: {', '.join(PRECISIONS)})")
    if isinstance(optimizer, str) and optimizer not in OPTIMIZERS:
        raise CaptureError(f"no optimizer named {optimizer!r} (known: {', '.join(OPTIMIZERS)}; or give a function "
                           "of the parameters)")


def count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)


COUNTS = {"batch": "samples (default: 1)",
          "sequence": "tokens per sample, or numbers of a sound (default: the model's positions, at "
                      "most 2048)",
          "target-sequence": "tokens that an encoder-decoder writes (default: as many as it reads)",
          "image": "pixels per side (default: the config's)"}
NAMES = {"head": "lm, mlm, sequence-classification, … (default: what the config's architectures name)",
         "attention": "sdpa or math (default: what transformers takes)"}
SHORT = {"batch": ["-b"], "sequence": ["-s"]}


def add_config_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the step of a config.json")
    for name, text in COUNTS.items():
        group.add_argument(*SHORT.get(name, []), f"--{name}", type=count, metavar="N", help=text)
    for name, text in NAMES.items():
        group.add_argument(f"--{name}", metavar="NAME", help=text)
    group.add_argument("--padded", action="store_true", help="one token is padding")


def behind_dashes(argv: list[str]) -> tuple[list[str], list[str]]:
    """What is ours, and what is the script's own."""
    at = argv.index("--") if "--" in argv else len(argv)
    return argv[:at], argv[at + 1:]


def typed(options: argparse.Namespace) -> list[str]:
    """As they would be typed."""
    words: list[str] = []
    for name in (*COUNTS, *NAMES, "padded"):
        value = getattr(options, name.replace("-", "_"))
        if value:
            words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return words


def check_config_options(target: str, options: argparse.Namespace) -> None:
    given = typed(options)
    if given and not is_config(target):
        raise CaptureError(f"{given[0]} is for a config.json: a script, and a program of torch.export, "
                           "makes model and batch itself")
    if options.script_arguments and (is_config(target) or is_program(target)):
        raise CaptureError(f"{target} is no script, and takes no arguments behind --")
