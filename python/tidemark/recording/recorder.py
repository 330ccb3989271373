"""A dispatch mode that writes down a training step: every operation, every storage, who keeps what.

It sees operations below autograd and autocast, in the forward and in the backward. A storage has a
number from when it is first seen to the end of the recording. Of the forward it keeps each
operation; of the backward, what each node of the forward's graph took.
"""

from __future__ import annotations

import ctypes
import dataclasses
import weakref
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from . import accumulation, convolutions
from .hooks import is_packing
from .leaves import tensors_in
from .lines import Lines
from .outstayed import Outstayed
from .products import Products

ATEN = torch.ops.aten
NO_NODE = -1
CHOOSES = {f"aten::{name}" for name in ("index", "index_select", "gather", "take", "embedding")}
UNSEEN = "unseen"  # an operation that no mode was told of


@dataclasses.dataclass
class Storage:
    """What the allocator was asked for, and between which operations of the forward it was there."""

    bytes: int
    dtype: torch.dtype
    shape: tuple[int, ...]
    name: str = ""  # of what is there before the step
    category: str = "activation"
    trainable: bool = False
    made_by: int | None = None
    found_by: int | None = None  # the operation of the forward that read it before it was known
    gone_before: int | None = None  # the operation; None: it outlives the forward
    goes_in_backward: bool = False
    is_gradient: bool = False  # of before the step
    address: int = 0  # of what is there before the step


@dataclasses.dataclass(frozen=True)
class Reference:
    """A tensor as an operation sees it: some elements of a storage."""

    storage: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: torch.dtype
    source: tuple[int, int] | None = None  # the node and its output that made it, if it has one


@dataclasses.dataclass
class Operation:
    """One call of an operator, or a group of them that belong to one function."""

    name: str
    module: str
    node: int = NO_NODE
    view_behind: int = NO_NODE  # a node that runs right before its own
    number: int = 0  # nodes that there were when it began
    reads: list[Reference] = dataclasses.field(default_factory=list)
    writes: list[Reference] = dataclasses.field(default_factory=list)
    positions: list[int] = dataclasses.field(default_factory=list)  # of writes among its results
    wants: list[bool] = dataclasses.field(default_factory=list)  # of reads: gets a gradient
    kept_reads: set[int] = dataclasses.field(default_factory=set)  # storages
    kept_writes: set[int] = dataclasses.field(default_factory=set)
    mutates: set[int] = dataclasses.field(default_factory=set)
    allocates: bool = True  # False: its results are views
    peak: int = 0  # bytes requested from the allocator, at most while it ran
    after: int = 0  # and when it was done
    live: int = 0  # bytes of storages when it was done
    flops: int | None = None
    launches: int = 0
    group: int | None = None
    line: str = ""  # of the model's code
    region: Any = None  # a compiled.Region
    inside: Any = None  # an inside.Inside
    adds_only: bool = False  # its gradients are temporaries, all of them


@dataclasses.dataclass
class Stretch:
    """What counts as a whole: the optimizer's step, a backward within the forward."""

    live: int  # bytes of storages, when it began
    requested: int  # of the allocator
    launches: int
    highest: int  # requested, at most
    moved: int = 0
    flops: int = 0


@dataclasses.dataclass
class NodeRun:
    """What a node of the forward's graph took when its gradients were made."""

    before: int  # bytes requested from the allocator
    peak: int
    live_before: int  # bytes of storages
    live_peak: int
    launches: int = 0
    flops: int = 0
    knows_flops: bool = False
    moved: int = 0
    trained: set[int] = dataclasses.field(default_factory=set)  # storages that it recomputes from
    outstayed: int = 0  # bytes of gradients, when it began, that were there for no node any more


