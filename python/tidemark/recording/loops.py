"""A step of the user's own: a function that does what the body of a training loop does.

It is cut into passes. One begins with the first call of a module, or the first operation on what
needs a gradient; its backward() ends it, and what follows, until the next begins, is its update.
Where a later backward() goes through what it made, it is inside of that one's pass. Passes that are
alike are micro-batches, written once. Of others the one that needs most is written.
"""

from __future__ import annotations

import gc
import sys
from typing import Any, Callable

import torch

from . import compiled, held, progress, step
from .cast import Discovery
from .chance import Chance, are_alike, require_alike
from .errors import CaptureError
from .faults import run_or_say_where
from .history import History
from .hooks import on_saved_tensors
from .lines import Lines
from .meter import Meter
from .optimizers import Optimizers
from .passes import Writer
from .recorder import Recorder
from .watching import watched


def missing_of(run: Callable[[], Any], has_backward: bool) -> str:
    code = getattr(run, "__code__", None)
    place = Lines().place(code.co_filename)[1] + f":{code.co_firstlineno}: " if code else ""
    missing = "step() of a torch.optim.Optimizer, and weights that are written over by hand are not known " \
              "as an update" if has_backward else \
              "backward(), nor torch.autograd.grad() of what an optimizer updates, and gradients of torch.func are a " \
              "part of the forward"
    return (f"{place}the function that make_step returned calls no {missing}: it is a whole step, up to "
            "the optimizer's (or return the model, its batch and loss)")


def run_with(run: Callable[[], Any], writer: Writer, by_hand: frozenset[int]) -> Writer:
    with watched(writer, by_hand), step.checkpoints_told_to(writer.checkpoint_called), \
            step.one_count_of_nodes(), writer, on_saved_tensors(writer.pack):
        run()
    writer.ended()
    return writer


def record(run: Callable[[], Any],
           history: History) -> tuple[step.Step, list[step.Recording], list[int], list[Recorder]]:
    """Of each kind of pass one, in the fourth step; how often it comes in `accumulate`. Samples, and recorders of
    all that looked like a pass."""
    gc.collect()
    gc.disable()
    found, chance = Discovery(), Chance()
    history.mark()
    progress.step(1)
    with watched(found):
        run_or_say_where(run)
    cast = found.cast
    by_hand = frozenset() if found.passes else frozenset(found.by_hand)
    if not (found.passes or by_hand) or not cast.optimizers:
        raise CaptureError(missing_of(run, found.passes > 0))
    whole = cast.as_step()
    trained = [p for p in whole.model.parameters() if p.requires_grad and p.device.type == "cuda"]
    optimizers = Optimizers(cast.optimizers, trained)
    meter = Meter()
    compiled.free_what_compiling_left()
    history.mark()
    chance.again()
    progress.step(2)
    with watched(meter, by_hand):
        run()
    meter.ended()
    history.mark()
    history.mark()
    calls = history.end()

    def written(inside: set[int], for_graph: bool) -> Writer:
        chance.again()
        return run_with(run, Writer(whole, optimizers, inside, for_graph), by_hand)

    progress.step(3)
    first = written(set(), for_graph=True)
    inside = {at for end, oldest in enumerate(first.reaches) for at in range(oldest, end)}
    with_graphs = (written(inside, for_graph=True) if inside else first).passes
    progress.step(4)
    last = written(inside, for_graph=False)
    passes = last.passes
    measured = meter.whole_passes(inside)
    if not len(measured) == len(with_graphs) == len(passes):
        raise CaptureError(f"the step has {len(measured)} backward passes at one time and "
                           f"{len(passes)} at another: capture one that is always alike")
    for one, other in zip(passes, with_graphs):
        if not compiled.is_used():  # graphs of a compiler are operators in the one run only
            require_alike(other.recorder.operations, one.recorder.operations)
        one.graph = other.graph
    recordings = [each.recording(whole, len(optimizers.trained)) for each in passes]
    for recording, figures in zip(recordings, measured):
        recording.measured, recording.calls, recording.order = figures, calls, history.order
    return whole, recordings, [each.samples() for each in passes], last.recorders


def is_own_step(returned: Any) -> bool:
    return callable(returned) and not isinstance(returned, (torch.nn.Module, type))


def weights_of(recording: step.Recording) -> tuple[set[int], set[str]]:
    """That gradients come to: of the graph, and of what reentrant checkpoints make again. Leaves that the step
    makes are others in each pass."""
    recorder = recording.recorder
    recomputed = {recorder.storages[number].name for run in recorder.nodes.values() for number in run.trained}
    return recording.graph.leaves & recording.leaves.keys(), recomputed


def is_of_kind(one: step.Recording, other: step.Recording) -> bool:
    return weights_of(one) == weights_of(other) and \
        are_alike(one.recorder.operations, other.recorder.operations)


def groups_of(recordings: list[step.Recording]) -> list[list[int]]:
    """Passes that follow each other, are alike, and whose gradients of the same weights add up to one
    update."""
    groups: list[list[int]] = []
    for at, recording in enumerate(recordings):
        before = recordings[at - 1]
        if at > 0 and not before.has_update and recording.adds and \
                is_of_kind(before, recording):
            groups[-1].append(at)
        else:
            groups.append([at])
    return groups


def of_kinds(recordings: list[step.Recording]) -> str:
    """Of one kind are those, too, that an update each follows, as of minibatches of one rollout."""
    kinds: list[step.Recording] = []
    for recording in recordings:
        if not any(is_of_kind(kind, recording) for kind in kinds):
            kinds.append(recording)
    if len(kinds) == len(recordings):
        return "of different kinds"
    return "that are alike" if len(kinds) == 1 else f"of {len(kinds)} kinds"


def captured(run: Callable[[], Any], arguments: Any,
             history: History) -> tuple[step.Step, step.Recording, int, list[Recorder]]:
    for name in ("precision", "optimizer"):
        if getattr(arguments, name):
            raise CaptureError(f"--{name} cannot change a step of one's own: the function that "
                               "make_step returned says itself what it does")
    whole, recordings, batches, recorders = record(run, history)
    groups = groups_of(recordings)
    at = max(range(len(recordings)), key=lambda at: recordings[at].measured.most)
    number, chosen = next((i, group) for i, group in enumerate(groups) if at in group)
    first = recordings[chosen[0]]
    first.accumulate, first.update = len(chosen), recordings[chosen[-1]].update
    if len(chosen) > 1:
        held.add_what_goes_between(first.recorder, recordings[chosen[1]].recorder)
    for each in (recordings[i].measured for i in chosen):
        for key in ("forward", "backward", "optimizer"):
            setattr(first.measured, key, max(getattr(first.measured, key), getattr(each, key)))
    peaks = first.recorder.live_peaks
    for each_peaks in (recordings[i].recorder.live_peaks for i in chosen):
        peaks.update((key, max(peaks[key], each_peaks[key])) for key in peaks)
    if len(groups) > 1:
        print(f"tidemark capture: of {len(groups)} passes {of_kinds([recordings[group[0]] for group in groups])} this "
              f"is number {number + 1}, which needs most memory", file=sys.stderr)
    return whole, first, batches[chosen[0]], recorders
