"""The passes of a step of the user's own, each in a recorder of its own."""

from __future__ import annotations

import bisect
import dataclasses
from typing import Any, Sequence

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from . import compiled, step
from .graph import Graph
from .inside import Inside
from .lines import Lines
from .optimizers import Optimizers
from .recorder import Recorder, Reference, physical_bytes
from .watching import End, Watcher, refuse


@dataclasses.dataclass
class Pass:
    recorder: Recorder
    graph: Graph
    batch: int | None = None  # samples, as the first module has them that is called with any
    leaves: dict[int, int] = dataclasses.field(default_factory=dict)
    saved: dict[int, int] = dataclasses.field(default_factory=dict)
    loss: Reference | None = None
    keeps_gradients: bool = False
    adds: bool = False
    freed: set[int] = dataclasses.field(default_factory=set)  # weights whose gradients hooks free
    stepped: list[Any] = dataclasses.field(default_factory=list)  # optimizers
    update: step.Update | None = None
    live: int = 0  # bytes of storages when its update seemed to be over

    def samples(self) -> int:
        """Of functions that no module is, and that are compiled, as the first input has them that is read."""
        reads = (read for each in self.recorder.operations for read in each.reads
                 if read.shape and self.recorder.storages[read.storage].category == "input")
        first = next(reads, None)
        return self.batch or (first.shape[0] if first else 1)

    def close(self, optimizers: Optimizers) -> None:
        """Its update is over."""
        if not self.stepped:
            self.recorder.note_what_outlives()
        parts = Optimizers(self.stepped or optimizers.parts, [])
        self.update = step.end_update(parts.name, self.recorder)
        self.live = self.recorder.live

    def add_to_update(self, after: Recorder) -> None:
        """What no backward() followed."""
        recorder, took = self.recorder, after.live_peaks
        recorder.live_peaks["optimizer"] = max(recorder.live_peaks["optimizer"],
                                               self.live + took["forward"] - took["begin"])
        for each in after.operations:
            recorder.stretch.highest = max(recorder.stretch.highest, each.peak)
            recorder.stretch.moved += sum(map(physical_bytes, each.reads + each.writes))

    def recording(self, whole: step.Step, trained: int) -> step.Recording:
        assert self.update is not None and self.loss is not None
        made = step.recording_of(whole, self.recorder, self.graph, step.Measured(), self.update,
                                 self.loss, self.leaves, self.saved)
        made.has_update = bool(self.stepped)
        made.keeps_gradients = self.keeps_gradients
        made.adds = self.adds
        made.note_freed(self.freed, trained)
        return made


