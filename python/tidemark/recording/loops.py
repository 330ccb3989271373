"""A step of the user's own: a function that does what the body of a training loop does.

It is cut into passes. One begins with the first call of a module, or the first operation on what
needs a gradient; its backward() ends it, and what follows, until the next begins, is its update.
Passes that are alike are micro-batches, written once. Of others the one that needs most is written.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import sys
from typing import Any, Callable, Iterator

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from . import compiled, step
from .errors import CaptureError
from .graph import Graph
from .lines import Lines
from .optimizers import Optimizers, checked
from .recorder import Recorder
from .replicas import without_wrappers

DETACH = torch.ops.aten.detach.default  # and what .data is
AMP = {torch.bfloat16: "amp-bf16", torch.float16: "amp-fp16"}
RULE = "a capture takes steps whose backward passes have a graph and a loss each"


@dataclasses.dataclass
class Cast:
    """Who takes part, seen by running the step once: outermost modules and optimizers."""

    models: list[torch.nn.Module] = dataclasses.field(default_factory=list)
    optimizers: list[Any] = dataclasses.field(default_factory=list)
    autocast: torch.dtype | None = None

    def saw_module(self, module: torch.nn.Module) -> None:
        if all(module is not known for known in self.models):
            self.models.append(module)
        if torch.is_autocast_enabled():
            self.autocast = torch.get_autocast_gpu_dtype()

    def saw_optimizer(self, optimizer: Any) -> None:
        if all(optimizer is not known for known in self.optimizers):
            self.optimizers.append(optimizer)

    def precision(self) -> str:
        if self.autocast:
            return AMP.get(self.autocast, "fp32")
        floats = [p.dtype for model in self.models for p in model.parameters()
                  if p.is_floating_point()]
        if floats and all(dtype is torch.bfloat16 for dtype in floats):
            return "bf16"
        return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "fp32"

    def as_step(self) -> step.Step:
        """One module that has all of them."""
        inner = {id(part) for model in self.models for part in model.modules() if part is not model}
        roots = [model for model in self.models if id(model) not in inner]
        bared = [without_wrappers(root) for root in roots]
        if len(roots) == 1:
            whole, replicas = bared[0]
        else:
            names: dict[str, torch.nn.Module] = {}
            for model, _ in bared:
                name = type(model).__name__
                while name in names:
                    name += "_"
                names[name] = model
            whole, replicas = torch.nn.ModuleDict(names), None
        return step.Step(whole, (), precision=self.precision(), replicas=replicas)


class Watcher:
    """Is told what the step does."""

    def module_called(self, module: Any, inputs: Any) -> None: ...
    def module_left(self, module: Any) -> None: ...
    def optimizer_stepped(self, optimizer: Any) -> None: ...
    def forward_ended(self, loss: torch.Tensor) -> None: ...
    def backward_ended(self) -> None: ...
    def ended(self) -> None: ...


def loss_among(tensors: Any, retains: bool) -> torch.Tensor:
    place = Lines().current()
    place = f"{place}: " if place else ""
    losses = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    if len(losses) != 1 or losses[0].numel() != 1:
        raise CaptureError(f"{place}backward() of {len(losses)} tensors, the first "
                           f"{tuple(losses[0].shape)}: {RULE}; add them up to one number")
    if retains:
        raise CaptureError(f"{place}backward(retain_graph=True): {RULE}; add the losses up, or leave "
                           "it out where the graph is not used again")
    return losses[0]


@contextlib.contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    from torch.optim.optimizer import register_optimizer_step_post_hook

    plain = torch.autograd.backward
    is_running = False

    def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None,
                 *more: Any, **options: Any) -> None:
        nonlocal is_running
        if is_running:  # a reentrant checkpoint's
            return plain(tensors, grad_tensors, retain_graph, *more, **options)
        watcher.forward_ended(loss_among(tensors, bool(retain_graph)))
        is_running = True
        try:
            plain(tensors, grad_tensors, retain_graph, *more, **options)
        finally:
            is_running = False
        watcher.backward_ended()

    register = torch.nn.modules.module
    hooks = [register.register_module_forward_pre_hook(watcher.module_called),
             register.register_module_forward_hook(
                 lambda module, inputs, output: watcher.module_left(module), always_call=True),
             register_optimizer_step_post_hook(
                 lambda optimizer, args, kwargs: watcher.optimizer_stepped(optimizer))]
    torch.autograd.backward = backward
    try:
        yield
    finally:
        torch.autograd.backward = plain
        for hook in hooks:
            hook.remove()


class Discovery(Watcher):
    def __init__(self) -> None:
        self.cast, self.depth, self.passes = Cast(), 0, 0
        self.in_backward = False

    def module_called(self, module: Any, inputs: Any) -> None:
        if self.depth == 0 and not self.in_backward:
            self.cast.saw_module(module)
        self.depth += 1

    def module_left(self, module: Any) -> None:
        self.depth -= 1

    def optimizer_stepped(self, optimizer: Any) -> None:
        self.cast.saw_optimizer(checked(optimizer))

    def forward_ended(self, loss: torch.Tensor) -> None:
        self.in_backward = True

    def backward_ended(self) -> None:
        self.in_backward, self.passes = False, self.passes + 1


class Meter(Watcher):
    """An ordinary step: the allocator's highest points, per pass."""

    def __init__(self) -> None:
        self.passes: list[step.Measured] = []
        self.reserved = 0
        self.is_between = True
        torch.cuda.reset_peak_memory_stats()

    def most(self) -> int:
        most = torch.cuda.max_memory_allocated()
        self.reserved = max(self.reserved, torch.cuda.max_memory_reserved())
        torch.cuda.reset_peak_memory_stats()
        return most

    def module_called(self, module: Any, inputs: Any) -> None:
        if self.is_between:
            self.begin()

    def begin(self) -> None:
        self.note_update()
        self.is_between = False
        self.passes.append(step.Measured(before=torch.cuda.memory_allocated()))

    def forward_ended(self, loss: torch.Tensor) -> None:
        if self.is_between:
            self.begin()
        self.passes[-1].forward = self.most()

    def backward_ended(self) -> None:
        self.passes[-1].backward = self.most()
        self.is_between = True

    def note_update(self) -> None:
        most = self.most()
        if self.passes:
            self.passes[-1].optimizer = most

    def ended(self) -> None:
        if self.is_between:
            self.note_update()
        else:
            self.passes.pop()  # of modules that were called, and no backward() followed
        for each in self.passes:
            each.reserved = self.reserved