@dataclasses.dataclass
class Group:
    """Operations that one autograd function, or one checkpointed segment, runs as a whole."""

    name: str
    module: str
    first_node: int
    first_operation: int
    kind: str  # "function", "checkpoint" or "script"
    before: int  # bytes requested from the allocator
    live_before: int  # bytes of storages
    line: str  # of the model's code
    last_node: int = NO_NODE
    results: list[Reference] = dataclasses.field(default_factory=list)
    arguments: list[Reference] = dataclasses.field(default_factory=list)
    launches: int = 0  # of kernels that the user's code starts
    moved: int = 0
    known: int = 0  # storages, when it began


class Allocator:
    """Bytes that were asked for, as PyTorch's allocator counts them."""

    def __init__(self, device: int = 0) -> None:
        self.device = device

    def reset(self) -> None:
        torch._C._cuda_resetPeakMemoryStats(self.device)

    def requested(self) -> tuple[int, int]:
        """Now, and at most since the last reset."""
        counts = torch._C._cuda_memoryStats(self.device)["requested_bytes"]["all"]
        return counts["current"], counts["peak"]


class Launches:
    """How many kernels the stand-in was asked to start."""

    def __init__(self) -> None:
        self.count = ctypes.c_long.in_dll(ctypes.CDLL(None), "stand_in_launches")

    def __call__(self) -> int:
        return self.count.value


def flops_of(function: Any, args: Any, kwargs: Any, result: Any) -> int | None:
    from torch.utils.flop_counter import flop_registry

    formula = flop_registry.get(function._overloadpacket)
    if formula is None:
        return None
    try:
        return int(formula(*args, **kwargs, out_val=result))
    except (TypeError, ValueError, IndexError, AssertionError):
        return None


def physical_bytes(reference: Reference) -> int:
    count = 1
    for size, stride in zip(reference.shape, reference.strides):
        count *= size if stride != 0 else 1
    return count * reference.dtype.itemsize


def is_fake(tensor: torch.Tensor) -> bool:
    """Of a compiler, which traces with it: there is no memory."""
    return isinstance(tensor, FakeTensor)


