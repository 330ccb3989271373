"""Runs a training step on the stand-in: to warm up, to measure, to learn its graph, to record it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import importlib.metadata
import inspect
from typing import Any, Callable, Iterator

import torch
from torch.utils._pytree import tree_leaves, tree_map

from . import compiled, exported, kernels, meta, progress, scripted
from .chance import Chance, require_alike
from .errors import CaptureError
from .faults import run_or_say_where
from .graph import Graph
from .history import Calls, History
from .hooks import on_saved_tensors
from .lines import Lines, Whose
from .losses import loss_of
from .optimizers import Optimizers, make_optimizers
from .options import check_names
from .products import precision_of
from .recorder import NO_NODE, Operation, Recorder, Reference, is_fake, plain
from .replicas import without_wrappers
from .sharded_calls import Replicas

GIVEN = ("model", "batch", "loss", "optimizer", "precision", "replicas")  # in a dict
AMP = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}


@dataclasses.dataclass
class Step:
    """What a training step is made of. `batch` is what the model is called with."""

    model: torch.nn.Module
    batch: Any
    loss: Callable[..., torch.Tensor] | None = None  # of the model's output, or of that and batch
    optimizer: Any = "adamw"  # a name, an optimizer, several, or a function of the parameters
    precision: str = "fp32"
    replicas: Replicas | None = None
    large_loss: torch.Tensor | None = None  # of the step before
    chance: Chance = dataclasses.field(default_factory=Chance)


def as_step(made: Any) -> Step:
    step = step_in(made)
    if exported.is_program(step.model):
        step.batch = exported.batch_of(step.model) if step.batch is None else step.batch
        step.model = exported.module_of(step.model)
    step.model, found = without_wrappers(step.model)
    step.replicas = step.replicas or found
    return step


def step_in(made: Any) -> Step:
    if isinstance(made, Step):
        return made
    if isinstance(made, dict) and "model" in made:
        for key in made:
            if key not in GIVEN:
                raise CaptureError(f"make_step returned a dict with {key!r} (known: {', '.join(GIVEN)})")
        return Step(**made)
    if isinstance(made, tuple) and 2 <= len(made) <= 4:
        return Step(*made)
    raise CaptureError(f"make_step returned {type(made).__name__}; need (model, batch), (model, "
                       "batch, loss), (model, batch, loss, optimizer), or a function that does a "
                       "whole step")


def place(step: Step) -> None:
    """Model and batch on the device, in the precision that was asked for."""
    check_names(step.precision, step.optimizer)
    if meta.materialize(step.model) and isinstance(step.optimizer, torch.optim.Optimizer):
        raise CaptureError("the model was built on the meta device, and the optimizer has its parameters "
                           "there: give a function of the parameters that makes the optimizer")
    step.model.to("cuda")
    step.model.train()
    if step.replicas is not None and step.replicas.policy is not None:
        if step.precision != "fp32":
            raise CaptureError(f"--precision {step.precision} beside a policy of mixed precision, which "
                               "says itself what the step computes with: give one of them")
        step.precision = "bf16"  # of the parameters, which are cast; the batch is cast where it enters
        return place_batch(step, None)
    dtype = torch.bfloat16 if step.precision == "bf16" else None
    if dtype:
        step.model.to(dtype)
    torch.backends.cuda.matmul.allow_tf32 = step.precision == "tf32"
    place_batch(step, dtype)


def place_batch(step: Step, dtype: torch.dtype | None) -> None:
    def placed(value: Any) -> Any:
        if type(value).__module__ == "numpy":
            raise CaptureError(f"the batch has a numpy {type(value).__name__}, and models are called with "
                               "tensors: torch.from_numpy makes one of it")
        if not isinstance(value, torch.Tensor):
            return value
        value = value.to("cuda")
        return value.to(dtype) if dtype and value.is_floating_point() else value

    step.batch = tree_map(placed, step.batch)


def call(model: torch.nn.Module, batch: Any) -> Any:
    if isinstance(batch, exported.Example):
        return model(*batch.args, **batch.kwargs)
    if isinstance(batch, dict) or hasattr(batch, "keys"):
        return model(**batch)
    if isinstance(batch, (tuple, list)):
        return model(*batch)
    return model(batch)


@contextlib.contextmanager
def no_backward() -> Iterator[None]:
    """A backward inside of the forward adds to gradients, which nobody would see."""
    plain = torch.autograd.backward

    def backward(*_: Any, **__: Any) -> None:
        place = Lines().current()
        raise CaptureError(f"{place + ': ' if place else ''}backward() is called within the step, "
                           "and a capture calls it itself: return from make_step a function "
                           "that does the whole step, or call torch.autograd.grad where gradients "
                           "are part of the model")

    torch.autograd.backward = backward
    try:
        yield
    finally:
        torch.autograd.backward = plain


def forward(step: Step) -> torch.Tensor:
    step.chance.again()
    amp = AMP.get(step.precision)
    context = torch.autocast("cuda", amp) if amp else contextlib.nullcontext()
    with context, no_backward():
        loss = loss_of(step.loss, call(step.model, step.batch), step.batch)
    # As a loop's variable has it, until the next one is there. Some are as large as what they are of
    # and only called a number (mse_loss); 4 bytes more or less are not worth a tensor.
    step.large_loss = loss if loss.untyped_storage().nbytes() > loss.nbytes else None
    return loss


@dataclasses.dataclass
class Measured:
    """Of a whole step: what the allocator says, in bytes."""

    before: int = 0
    forward: int = 0
    backward: int = 0
    optimizer: int = 0
    reserved: int = 0

    @property
    def most(self) -> int:
        return max(self.forward, self.backward, self.optimizer)


def run_plain(step: Step, optimizer: Optimizers, history: History | None = None) -> Measured:
    """An ordinary step, and its highest points."""
    measured = Measured(before=torch.cuda.memory_allocated())
    torch.cuda.reset_peak_memory_stats()

    def phase() -> int:
        most = torch.cuda.max_memory_allocated()
        measured.reserved = max(measured.reserved, torch.cuda.max_memory_reserved())
        torch.cuda.reset_peak_memory_stats()
        return most

    loss = forward(step)
    measured.forward = phase()
    loss.backward()
    measured.backward = phase()
    optimizer.step()
    measured.optimizer = phase()
    if history is not None:
        history.mark()
    optimizer.clear()
    return measured


def one_count_of_nodes() -> Any:
    """A thread numbers the nodes that it makes, and backwards have threads of their own: nodes that
    a backward makes, for a gradient of a gradient or to recompute something, would have numbers of
    others."""
    return torch.autograd.set_multithreading_enabled(False)


def run_for_graph(step: Step, optimizer: Optimizers) -> tuple[Graph, list[Operation]]:
    """With a recorder, too: asking a tensor for its node may make one, so both count the same."""
    recorder = Recorder()
    graph = Graph(recorder.first_node, recorder.operations)
    with recorder, watched_modules(recorder, step.model), one_count_of_nodes():
        with on_saved_tensors(recorder.pack):
            loss = forward(step)
        recorder.phase = "idle"
        graph.watch(loss)
        loss.backward()
    optimizer.clear()
    return graph, recorder.operations


@dataclasses.dataclass
class Update:
    """The optimizer's step, as it ran."""

    name: str
    workspace: int
    scratch: int
    moved: int
    launches: int


