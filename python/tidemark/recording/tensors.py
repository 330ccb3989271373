"""The tensors of a trace: storages as they are, and the parts of them that operations read.

Views are not recorded as such. An operation that reads all of a storage, in whatever order of axes,
reads the tensor that owns it; one that reads a part gets a `select` before it. Only where a view's
gradient is memory of its own (a slice, a sum over what was expanded) does the view itself count.
"""

from __future__ import annotations

import torch

from .graph import End
from .parts import Op, Tensor
from .recorder import NO_NODE, Operation, Reference, Storage, physical_bytes
from .regions import Region, elements, physical_shape, region_of
from .rows import MOST_OPERANDS
from .step import Recording


class Tensors:
    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.recorder = recording.recorder
        self.storages = self.recorder.storages
        self.tensors: list[Tensor] = []
        self.ops: list[Op] = []
        self.taken: set[str] = set()
        self.names: dict[str, int] = {}  # how often a name was asked for again
        self.whole: dict[int, Tensor] = {}  # by storage: its latest version
        self.parts: dict[tuple[int, Region], Tensor] = {}
        self.by_source: dict[tuple[int, int], Tensor] = {}
        self.leaf_of = {number: key for key, number in recording.leaves.items()}
        self.module, self.at = "", 0
        self.passed: set[int] = set()  # nodes of views that hand gradients on

    def unique(self, name: str) -> str:
        """The name, or with the first number behind it that nobody has."""
        name = name or "tensor"
        found = name
        while found in self.taken:
            self.names[name] = self.names.get(name, 0) + 1
            found = f"{name}.{self.names[name]}"
        self.taken.add(found)
        return found

    def add(self, tensor: Tensor) -> Tensor:
        self.tensors.append(tensor)
        return tensor

    def is_whole(self, reference: Reference) -> bool:
        storage = self.storages[reference.storage]
        return physical_bytes(reference) == storage.bytes

    def whole_of(self, number: int, name: str = "") -> Tensor:
        """The storage's latest version; made here for what is there before the step."""
        if number in self.whole:
            return self.whole[number]
        storage = self.storages[number]
        shape, dtype = storage.shape, storage.dtype
        if elements(shape) * dtype.itemsize != storage.bytes:
            shape = (storage.bytes // dtype.itemsize,)
            if storage.bytes % dtype.itemsize:
                shape, dtype = (storage.bytes,), torch.uint8
        is_made = storage.made_by is not None
        category = "activation" if is_made else storage.category
        if not is_made and category == "activation":
            category = "input"
        label = name if is_made else storage.name or "constant"
        tensor = Tensor(self.unique(label), shape, dtype, category, number, storage.trainable)
        self.whole[number] = tensor
        return self.add(tensor)

    def version_over(self, number: int, name: str) -> Tensor:
        """A result in place: what is read of the storage from now on."""
        old = self.whole_of(number)
        tensor = Tensor(self.unique(name), old.shape, old.dtype, old.owner.category, number,
                        storage=old.owner)
        self.whole[number] = tensor
        self.parts = {key: part for key, part in self.parts.items() if key[0] != number}
        return self.add(tensor)

    def left_out(self) -> Tensor:
        """One number that stands for weights whose gradients are temporaries: for the sake of its
        gradient their operations have a backward."""
        name = "weights.left_out"
        found = next((x for x in self.tensors if x.name == name), None)
        if found is not None:
            return found
        self.storages.append(Storage(4, torch.float32, (1,), name, "parameter", True))
        return self.whole_of(len(self.storages) - 1)

    def look_up(self, reference: Reference, may_cut: bool = True) -> Tensor:
        if reference.source in self.by_source:
            found = self.by_source[reference.source]  # type: ignore[index]
            if found.number == reference.storage:
                return found
        whole = self.whole_of(reference.storage)
        if self.is_whole(reference) or not may_cut:
            return whole
        key = reference.storage, region_of(reference)
        if key not in self.parts:
            self.cut(reference, whole, self.module)
        return self.parts[key]

    def cut(self, reference: Reference, whole: Tensor, module: str) -> Tensor:
        """A `select` op: some elements of a tensor, in the same memory."""
        part = self.add(self.part_of(reference, whole, f"{module}.select"))
        self.parts[reference.storage, region_of(reference)] = part
        self.ops.append(Op(part.name, "select", [whole], [part], self.at))
        return part

    def part_of(self, reference: Reference, whole: Tensor, name: str) -> Tensor:
        shape, dtype = physical_shape(reference), reference.dtype
        if dtype != whole.owner.dtype:
            dtype = whole.owner.dtype
            shape = (max(1, physical_bytes(reference) // dtype.itemsize),)
        if elements(shape) > elements(whole.shape):  # overlapping windows
            shape = whole.shape
        return Tensor(self.unique(name.lstrip(".")), shape, dtype, whole.owner.category,
                      reference.storage, storage=whole.owner)

    # --- views ----------------------------------------------------------------------------------

    def end_of(self, reference: Reference) -> End:
        if reference.source is not None:
            return "node", *reference.source
        return "leaf", self.leaf_of.get(reference.storage, 0), 0

    def add_view(self, operation: Operation) -> None:
        if not operation.reads or not operation.writes or operation.node == NO_NODE:
            return  # what reads it finds its part of the storage
        read = operation.reads[0]
        if not any(operation.wants):
            if read.storage in self.recorder.added_to:
                self.passed.add(operation.node)
            return
        whole = self.look_up(read)
        if len(operation.writes) > 1:
            return self.add_split(operation, whole)
        written = operation.writes[0]
        is_same = physical_bytes(written) >= physical_bytes(read)
        graph = self.recording.graph
        if is_same and graph.hands_on(operation.node, self.end_of(read)):
            if read.source is None and graph.edges_to[operation.node] > 1:
                return self.add_view_of_weight(operation, whole)
            self.by_source[operation.node, operation.positions[0]] = whole
            self.passed.add(operation.node)
            return
        part = self.add(self.part_of(written, whole, self.name_of(operation)))
        self.by_source[operation.node, operation.positions[0]] = part
        self.ops.append(Op(part.name, "select", [whole], [part], self.at))

    def add_view_of_weight(self, operation: Operation, whole: Tensor) -> None:
        """Gradients add up here (a gradient of a gradient is the case), and then with others."""
        view = self.add(Tensor(self.unique(self.name_of(operation)), whole.shape, whole.dtype,
                               whole.owner.category, whole.number, storage=whole.owner))
        self.by_source[operation.node, 0] = view
        self.passed.add(operation.node)
        self.ops.append(Op(view.name, "view", [whole], [view], self.at))

    def add_split(self, operation: Operation, whole: Tensor) -> None:
        name = self.name_of(operation)
        pieces = [self.part_of(written, whole, f"{name}.{at}" if at else name)
                  for at, written in enumerate(operation.writes)]
        is_all = sum(elements(piece.shape) for piece in pieces) == elements(whole.shape)
        for at, piece in zip(operation.positions, pieces):
            self.by_source[operation.node, at] = self.add(piece)
        if is_all and len(pieces) <= MOST_OPERANDS:
            self.ops.append(Op(pieces[0].name, "split", [whole], pieces, self.at))
            return
        for piece in pieces:
            self.ops.append(Op(piece.name, "select", [whole], [piece], self.at))

    def name_of(self, operation: Operation) -> str:
        short = operation.name.split("::")[-1].strip("_") or operation.name
        return f"{operation.module}.{short}" if operation.module else short