class Writer(TorchDispatchMode, Watcher):
    """Has a recorder for each pass. `for_graph`: learns of each pass its graph, and no more."""

    def __init__(self, whole: step.Step, optimizers: Optimizers, for_graph: bool) -> None:
        super().__init__()
        self.whole, self.optimizers, self.for_graph = whole, optimizers, for_graph
        self.recorder: Recorder | None = None
        self.graphs: list[Graph] = []
        self.recordings: list[step.Recording] = []
        self.batches: list[int] = []
        self.started = self.before = self.live = 0
        self.stepped: list[Any] = []
        self.in_backward = False
        self.names = {module: name for name, module in whole.model.named_modules()}
        self.batch = 1

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        if self.is_between() and torch.is_grad_enabled() and function is not DETACH and \
                any(isinstance(x, torch.Tensor) and x.requires_grad
                    for x in tree_leaves((args, kwargs))):
            self.begin()
        if self.recorder is None:
            return function(*args, **(kwargs or {}))
        return self.recorder.__torch_dispatch__(function, types, args, kwargs)

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        return self.recorder.pack(tensor) if self.recorder is not None else tensor

    def is_between(self) -> bool:
        return not self.in_backward and \
            (self.recorder is None or self.recorder.phase in ("optimizer", "idle"))

    def begin(self) -> None:
        self.end_update()
        self.batch = 1
        self.recorder = recorder = Recorder()
        self.graphs.append(Graph(recorder.first_node))
        if self.for_graph:
            return
        step.groups_of(recorder)
        self.leaves = step.note_what_is_there(recorder, self.whole, self.optimizers)
        self.note_what_else_is_there(recorder)
        recorder.live_peaks = {"begin": recorder.live, "forward": recorder.live}

    def note_what_else_is_there(self, recorder: Recorder) -> None:
        """Gradients of before, and all that variables hold: averaged weights, teachers."""
        for name, parameter in self.whole.model.named_parameters():
            if parameter.grad is not None:
                recorder.there_before(parameter.grad, f"{name}.grad", "input", False)
        step.note_constants(recorder)

    def module_called(self, module: Any, inputs: Any) -> None:
        if self.is_between():
            self.begin()
        recorder = self.recorder
        assert recorder is not None
        given = [x for x in tree_leaves(inputs) if isinstance(x, torch.Tensor)]
        if not recorder.modules and given and given[0].dim() and self.batch == 1:
            self.batch = given[0].shape[0]
        recorder.enter_module(self.names.get(module, type(module).__name__), given)

    def module_left(self, module: Any) -> None:
        if self.recorder is not None:
            self.recorder.leave_module(self.names.get(module, type(module).__name__))

    def optimizer_stepped(self, optimizer: Any) -> None:
        self.stepped.append(optimizer)

    def forward_ended(self, loss: torch.Tensor) -> None:
        recorder = self.recorder
        if recorder is None or recorder.phase != "forward":
            raise CaptureError(f"{Lines().current()}: backward() of what no module made: {RULE}")
        self.in_backward = True
        if self.for_graph:
            recorder.phase = "idle"
            self.graphs[-1].watch(loss)
            if any(number < 0 for number in self.graphs[-1].ends):
                raise CaptureError(f"{Lines().current()}: backward() goes through what was made before "
                                   f"the backward() before it: {RULE}; make it again in between, or "
                                   "detach it")
            return
        self.loss = recorder.reference(loss)
        self.note_what_is_added_to(recorder)
        self.saved = {number: recorder.storages[number].bytes
                      for number in recorder.numbers.values()
                      if step.is_saved(recorder, number, self.loss)}
        recorder.phase = "backward"
        recorder.live_peaks["backward"] = recorder.live

    def note_what_is_added_to(self, recorder: Recorder) -> None:
        """Where all parameters have a gradient already, that is as if gradients stay."""
        trained = [p for p in self.whole.model.parameters() if p.requires_grad]
        added = [p for p in trained if p.grad is not None]
        self.keeps_gradients = bool(added) and len(added) == len(trained)
        for parameter in added:
            if self.keeps_gradients:
                recorder.storages[recorder.number(parameter.grad)].name = ""
            else:
                recorder.added_to.add(recorder.number(parameter))

    def backward_ended(self) -> None:
        recorder = self.recorder
        assert recorder is not None
        recorder.phase = "idle" if self.for_graph else "optimizer"
        self.in_backward, self.stepped = False, []
        self.has_gradients = any(p.grad is not None for p in self.optimizers.trained)
        if self.for_graph:
            return
        recorder.live_peaks["optimizer"] = self.live = recorder.live
        self.before, _ = recorder.allocator.requested()
        recorder.highest = self.before
        self.started = recorder.launches()

    def end_update(self) -> None:
        recorder = self.recorder
        if recorder is None:
            return
        if recorder.phase == "forward":  # of modules that were called, and no backward() followed
            self.graphs.pop()
            recorder.phase = "idle"
            return
        recorder.phase = "idle"
        if self.for_graph:
            return
        parts = Optimizers(self.stepped or self.optimizers.parts, [])
        workspace = recorder.live_peaks["optimizer"] - self.live
        update = step.Update(parts.name, workspace,
                             max(0, recorder.highest - self.before - workspace),
                             recorder.moved_by_update, recorder.launches() - self.started)
        self.recordings.append(step.recording_of(self.whole, recorder, self.graphs[-1],
                                                 step.Measured(), update, self.loss, self.leaves,
                                                 self.saved))
        self.recordings[-1].has_update = bool(self.stepped)
        self.recordings[-1].keeps_gradients = self.keeps_gradients
        self.recordings[-1].updates_in_backward = not self.has_gradients
        self.batches.append(self.batch)

    def ended(self) -> None:
        self.end_update()
        step.groups_of(None)