@dataclasses.dataclass
class Recording:
    """A recorded step: what its trace is made of."""

    recorder: Recorder
    graph: Graph
    measured: Measured
    update: Update
    loss: Any
    precision: str
    leaves: dict[int, int]  # number of a leaf's storage by its address
    saved: dict[int, int]  # bytes of storages that the graph holds at the end of the forward
    versions: dict[str, str]
    framework: str | None  # a row of `tidemark frameworks`; None: the usual one
    parameters: int  # elements
    trainable: int
    replicas: Replicas | None
    calls: Calls | None = None  # None: not known, or of more than is written
    order: dict[int, int] = dataclasses.field(default_factory=dict)  # of allocations, by address
    accumulate: int = 1  # micro-batches that are alike
    has_update: bool = True
    adds: bool = False  # to gradients of before
    keeps_gradients: bool = False  # all of those
    updates_in_backward: bool = False  # hooks do, and free each gradient

    def note_freed(self, freed: set[int], trained: int) -> None:
        """Where hooks free some gradients only, each is a temporary of the backward that makes it."""
        self.updates_in_backward = len(freed) == trained
        ends = self.graph.leaves
        if not self.updates_in_backward:
            self.recorder.added_to |= {number for key, number in self.leaves.items()
                                       if number in freed and key in ends}