class Writer(TorchDispatchMode, Watcher):
    """Has a recorder for each pass. `inside`: numbers of backwards that are inside of the pass of a
    later one. `for_graph`: learns of each pass its graph, and no more."""

    def __init__(self, whole: step.Step, optimizers: Optimizers, inside: set[int],
                 for_graph: bool) -> None:
        super().__init__()
        self.whole, self.optimizers, self.for_graph = whole, optimizers, for_graph
        self.inside_of_later, self.count = inside, 0  # of backwards
        self.reaches: list[int] = []  # by backward, the pass of the oldest node that it goes through
        self.passes: list[Pass] = []
        self.recorders: list[Recorder] = []  # of those, too, that turned out to be none
        self.inside: Inside | None = None
        self.in_backward = False
        self.names = {module: compiled.plain_name(name)
                      for name, module in whole.model.named_modules()}
        self.nodes = torch.autograd._get_sequence_nr()

    @property
    def recorder(self) -> Recorder | None:
        return self.passes[-1].recorder if self.passes else None

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        nodes, self.nodes = self.nodes, torch.autograd._get_sequence_nr()
        if self.nodes > nodes and self.is_between():
            self.begin(self.nodes - nodes)
        if self.recorder is None:
            return function(*args, **(kwargs or {}))
        return self.recorder.__torch_dispatch__(function, types, args, kwargs)

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        return self.recorder.pack(tensor) if self.recorder is not None else tensor

    # --- where passes begin ---------------------------------------------------------------------

    def is_between(self) -> bool:
        return not self.in_backward and \
            (self.recorder is None or self.recorder.phase != "forward")

    def begin(self, nodes_made: int = 0) -> None:
        """`nodes_made`: of the operation at hand."""
        if self.inside is not None and self.inside.is_open:
            return self.inside.end(self.whole.model, nodes_made)
        before = self.passes[-1] if self.passes else None
        if before is not None and not self.for_graph:
            before.close(self.optimizers)
        recorder = Recorder(nodes_made)
        self.recorders.append(recorder)
        self.passes.append(Pass(recorder, Graph(recorder.first_node, recorder.operations)))
        self.inside = None
        if self.for_graph:
            return
        step.groups_of(recorder)
        self.passes[-1].leaves = step.note_what_is_there(recorder, self.whole, self.optimizers)
        self.note_what_else_is_there(recorder)
        if before is not None:
            self.note_loss_before(before, recorder)
        recorder.live_peaks = {"begin": recorder.live, "forward": recorder.live}

    @staticmethod
    def note_loss_before(before: Pass, recorder: Recorder) -> None:
        assert before.loss is not None
        key = next((key for key, number in before.recorder.numbers.items() if number == before.loss.storage), None)
        number = recorder.numbers.get(key) if key is not None else None
        if number is not None and recorder.storages[number].bytes == before.loss.dtype.itemsize:
            recorder.loss_before = number

    def note_what_else_is_there(self, recorder: Recorder) -> None:
        """Gradients of before, and all that variables hold: averaged weights, teachers."""
        for name, parameter in self.whole.model.named_parameters():
            if parameter.grad is not None:
                recorder.gradient_before(parameter.grad, name)
        step.note_constants(recorder)

    def optimizer_begins(self) -> None:
        """What looked like a next pass, a metric of the output, say, is still of the update."""
        if self.in_backward or self.recorder is None or self.recorder.phase != "forward":
            return
        if self.inside is not None:
            self.inside.resume()
        elif len(self.passes) > 1:
            self.take_back()
            self.recorder.phase = "idle" if self.for_graph else "optimizer"
            step.groups_of(None if self.for_graph else self.recorder)

    def take_back(self) -> None:
        """What looked like a pass is none."""
        recorder = self.passes.pop().recorder
        recorder.phase = "idle"
        if self.passes and not self.for_graph:
            self.passes[-1].add_to_update(recorder)

    # --- what a pass is told --------------------------------------------------------------------

    def module_called(self, module: Any, inputs: Any) -> None:
        if self.is_between():
            self.begin()
        at = self.passes[-1]
        given = [x for x in tree_leaves(inputs) if isinstance(x, torch.Tensor)]
        if at.batch is None:
            at.batch = next((x.shape[0] for x in given if x.dim()), None)
        at.recorder.enter_module(self.names.get(module, type(module).__name__), given)

    def checkpoint_called(self) -> None:
        if self.is_between() and torch.is_grad_enabled():
            self.begin()

    def module_left(self, module: Any) -> None:
        if self.recorder is not None:
            self.recorder.leave_module(self.names.get(module, type(module).__name__))

    def optimizer_stepped(self, optimizer: Any) -> None:
        if self.passes:
            self.passes[-1].stepped.append(optimizer)
            if not self.in_backward:
                self.passes[-1].recorder.note_what_outlives()

    def forward_ended(self, end: End) -> None:
        if self.is_between():
            self.begin()
        self.in_backward = True
        self.count += 1
        recorder = self.passes[-1].recorder
        if self.count - 1 in self.inside_of_later:
            self.inside = Inside(recorder, Lines().current())
        elif self.for_graph:
            recorder.phase = "idle"
            self.watch(end.loss)
        else:
            self.note_forward(self.passes[-1], end)
            recorder.begin_backward(end.loss, self.optimizers.trained)

    def watch(self, loss: torch.Tensor) -> None:
        graph = self.passes[-1].graph
        graph.watch(loss)
        began = [each.recorder.first_node for each in self.passes]
        reached = bisect.bisect_right(began, graph.first_node + graph.oldest) - 1
        if reached < 0:
            refuse("backward() goes through what was made before the step: detach it")
        self.reaches.append(reached)

    def note_forward(self, at: Pass, end: End) -> None:
        recorder = at.recorder
        at.loss = recorder.reference(end.loss)
        trained = self.trained()
        added = [p for p in trained if p.grad is not None and end.adds]
        if end.of is not None:
            asked = set(map(id, end.of))
            recorder.not_asked = {recorder.number(p) for p in trained if id(p) not in asked}
        # Where all have a gradient from before, that is as if gradients stay.
        at.adds = bool(added)
        at.keeps_gradients = bool(added) and len(added) == len(trained) and all(
            recorder.storages[recorder.number(p.grad)].made_by is None for p in added)
        for parameter in added:
            if at.keeps_gradients:
                recorder.storages[recorder.number(parameter.grad)].name = ""
            else:
                recorder.added_to.add(recorder.number(parameter))
        at.saved = step.saved_by(recorder, at.loss)

    def backward_ended(self, made: Sequence[torch.Tensor] = ()) -> None:
        self.in_backward, self.passes[-1].stepped = False, []
        if (self.inside is not None and self.inside.is_open) or self.for_graph:
            return
        at = self.passes[-1]
        if not made:
            at.freed = step.gradients_freed(at.recorder, self.optimizers.trained)
        at.recorder.begin_update([*made, *(p.grad for p in self.trained() if p.grad is not None)])

    def trained(self) -> list[Any]:
        """What requires a gradient now, on the device."""
        return [p for p in self.whole.model.parameters() if p.requires_grad and p.device.type == "cuda"]

    def ended(self) -> None:
        recorder = self.recorder
        if recorder is not None and recorder.phase == "forward":  # and no backward() followed: an evaluation
            self.take_back()
        if self.passes and not self.for_graph:
            self.passes[-1].close(self.optimizers)
        step.groups_of(None)