def run_with(run: Callable[[], Any], writer: Writer) -> Writer:
    with watched(writer), step.one_count_of_nodes(), writer, \
            torch.autograd.graph.saved_tensors_hooks(writer.pack, lambda tensor: tensor):
        run()
    writer.ended()
    return writer


def are_alike(one: Recorder, other: Recorder) -> bool:
    def ran(recorder: Recorder) -> list[Any]:
        return [(x.name, [y.shape for y in x.reads], [y.shape for y in x.writes])
                for x in recorder.operations]

    return ran(one) == ran(other)


def record(run: Callable[[], Any]) -> tuple[step.Step, list[step.Recording], list[int]]:
    """Of each kind of pass one, in the fourth step; how often it comes in `accumulate`."""
    gc.collect()
    gc.disable()
    found = Discovery()
    with watched(found):
        run()
    cast = found.cast
    if found.passes == 0 or not cast.optimizers:
        missing = "backward()" if found.passes == 0 else "step() of a torch.optim.Optimizer"
        raise CaptureError(f"the function that make_step returned calls no {missing}: it is a whole "
                           "step, up to the optimizer's (or return the model, its batch and loss)")
    if compiled.is_used():
        raise CaptureError("a step of one's own with torch.compile is not captured: return the "
                           "model, its batch and loss from make_step")
    whole = cast.as_step()
    optimizers = Optimizers(cast.optimizers, [p for p in whole.model.parameters()
                                              if p.requires_grad])
    meter = Meter()
    with watched(meter):
        run()
    meter.ended()
    graphs = run_with(run, Writer(whole, optimizers, for_graph=True)).graphs
    writer = run_with(run, Writer(whole, optimizers, for_graph=False))
    if not len(meter.passes) == len(graphs) == len(writer.recordings):
        raise CaptureError(f"the step has {len(meter.passes)} backward passes at one time and "
                           f"{len(writer.recordings)} at another: capture one that is always alike")
    for recording, graph, measured in zip(writer.recordings, graphs, meter.passes):
        recording.graph, recording.measured = graph, measured
    return whole, writer.recordings, writer.batches