@contextlib.contextmanager
def watched_modules(recorder: Recorder, model: torch.nn.Module) -> Iterator[None]:
    names = {module: compiled.plain_name(name) for name, module in model.named_modules()}
    register = torch.nn.modules.module

    def enter(module: Any, inputs: Any) -> None:
        recorder.enter_module(names.get(module, type(module).__name__), tree_leaves(inputs))

    def leave(module: Any, inputs: Any, output: Any) -> None:
        recorder.leave_module(names.get(module, type(module).__name__))

    if compiled.is_used():  # which depends on whether there are hooks of all modules
        undo = compiled.watch_modules(names, enter, leave)
    else:
        hooks = [register.register_module_forward_pre_hook(enter),
                 register.register_module_forward_hook(leave, always_call=True)]
        undo = [hook.remove for hook in hooks]
    try:
        yield
    finally:
        for each in undo:
            each()


def note_what_is_there(recorder: Recorder, step: Step, optimizer: Optimizers) -> dict[int, int]:
    """Once garbage is gone: what is in a circle of it (of a weight's storage, say, as pickling makes one)
    is said to be gone when that is collected, whether or not others have it."""
    gc.collect()
    leaves = {}
    for name, parameter in ((name, plain(x)) for name, x in step.model.named_parameters()):
        recorder.there_before(parameter, compiled.plain_name(name), "parameter",
                              parameter.requires_grad)
        if parameter.device.type == "cuda" and parameter.untyped_storage().nbytes() > 0:
            leaves[parameter.untyped_storage()._cdata] = recorder.number(parameter)
    for name, buffer in step.model.named_buffers():
        recorder.there_before(buffer, compiled.plain_name(name), "parameter", False)
    for name, value in optimizer.states(step.model):
        recorder.there_before(value, name, "optimizer_state", False)
    named = step.batch.items() if isinstance(step.batch, dict) else \
        ((f"input{at}" if at else "input", x) for at, x in enumerate(tree_leaves(step.batch)))
    for name, value in named:
        for leaf in tree_leaves(value):
            if isinstance(leaf, torch.Tensor):
                recorder.there_before(leaf, name, "input", False)
                note_gradient(recorder, leaf, name)
    return leaves


def note_gradient(recorder: Recorder, tensor: torch.Tensor, name: str) -> None:
    """Of what is no weight, and told to require one: nobody gives it up."""
    if tensor.is_leaf and tensor.grad is not None:
        recorder.gradient_before(tensor.grad, name)


def note_constants(recorder: Recorder) -> None:
    """All that variables hold besides: averaged weights, teachers, states that hooks update. What
    nobody but C++ holds, as a wrapper's buckets, is no variable's."""
    found = [value for value in tensors_there() if not is_fake(value) and
             value.layout == torch.strided and value.device.type == "cuda" and
             not torch._C._functorch.is_functorch_wrapped_tensor(value) and
             not recorder.knows(value)]
    numbers = set(map(id, found))
    held = {id(value) for owner in gc.get_referrers(*found) if owner is not found
            for value in gc.get_referents(owner) if id(value) in numbers}
    held |= local_variables() & numbers
    for value in found:
        if id(value) in held:
            recorder.there_before(value, "constant", "input", False)
            note_gradient(recorder, value, "constant")


def local_variables() -> set[int]:
    """Ids of what functions that run have, which the collector of garbage does not say."""
    found: set[int] = set()
    lines, frame = Lines(), inspect.currentframe()
    while frame is not None:
        is_theirs = lines.whose(frame.f_code.co_filename) is not Whose.NOBODYS
        if is_theirs and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            values = frame.f_locals
            found |= set(map(id, values.values()))
            if isinstance(values, dict):  # until Python 3.12 a copy, which would keep them alive
                values.clear()
        frame = frame.f_back
    return found


