"""Writes a trace as the format of docs/trace_format.md has it: one tensor, block or op per line."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
from typing import Any

from .parts import Block, Op, Tensor, Trace
from .regions import written_shape
from .step import Recording, Update
from .trace import trace_of

VERSION = 6
OPTIMIZERS = {"AdamW": "adamw", "Adam": "adamw", "SGD": "sgd"}


def tensor_line(tensor: Tensor) -> dict[str, Any]:
    shape, dtype = written_shape(tensor.shape, tensor.dtype)
    line: dict[str, Any] = dict(name=tensor.name, shape=shape, dtype=dtype,
                                category=tensor.category)
    if tensor.trainable:
        line["trainable"] = True
    if tensor.storage is not None:
        line["storage"] = tensor.storage.name
    if tensor.held_until is not None:
        line["held_until"] = tensor.held_until
    return line


def block_line(block: Block) -> dict[str, Any]:
    return dict(name=block.name, input=block.input.name)


def op_line(op: Op) -> dict[str, Any]:
    line: dict[str, Any] = dict(name=op.name, kind=op.kind, inputs=[x.name for x in op.inputs],
                                outputs=[x.name for x in op.outputs])
    if op.line:
        line["line"] = op.line
    if op.block is not None:
        line["block"] = op.block
    if op.also_keeps:
        line["also_keeps"] = op.also_keeps
    if op.row is not None:
        line["row"] = {key: value for key, value in op.row.items() if value != {}}
    return line


def step_of(recording: Recording, arguments: argparse.Namespace, batch: int) -> dict[str, Any]:
    step = dict(batch=batch, precision=recording.precision,
                optimizer=OPTIMIZERS.get(recording.update.name, "sgd"))
    if recording.updates_in_backward:
        step["update_in_backward"] = True
    if recording.keeps_gradients:
        step["keep_gradients"] = True
    if recording.accumulate > 1:
        step["accumulate"] = recording.accumulate
    if arguments.sm != 80:
        step["compute_capability"] = arguments.sm
    if recording.framework:
        step["framework"] = recording.framework
    if recording.replicas and recording.replicas.ranks > 1:
        step["mesh"] = f"dp={recording.replicas.ranks}"
        step["shard"] = recording.replicas.shard
        if recording.replicas.policy is not None:
            step["master_weights"] = True
    return step


def update_line(update: Update, beside: int) -> dict[str, Any]:
    figures = dict(workspace_bytes=update.workspace + beside, scratch_bytes=update.scratch,
                   moved_bytes=update.moved, kernels=update.launches)
    return dict(optimizer=update.name, **{key: value for key, value in figures.items() if value})


def text_of(trace: Trace, head: dict[str, Any]) -> str:
    def lines(items: list[dict[str, Any]]) -> str:
        if not items:
            return "[]"
        return "[\n    " + ",\n    ".join(json.dumps(x, ensure_ascii=False) for x in items) + "\n  ]"

    parts = [f'  "{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in head.items()]
    parts.append(f'  "blocks": {lines([block_line(x) for x in trace.blocks])}')
    parts.append(f'  "tensors": {lines([tensor_line(x) for x in trace.tensors])}')
    parts.append(f'  "ops": {lines([op_line(x) for x in trace.ops])}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def write_beside(path: pathlib.Path, text: str) -> None:
    """Never half a file: written beside, then renamed."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


def write(recording: Recording, arguments: argparse.Namespace, classes: dict[str, str],
          model: str, batch: int) -> Trace:
    trace = trace_of(recording, classes)
    head = dict(format="tidemark-trace", version=VERSION, model=model, family="",
                step=step_of(recording, arguments, batch), loss=trace.loss.name,
                update=update_line(recording.update, trace.beside_update))
    if recording.calls is not None and recording.replicas is None:
        head["allocator_calls"] = dataclasses.asdict(recording.calls)
    write_beside(pathlib.Path(arguments.output), text_of(trace, head))
    return trace