def is_own_step(returned: Any) -> bool:
    return callable(returned) and not isinstance(returned, (torch.nn.Module, type))


def groups_of(recordings: list[step.Recording]) -> list[list[int]]:
    """Passes that follow each other, are alike, and have one update together."""
    groups: list[list[int]] = []
    for at, recording in enumerate(recordings):
        before = recordings[at - 1]
        if at > 0 and not before.has_update and are_alike(before.recorder, recording.recorder):
            groups[-1].append(at)
        else:
            groups.append([at])
    return groups


def most(measured: step.Measured) -> int:
    return max(measured.forward, measured.backward, measured.optimizer)


def captured(run: Callable[[], Any], arguments: Any) -> tuple[step.Step, step.Recording, int]:
    for name in ("precision", "optimizer"):
        if getattr(arguments, name):
            raise CaptureError(f"--{name} cannot change a step of one's own: the function that "
                               "make_step returned says itself what it does")
    whole, recordings, batches = record(run)
    groups = groups_of(recordings)
    at = max(range(len(recordings)), key=lambda at: most(recordings[at].measured))
    number, chosen = next((i, group) for i, group in enumerate(groups) if at in group)
    first = recordings[chosen[0]]
    first.accumulate, first.update = len(chosen), recordings[chosen[-1]].update
    for each in (recordings[i].measured for i in chosen):
        for key in ("forward", "backward", "optimizer"):
            setattr(first.measured, key, max(getattr(first.measured, key), getattr(each, key)))
    peaks = first.recorder.live_peaks
    for each_peaks in (recordings[i].recorder.live_peaks for i in chosen):
        peaks.update((key, max(peaks[key], each_peaks[key])) for key in peaks)
    if len(groups) > 1:
        print(f"tidemark capture: of {len(groups)} passes of different kinds this is the "
              f"{number + 1}., which needs most memory", file=sys.stderr)
    return whole, first, batches[chosen[0]]