def tensors_there() -> list[torch.Tensor]:
    """Of some 400,000 objects: their types are looked at first, of which there are few."""
    objects = gc.get_objects()
    types = {kind for kind in set(map(type, objects)) if issubclass(kind, torch.Tensor)}
    return [value for value in objects if type(value) in types]


def update_of(optimizer: Optimizers, recorder: Recorder) -> Update:
    """Runs the optimizer's step and says what it takes beside its states."""
    recorder.begin_update([p.grad for p in optimizer.trained if p.grad is not None])
    with recorder:
        optimizer.step()
    recorder.note_what_outlives()
    return end_update(optimizer.name, recorder)


def end_update(name: str, recorder: Recorder) -> Update:
    recorder.phase = "idle"
    stretch = recorder.stretch
    went = recorder.bytes_that_went()
    workspace = recorder.live_peaks["optimizer"] - stretch.live + went
    return Update(name, workspace, max(0, stretch.highest - stretch.requested + went - workspace),
                  stretch.moved, recorder.launches() - stretch.launches)


def framework() -> str | None:
    """The row of `tidemark frameworks` whose rules of workspaces PyTorch follows. In 2.15, and
    not yet in 2.14, cuBLAS's is taken for each call, and lies among the scratch of operations."""
    square = torch.empty(8, 8, device="cuda")
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    torch.mm(square, square)
    taken = torch.cuda.max_memory_allocated() - before
    return "transformers-5" if taken > 1 << 20 else None


def run_twice(step: Step, optimizer: Optimizers, history: History) -> Measured:
    """A first step, which makes what stays, and an ordinary one."""
    history.mark()
    progress.step(1)
    run_or_say_where(lambda: run_plain(step, optimizer))
    compiled.free_what_compiling_left()
    history.mark()
    progress.step(2)
    measured = run_plain(step, optimizer, history)
    history.mark()
    return measured


def record(step: Step, history: History) -> Recording:
    """A whole step, the fourth: state and workspaces are there, and lengths of lists settled."""
    gc.collect()
    gc.disable()
    optimizer = make_optimizers(step.model, step.optimizer)
    measured = run_twice(step, optimizer, history)
    calls = history.end()
    progress.step(3)
    graph, operations = run_for_graph(step, optimizer)
    progress.step(4)
    recorder = Recorder()
    groups_of(recorder)
    leaves = note_what_is_there(recorder, step, optimizer)
    note_constants(recorder)
    recorder.live_peaks = {"begin": recorder.live, "forward": recorder.live}
    with recorder, watched_modules(recorder, step.model), one_count_of_nodes():
        with on_saved_tensors(recorder.pack):
            loss = forward(step)
        if not compiled.is_used():  # graphs of a compiler are operators in the one run only
            require_alike(operations, recorder.operations)
        last = recorder.reference(loss)
        saved = saved_by(recorder, last)
        recorder.begin_backward(loss, optimizer.trained)
        loss.backward()
        recorder.phase = "idle"
    freed = gradients_freed(recorder, optimizer.trained)
    update = update_of(optimizer, recorder)
    groups_of(None)
    optimizer.clear()
    recording = recording_of(step, recorder, graph, measured, update, last, leaves, saved)
    recording.note_freed(freed, len(optimizer.trained))
    recording.calls, recording.order = calls, history.order
    return recording


def gradients_freed(recorder: Recorder, trained: list[Any]) -> set[int]:
    """Weights without a gradient when the backward is over: there was none, or hooks freed it before
    the next node began."""
    return {recorder.number(p) for p in trained
            if p.grad is None and recorder.knows(p)} - recorder.lingering


def recording_of(step: Step, recorder: Recorder, graph: Graph, measured: Measured, update: Update,
                 last: Reference, leaves: dict[int, int], saved: dict[int, int]) -> Recording:
    packages = ("torch", "transformers", "torchvision", "timm", "peft")
    versions = {}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    parameters = list(step.model.parameters())
    state = state_of(recorder, step.model)
    state |= let_go(recorder, graph)
    saved = {number: size for number, size in saved.items() if number not in state}
    return Recording(recorder, graph, measured, update, last, precision_of(recorder.products, parameters), leaves, saved,
                     versions, framework(), sum(p.numel() for p in parameters),
                     sum(p.numel() for p in parameters if p.requires_grad), step.replicas)