def is_whole_number(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex())


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """What is inside of the wrappers that vmap and its like put around tensors."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


def without_node(tensor: torch.Tensor) -> torch.Tensor:
    """For a node to keep: of its own result, the tensor itself would hold the node in turn, for ever
    where no backward goes through it."""
    if tensor.grad_fn is None:
        return tensor
    with torch._C._DisableTorchDispatch():
        return tensor.detach()


def mutated_arguments(function: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    found = []
    for index, argument in enumerate(function._schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        value = kwargs.get(argument.name, args[index] if index < len(args) else None)
        found += [plain(x) for x in tensors_in(value)]
    return found


class Recorder(TorchDispatchMode):
    def __init__(self, nodes_made: int = 0) -> None:
        """`nodes_made`: of operations that it is about to see."""
        super().__init__()
        accumulation.learn()
        self.storages: list[Storage] = []
        self.numbers: dict[int, int] = {}  # of storages that are there
        self.operations: list[Operation] = []
        self.groups: list[Group] = []
        self.nodes: dict[int, NodeRun] = {}
        self.modules: list[str] = []
        self.calls: list[tuple[str, int, int, Reference | None]] = []  # module, begin, end, input
        self.phase = "forward"
        self.first_node = self.last_number = torch.autograd._get_sequence_nr() - nodes_made
        self.pending: list[tuple[int, int]] = []  # node, storage: kept by an operation to come
        self.unplaced: list[tuple[int, int]] = []
        self.open_group: Group | None = None
        self.region: Any = None  # of compiled code: the one that runs
        self.in_compiled = False  # in that of a backward, or of the optimizer's step
        self.allocator, self.launches = Allocator(), Launches()
        self.running_node = NO_NODE
        self.known_before_node = 0  # storages
        self.outstayed = Outstayed(self.nodes, 0)
        self.live = 0  # bytes of the storages that are there
        self.live_peaks = {"begin": 0}
        self.kept: set[int] = set()  # storages that nodes hold
        self.outlive: set[int] = set()  # storages of before the update that are there behind it
        self.hooked: list[Any] = []  # weights whose hooks may free their gradients at once
        self.lingering: set[int] = set()  # storages of those among them that did not
        self.added_to: set[int] = set()  # parameters whose gradient is none that a backward leaves
        self.not_asked: set[int] = set()  # parameters that no gradient is asked of
        self.convolution_scratch = 0  # the most that one takes beside what it makes
        self.stretch = Stretch(0, 0, 0, 0)
        self.products = Products()
        self.taken: dict[int, int] = {}  # by storage: bytes, at most, that an operation read of it
        self.loss: Reference | None = None
        self.loss_before: int | None = None  # of the pass before, where that is one number
        self.left: list[int] = []  # storages of the forward that are there when the update begins
        self.lines = Lines()

    # --- storages -------------------------------------------------------------------------------

    def number(self, tensor: torch.Tensor) -> int:
        storage = tensor.untyped_storage()
        known = self.numbers.get(storage._cdata)
        if known is not None:
            return known
        number = len(self.storages)
        self.storages.append(Storage(storage.nbytes(), tensor.dtype, tuple(tensor.shape)))
        self.numbers[storage._cdata] = number
        self.live += storage.nbytes()
        self.live_peaks[self.phase] = max(self.live_peaks.get(self.phase, 0), self.live)
        weakref.finalize(storage, self.gone, storage._cdata, number)
        return number

    def gone(self, key: int, number: int) -> None:
        if self.numbers.get(key) == number:
            del self.numbers[key]
        self.live -= self.storages[number].bytes
        if self.phase in ("forward", "inside"):
            self.storages[number].gone_before = len(self.operations)
        elif self.phase == "backward":
            self.storages[number].goes_in_backward = True
            self.outstayed.note_gone(number, self.storages[number].bytes)

    def knows(self, tensor: torch.Tensor) -> bool:
        return tensor.untyped_storage()._cdata in self.numbers

    def there_before(self, tensor: torch.Tensor, name: str, category: str, trainable: bool) -> None:
        tensor = plain(tensor)
        if tensor.device.type != "cuda" or tensor.untyped_storage().nbytes() == 0:
            return
        is_new = not self.knows(tensor)
        storage = self.storages[self.number(tensor)]
        if is_new:
            storage.name, storage.category, storage.trainable = name, category, trainable
            storage.address = tensor.untyped_storage().data_ptr()

    def gradient_before(self, tensor: torch.Tensor, name: str) -> None:
        known = len(self.storages)
        self.there_before(tensor, f"{name}.grad", "input", False)
        for storage in self.storages[known:]:
            storage.is_gradient = True

    def source_of(self, tensor: torch.Tensor) -> tuple[int, int] | None:
        if not tensor.requires_grad or tensor.grad_fn is None:
            return None
        return tensor.grad_fn._sequence_nr() - self.first_node, tensor.output_nr

    def reference(self, tensor: torch.Tensor, with_source: bool = True) -> Reference:
        source = self.source_of(tensor) if with_source else None
        return Reference(self.number(tensor), tuple(tensor.shape), tensor.stride(),
                         tensor.storage_offset(), tensor.dtype, source)

    # --- operations -----------------------------------------------------------------------------

    def on_device(self, values: Any) -> list[torch.Tensor]:
        return [x for _, x in self.numbered_on_device(values)]

    @staticmethod
    def numbered_on_device(values: Any) -> list[tuple[int, torch.Tensor]]:
        """With its place among all tensors: empty ones take one, too."""
        tensors = [plain(x) for x in tensors_in(values)]
        return [(at, x) for at, x in enumerate(tensors)
                if x.device.type == "cuda" and x.layout == torch.strided and not is_fake(x) and
                x.untyped_storage().nbytes() > 0 and x.numel() > 0]

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.phase == "idle" or function._schema.name.startswith("prim::"):
            return function(*args, **kwargs)
        if self.region is not None:
            return self.region.dispatched(self, function, args, kwargs)
        if self.phase == "forward":
            return self.record_forward(function, args, kwargs)
        if self.phase in ("optimizer", "inside"):
            return self.record_stretch(function, args, kwargs)
        return self.record_backward(function, args, kwargs)

    def record_forward(self, function: Any, args: Any, kwargs: Any) -> Any:
        number = torch.autograd._get_sequence_nr()
        operation = Operation(function._schema.name, self.modules[-1] if self.modules else "")
        operation.number = number - self.first_node
        if not is_packing():
            if number > self.last_number:
                operation.node = operation.number - 1
            self.last_number = number
            operation.kept_reads = {storage for _, storage in self.pending}
            self.pending = []
        operation.line = self.lines.current()
        inputs = self.on_device((args, kwargs))
        known = len(self.storages)
        operation.reads = [self.reference(x) for x in inputs]
        for storage in self.storages[known:]:
            storage.found_by = len(self.operations)
        wanted = torch.is_grad_enabled()
        operation.wants = [wanted and x.requires_grad and not is_whole_number(x) for x in inputs]
        operation.mutates = {self.number(x) for x in mutated_arguments(function, args, kwargs)
                             if x.device.type == "cuda" and x.numel() > 0}
        result = self.measure(operation, function, args, kwargs)
        self.note_results(operation, result)
        self.note_taken(operation.name, operation.reads, operation.writes, operation.launches)
        operation.live = self.live
        del inputs
        return result

    def measure(self, operation: Operation, function: Any, args: Any, kwargs: Any) -> Any:
        started = self.launches()
        self.allocator.reset()
        result = function(*args, **kwargs)
        operation.after, operation.peak = self.allocator.requested()
        operation.launches = convolutions.launches_of(function, args, self.launches() - started)
        operation.flops = flops_of(function, args, kwargs, result)
        self.note_convolution(function, operation.peak - operation.after)
        self.products.note(operation.flops, args)
        return result

    def note_convolution(self, function: Any, scratch: int) -> None:
        if convolutions.is_one(function):
            self.convolution_scratch = max(self.convolution_scratch, scratch)

    def note_results(self, operation: Operation, result: Any) -> None:
        outputs = self.numbered_on_device(result)
        known = len(self.storages)
        operation.positions = [at for at, _ in outputs]
        operation.writes = [self.reference(x, with_source=False) for _, x in outputs]
        for written in operation.writes:
            if written.storage >= known:
                self.storages[written.storage].made_by = len(self.operations)
        operation.allocates = len(self.storages) > known or bool(operation.mutates)
        if self.open_group is not None:
            operation.group = len(self.groups)
        if outputs or operation.mutates or operation.kept_reads:
            self.operations.append(operation)

    def note_taken(self, name: str, read: list[Reference], made: list[Reference], launches: int) -> None:
        """Views read nothing, and what chooses reads as much as it makes."""
        for each in read if launches else ():
            size = sum(map(physical_bytes, made)) if name in CHOOSES else physical_bytes(each)
            self.taken[each.storage] = max(self.taken.get(each.storage, 0), size)

    def begin_backward(self, loss: torch.Tensor, trained: list[Any]) -> None:
        self.phase, self.loss = "backward", self.reference(loss)
        self.live_peaks["backward"] = self.live
        self.outstayed = Outstayed(self.nodes, len(self.storages))
        self.hooked = [p for p in trained if p._backward_hooks or
                       getattr(p, "_post_accumulate_grad_hooks", None)]

    def record_backward(self, function: Any, args: Any, kwargs: Any) -> Any:
        node = torch._C._current_autograd_node()
        self.enter_node(node)
        inputs = self.on_device((args, kwargs))
        read = [self.reference(x, with_source=False) for x in inputs]
        moved = sum(map(physical_bytes, read))
        if torch.is_grad_enabled() and self.running_node in self.nodes:
            self.nodes[self.running_node].trained |= {self.number(x) for x in inputs
                                                      if x.requires_grad and x.is_leaf}
        del inputs
        started = self.launches()
        if not self.in_compiled:  # whose highest point may be before this operator
            self.allocator.reset()
        target = accumulation.in_place(function, args, kwargs, node, self.was_there)
        result = function(*args, **kwargs) if target is None else accumulation.added(target, args)
        made = [self.reference(x, with_source=False) for x in self.on_device(result)]
        launches = convolutions.launches_of(function, args, self.launches() - started)
        if launches or {x.storage for x in made} - {x.storage for x in read}:  # no view
            for each in read + made:
                self.outstayed.note_used(each.storage)
        self.note_taken(function._schema.name, read, made, launches)
        run = self.nodes.get(self.running_node)
        if node is None or run is None:
            return result
        after, peak = self.allocator.requested()
        self.note_convolution(function, peak - after)
        run.peak = max(run.peak, peak)
        run.live_peak = max(run.live_peak, self.live)
        run.launches += launches
        if launches:
            run.moved += moved + sum(physical_bytes(x) for x in made)
        flops = flops_of(function, args, kwargs, result)
        run.flops += flops or 0
        run.knows_flops = run.knows_flops or flops is not None
        return result

    def begin_update(self, of_weights: list[torch.Tensor]) -> None:
        """What the backward made and no gradient of a weight is, somebody has: a hook, an activation that
        retains its gradient. The update takes it, too."""
        gradients = set(map(self.number, of_weights))
        left = [number for number in self.outstayed.made if number not in gradients]
        size = sum(self.storages[number].bytes for number in left)
        for number in left:
            self.outstayed.note_left(number, self.storages[number].bytes)
        self.left = [number for number in self.numbers.values() if self.storages[number].made_by is not None]
        self.begin_stretch("optimizer")
        self.stretch.live -= size
        self.stretch.requested -= size

    def bytes_that_went(self) -> int:
        """When an update is over: of what was there when it began, not of the backward, and is in no variable.
        A trace has one number of the loss."""
        went = set(self.left) - self.outlive
        number = self.loss.dtype.itemsize if self.loss is not None and self.loss.storage in went else 0
        return sum(self.storages[each].bytes for each in went) - number

    def begin_stretch(self, phase: str) -> None:
        self.phase = phase
        self.live_peaks[phase] = self.live
        requested, _ = self.allocator.requested()
        self.stretch = Stretch(self.live, requested, self.launches(), requested)

    def record_stretch(self, function: Any, args: Any, kwargs: Any) -> Any:
        if not self.in_compiled:
            self.allocator.reset()
        launches = self.launches()
        result = function(*args, **kwargs)
        read, made = ([self.reference(x, with_source=False) for x in self.on_device(values)]
                      for values in ((args, kwargs), result))
        self.stretch.moved += sum(map(physical_bytes, read + made))
        self.note_taken(function._schema.name, read, made, self.launches() - launches)
        self.stretch.flops += flops_of(function, args, kwargs, result) or 0
        self.stretch.highest = max(self.stretch.highest, self.allocator.requested()[1])
        return result

    def kernel_started(self, given: list[Reference], moved: int) -> None:
        """By the user's own code, or a compiler's."""
        self.note_taken("", given, [], 1)
        if self.region is not None:
            self.region.moved += moved
        elif self.phase in ("optimizer", "inside"):
            self.stretch.moved += moved
        elif self.phase == "backward":
            self.enter_node(torch._C._current_autograd_node())
            for each in given:
                self.outstayed.note_used(each.storage)
            if self.running_node in self.nodes:
                self.nodes[self.running_node].moved += moved
                self.nodes[self.running_node].launches += 1
        elif self.open_group is not None:
            self.open_group.moved += moved
            self.open_group.launches += 1
        elif self.operations:
            self.operations[-1].launches += 1

    def note_what_outlives(self) -> None:
        """When an optimizer has stepped: what variables hold beside what nodes did."""
        self.outlive |= set(self.numbers.values())

    def was_there(self, tensor: torch.Tensor) -> bool:
        """Before the node that runs."""
        return self.numbers.get(tensor.untyped_storage()._cdata, self.known_before_node) < \
            self.known_before_node

    def enter_node(self, node: Any) -> None:
        """Nodes that the backward itself makes, to recompute something, belong to the one before."""
        if node is None or node.name().endswith("AccumulateGrad"):
            return
        self.lingering |= {self.number(p) for p in self.hooked if p.grad is not None}
        number = node._sequence_nr() - self.first_node
        if not 0 <= number < self.last_number - self.first_node:
            return
        if number != self.running_node:
            self.known_before_node = len(self.storages)
        self.running_node = number
        if number not in self.nodes:
            now, _ = self.allocator.requested()
            self.nodes[number] = NodeRun(now, now, self.live, self.live)

    # --- what is kept ---------------------------------------------------------------------------

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        self.note_kept(tensor)
        return without_node(tensor)

    def note_kept(self, tensor: torch.Tensor) -> None:
        if self.phase != "forward" or tensor.device.type != "cuda" or \
                tensor.untyped_storage().nbytes() == 0:
            return
        node = torch.autograd._get_sequence_nr() - 1 - self.first_node
        storage = self.number(tensor)
        self.kept.add(storage)
        last = self.operations[-1] if self.operations else None
        if last is not None and (last.node == node or self.is_result_over_view(tensor, last, node)):
            last.kept_writes.add(storage)
        else:
            self.pending.append((node, storage))

    def is_result_over_view(self, tensor: torch.Tensor, last: Operation, node: int) -> bool:
        """What was done in place on a view has two nodes more before the result is kept: what keeps an
        input has a node behind that of the input."""
        return self.number(tensor) in last.mutates and self.source_of(tensor) == (node, tensor.output_nr)

    # --- modules and groups ---------------------------------------------------------------------

    def enter_module(self, name: str, inputs: list[torch.Tensor]) -> None:
        if self.phase != "forward":
            return
        self.modules.append(name)
        given = [self.reference(x) for x in self.on_device(inputs)][:1]
        self.calls.append((name, len(self.operations), -1, given[0] if given else None))

    def leave_module(self, name: str) -> None:
        if self.phase != "forward" or not self.modules:
            return
        self.modules.pop()
        for at in range(len(self.calls) - 1, -1, -1):
            if self.calls[at][0] == name and self.calls[at][2] < 0:
                self.calls[at] = (*self.calls[at][:2], len(self.operations), self.calls[at][3])
                return

    def begin_group(self, name: str, kind: str, arguments: Any) -> bool:
        """False inside of another group, which has all."""
        if self.phase != "forward" or self.open_group is not None:
            return False
        self.open_group = Group(name, self.modules[-1] if self.modules else "",
                                torch.autograd._get_sequence_nr() - self.first_node,
                                len(self.operations), kind,
                                self.allocator.requested()[0], self.live, self.lines.current())
        self.open_group.known = len(self.storages)
        self.open_group.arguments = [self.reference(x)
                                     for x in self.on_device(tree_leaves(arguments))]
        if kind == "script":  # whose fused kernels no mode sees
            self.note_taken("", self.open_group.arguments, [], 1)
        return True

    def end_group(self, results: Any) -> None:
        group = self.open_group
        assert group is not None
        self.open_group = None
        self.last_number = torch.autograd._get_sequence_nr()
        group.last_node = self.last_number - self.first_node
        group.results = [self.reference(x) for x in self.on_device(tree_leaves(results))]
        if group.kind == "script":
            self.add_what_ran_unseen(group)
        self.groups.append(group)
        if self.operations and self.operations[-1].group == len(self.groups) - 1:
            self.operations[-1].kept_reads |= {storage for _, storage in self.pending}
        self.pending = []

    def add_what_ran_unseen(self, group: Group) -> None:
        """Fused kernels, at the end of a group: what they make is known by now."""
        last = Operation(UNSEEN, group.module, group=len(self.groups), live=self.live,
                         peak=self.allocator.requested()[1])
        for storage in self.storages[group.known:]:
            if not storage.name and storage.made_by is None and storage.found_by is None:
                storage.made_by = len(self.operations)
        self.operations.append(last)