def saved_by(recorder: Recorder, loss: Reference) -> dict[int, int]:
    """Bytes of storages that are there when the forward is over."""
    return {number: recorder.storages[number].bytes for number in recorder.numbers.values()
            if is_saved(recorder, number, loss)}


def is_saved(recorder: Recorder, number: int, loss: Reference) -> bool:
    """By a node, by a function of the user's own, or by a checkpoint. Parameters and buffers do not
    count."""
    storage = recorder.storages[number]
    if number in recorder.kept:
        return storage.category in ("activation", "input")
    return storage.made_by is not None and number != loss.storage


def let_go(recorder: Recorder, graph: Graph) -> set[int]:
    """Inputs that nodes kept of which none is the loss's: of a backward within the forward, say, which is over."""
    keepers: dict[int, set[bool]] = {}
    for operation in recorder.operations:
        is_over = operation.group is None and operation.node != NO_NODE and operation.node not in graph.ends
        for number in operation.kept_reads | operation.kept_writes:
            if recorder.storages[number].category == "input":
                keepers.setdefault(number, set()).add(is_over)
    return {number for number, are_over in keepers.items() if are_over == {True}}


def state_of(recorder: Recorder, model: torch.nn.Module) -> set[int]:
    """New buffers, and what variables hold beyond the update that no node and no function did. What
    checkpoints are called with they hold as long as the loss is there."""
    state = {recorder.number(x) for x in model.buffers() if recorder.knows(x)}
    given = {x.storage for group in recorder.groups if group.kind == "checkpoint" for x in group.arguments}
    for number in recorder.outlive - recorder.kept - given:
        made_by = recorder.storages[number].made_by
        if made_by is None or recorder.operations[made_by].group is None:
            state.add(number)
    return state


# --- what runs as a whole -------------------------------------------------------------------------

_recorder: Recorder | None = None
_checkpoint_called: Callable[[], None] = lambda: None  # a pass may begin with it


@contextlib.contextmanager
def checkpoints_told_to(called: Callable[[], None]) -> Iterator[None]:
    global _checkpoint_called
    plain, _checkpoint_called = _checkpoint_called, called
    try:
        yield
    finally:
        _checkpoint_called = plain


def groups_of(recorder: Recorder | None) -> None:
    """Functions and checkpoints are written down as groups in this recorder."""
    global _recorder
    _recorder = recorder
    compiled.regions_of(recorder)
    kernels.started_by(recorder)
    scripted.recorded_by(recorder)


def held_by(function: Any) -> list[Any]:
    """What a function has beside its arguments: those of a partial, and variables around it."""
    held: list[Any] = []
    while isinstance(function, functools.partial):
        held += [function.args, function.keywords]
        function = function.func
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # an empty one
            held.append(cell.cell_contents)
    return held


def install_groups() -> None:
    """Before a user's modules import what is replaced here."""
    import torch.utils.checkpoint as checkpointing

    # A classmethod in PyTorch 2.6, one written in C in 2.15: both bind to a class in this way.
    plain_apply = torch.autograd.Function.__dict__["apply"].__get__
    plain_checkpoint = checkpointing.checkpoint

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = _recorder
        if recorder is not None and recorder.phase == "forward" and compiled.is_compiled(cls):
            return compiled.record_region(recorder, args,
                                          lambda: plain_apply(None, cls)(*args, **kwargs))
        if recorder is None or not recorder.begin_group(cls.__name__, "function", args):
            return plain_apply(None, cls)(*args, **kwargs)
        result = plain_apply(None, cls)(*args, **kwargs)
        recorder.end_group(result)
        return result

    def checkpoint(function: Any, *args: Any, **kwargs: Any) -> Any:
        _checkpoint_called()
        recorder = _recorder
        given = (args, kwargs, held_by(function))
        if recorder is None or not recorder.begin_group("checkpoint", "checkpoint", given):
            return plain_checkpoint(function, *args, **kwargs)
        result = plain_checkpoint(function, *args, **kwargs)
        recorder.end_group(result)
        return result

    torch.autograd.Function.apply = classmethod(apply)
    checkpointing.checkpoint = checkpoint
