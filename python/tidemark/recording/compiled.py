"""torch.compile on the stand-in: what Inductor generates asks the real allocator, starts nothing.

Triton compiles no kernel here: launches are counted, with the bytes of what they are given. All
else of the generated code runs as on a GPU: every buffer is allocated, used again and freed.

A compiled graph's forward is one operation of the recording, a Region. Nobody sees its allocations
as operators, so they are noted where the generated code makes them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import re
import weakref
from typing import Any, Callable, Iterator

import torch
from torch.utils._pytree import tree_leaves

from . import kernels
from .errors import CaptureError
from .recorder import Operation, Recorder, flops_of, physical_bytes

OPERATION = "torch.compile"
VIEWS = {"getitem", "view", "permute", "transpose", "reshape", "expand", "squeeze", "unsqueeze",
         "alias", "detach", "select", "slice", "t"}
WRITTEN_OVER = re.compile(r"\bin_out_ptr\d+")


@dataclasses.dataclass
class Label:
    """Where a saved tensor comes from: `h.0.mlp`, `addmm`."""

    module: str
    name: str


@dataclasses.dataclass
class Region:
    """A compiled graph's forward, while it runs and when it is over."""

    operation: Operation
    before: int  # bytes requested from the allocator
    live_before: int  # bytes of storages
    launches: int
    live_peak: int
    moved: int = 0
    flops: int = 0
    knows_flops: bool = False
    made: list[int] = dataclasses.field(default_factory=list)  # storages
    labels: dict[int, Label] = dataclasses.field(default_factory=dict)  # of storages

    def dispatched(self, recorder: Recorder, function: Any, args: Any, kwargs: Any) -> Any:
        """An operator that the code calls: a matrix product, or what Triton has no code for."""
        started = recorder.launches()
        result = function(*args, **kwargs)
        flops = flops_of(function, args, kwargs, result)
        self.flops += flops or 0
        recorder.products.note(flops, args)
        self.knows_flops = self.knows_flops or flops is not None
        made = recorder.on_device(result)
        for tensor in made:
            note_made(recorder, self, tensor)
        if recorder.launches() > started:
            self.moved += bytes_of(recorder, [*recorder.on_device((args, kwargs)), *made])
        return result


_recorder: Recorder | None = None


def regions_of(recorder: Recorder | None) -> None:
    """Compiled code is written down in this recorder."""
    global _recorder
    _recorder = recorder


def is_compiled(function: type) -> bool:
    """The autograd function of a compiled graph."""
    return function.__name__ == "CompiledFunction" and \
        function.__module__.startswith("torch._functorch.")


def plain_name(name: str) -> str:
    """Of a module or parameter, as it is without torch.compile around what it is in."""
    return name.replace("_orig_mod.", "").removesuffix("_orig_mod").rstrip(".")


# --- the forward ----------------------------------------------------------------------------------


def record_region(recorder: Recorder, arguments: Any, run: Callable[[], Any]) -> Any:
    """One operation: what `run` reads, makes, keeps and takes."""
    region = begin(recorder, arguments)
    recorder.region = region
    try:
        result = run()
    finally:
        recorder.region = None
    end(recorder, region, result)
    return result


def begin(recorder: Recorder, arguments: Any) -> Region:
    operation = Operation(OPERATION, recorder.modules[-1] if recorder.modules else "")
    inputs = recorder.on_device(arguments)
    operation.reads = [recorder.reference(x) for x in inputs]
    recorder.note_taken(OPERATION, operation.reads, [], 1)
    wanted = torch.is_grad_enabled()
    operation.wants = [wanted and x.requires_grad for x in inputs]
    operation.number = torch.autograd._get_sequence_nr() - recorder.first_node  # its node, if any
    operation.line = recorder.lines.current()
    now, _ = recorder.allocator.requested()
    recorder.allocator.reset()
    return Region(operation, now, recorder.live, recorder.launches(), recorder.live)


def end(recorder: Recorder, region: Region, result: Any) -> None:
    operation = region.operation
    operation.after, operation.peak = recorder.allocator.requested()
    operation.live = region.live_peak = max(region.live_peak, recorder.live)
    operation.launches = recorder.launches() - region.launches
    operation.flops = region.flops if region.knows_flops else None
    number = torch.autograd._get_sequence_nr()
    if number - recorder.first_node > operation.number:
        operation.node = operation.number
    recorder.last_number = number
    operation.writes = [recorder.reference(x) for x in recorder.on_device(result)]
    operation.kept_reads = {storage for _, storage in recorder.pending}
    recorder.pending = []
    operation.region = region
    if recorder.open_group is not None:
        operation.group = len(recorder.groups)
    recorder.operations.append(operation)


def note_made(recorder: Recorder, region: Region, tensor: torch.Tensor) -> None:
    known = len(recorder.storages)
    number = recorder.number(tensor)
    if number >= known:
        recorder.storages[number].made_by = len(recorder.operations)
        region.made.append(number)
    region.live_peak = max(region.live_peak, recorder.live)


def bytes_of(recorder: Recorder, tensors: list[torch.Tensor]) -> int:
    return sum(physical_bytes(recorder.reference(x, with_source=False)) for x in tensors)


# --- what the generated code calls ----------------------------------------------------------------


class Kernel:
    """In place of a kernel that Triton would compile."""

    def __init__(self, source: str) -> None:
        self.written_over = len(set(WRITTEN_OVER.findall(source.partition("):")[0])))

    def run(self, *args: Any, **kwargs: Any) -> None:
        """Generated kernels have what they overwrite first."""
        kernels.started(args, kwargs, self.written_over)

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return self.run


def allocated(tensor: torch.Tensor) -> torch.Tensor:
    """A buffer of the generated code, which no operator made."""
    recorder = _recorder
    if recorder is None or recorder.phase == "idle" or tensor.untyped_storage().nbytes() == 0:
        return tensor
    if recorder.region is not None:
        note_made(recorder, recorder.region, tensor)
        return tensor
    recorder.number(tensor)
    run = recorder.nodes.get(recorder.running_node)
    if recorder.phase == "backward" and run is not None:
        run.live_peak = max(run.live_peak, recorder.live)
    return tensor


def run_graph(run: Callable[[Any], Any], inputs: Any, labels: list[Label | None]) -> Any:
    """A compiled graph, of a forward, a backward or neither."""
    recorder = _recorder
    if recorder is None or recorder.phase == "idle":
        return run(inputs)
    if recorder.phase == "forward":
        if recorder.region is not None:
            result = run(inputs)
            note_labels(recorder, recorder.region, result, labels)
            return result
        return record_region(recorder, list(inputs), lambda: run(inputs))
    return measured(recorder, run, inputs)


def note_labels(recorder: Recorder, region: Region, result: Any,
                labels: list[Label | None]) -> None:
    for tensor, label in zip(result, labels):
        if label is not None and isinstance(tensor, torch.Tensor) and recorder.on_device(tensor):
            region.labels.setdefault(recorder.number(tensor), label)


def measured(recorder: Recorder, run: Callable[[Any], Any], inputs: Any) -> Any:
    """Of a backward, or of the optimizer's step: the highest point between operators, too."""
    if recorder.phase == "backward":
        recorder.enter_node(torch._C._current_autograd_node())
    recorder.allocator.reset()
    recorder.in_compiled = True
    try:
        result = run(inputs)
    finally:
        recorder.in_compiled = False
    _, peak = recorder.allocator.requested()
    node = recorder.nodes.get(recorder.running_node)
    if recorder.phase == "optimizer":
        recorder.stretch.highest = max(recorder.stretch.highest, peak)
    elif node is not None:
        node.peak = max(node.peak, peak)
        node.live_peak = max(node.live_peak, recorder.live)
    return result


# --- installing -----------------------------------------------------------------------------------

_is_installed = False
_told: weakref.WeakKeyDictionary[torch.nn.Module, Any] = weakref.WeakKeyDictionary()
_refusals: list[CaptureError] = []  # which torch._dynamo.config.suppress_errors would hide


def is_used() -> bool:
    """Whether anything was compiled."""
    return _is_installed


def free_what_compiling_left() -> None:
    """A first step compiles: frames of the compiler hold its gradients in circles."""
    if is_used():
        gc.collect()


def install_compile() -> None:
    """Before a user's modules import it. Nothing of Dynamo is loaded until it is called."""
    plain_compile = torch.compile

    def compile(*args: Any, **kwargs: Any) -> Any:
        install()
        owner = getattr(args[0], "__self__", None) if args else None
        if not isinstance(owner, torch.nn.Module):
            return plain_compile(*args, **kwargs)
        _told[owner] = args[1:], kwargs  # of its own compile()
        return with_hooks_of_all(owner, plain_compile(*args, **kwargs))

    torch.compile = compile


def with_hooks_of_all(module: torch.nn.Module, call: Callable[..., Any]) -> Callable[..., Any]:
    """What module.compile() made may call its own, or none: here each is called once."""
    register = torch.nn.modules.module

    def called(*args: Any, **kwargs: Any) -> Any:
        for hook in list(register._global_forward_pre_hooks.values()):
            hook(module, args)
        try:
            with without_hooks_of_all():
                return call(*args, **kwargs)
        finally:
            for hook in list(register._global_forward_hooks.values()):
                hook(module, args, None)

    return called


def compile_as(wrapper: torch.nn.Module, inside: torch.nn.Module) -> None:
    """The module inside, where wrapper.compile() was called."""
    if wrapper._compiled_call_impl is not None and wrapper in _told:
        args, kwargs = _told[wrapper]
        inside.compile(*args, **kwargs)


def install() -> None:
    global _is_installed
    if _is_installed:
        return
    replace_triton()
    replace_inductor()
    replace_dynamo()
    _is_installed = True


def replace_triton() -> None:
    from torch._inductor import async_compile

    kernels.replace_triton()
    async_compile.AsyncCompile.triton = lambda self, name, source, *args, **kwargs: Kernel(source)


def replace_inductor() -> None:
    from torch._inductor import compile_fx, output_code
    from torch._inductor.fx_passes import pad_mm

    guards = torch._C._dynamo.guards
    plain_empty = guards._empty_strided_cuda
    guards._empty_strided_cuda = lambda *args: allocated(plain_empty(*args))
    plain_inner, graphs = compile_fx._compile_fx_inner, output_code.CompiledFxGraph
    plain_call = graphs.__call__

    def inner(gm: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            refuse_what_needs_a_gpu()
        except CaptureError as error:
            _refusals.append(error)
            raise
        made = plain_inner(gm, *args, **kwargs)
        made.tidemark_labels = labels_of(gm)
        return made

    def call(graph: Any, inputs: Any) -> Any:
        return run_graph(lambda given: plain_call(graph, given), inputs,
                         getattr(graph, "tidemark_labels", []))

    compile_fx._compile_fx_inner = inner
    graphs.__call__ = call
    # Which is faster, a GPU would say, after filling its memory with operands.
    pads = "_should_pad" if hasattr(pad_mm, "_should_pad") else "should_pad_bench"  # 2.15, 2.6
    setattr(pad_mm, pads, lambda *args, **kwargs: torch._inductor.config.force_shape_pad)


def refuse_what_needs_a_gpu() -> None:
    from torch._inductor import config

    if config.triton.cudagraphs:
        raise CaptureError("torch.compile with CUDA graphs (mode=\"reduce-overhead\" or "
                           "\"max-autotune\") keeps memory in pools of its own: capture it without "
                           "a mode")
    if config.max_autotune or config.max_autotune_gemm:
        raise CaptureError("torch.compile with mode=\"max-autotune…\" chooses kernels by their "
                           "time on a GPU: capture it without a mode")
    if config.cpp_wrapper:
        raise CaptureError("torch._inductor.config.cpp_wrapper makes C++ code, which is not run "
                           "here: capture without it")
    if config.triton.multi_kernel:
        raise CaptureError("torch._inductor.config.triton.multi_kernel chooses kernels by their "
                           "time on a GPU: capture without it")


def replace_dynamo() -> None:
    """Dynamo passes over what runs under a mode, as all does here. It compiles without modes; but
    guards see that tensors are under one, so those are made where modes are as when they ask."""
    from torch._dynamo import convert_frame, trace_rules
    from torch.utils import _python_dispatch as dispatch

    for module in ("recorder", "values", "step", "lines", "compiled", "passes", "watching", "meter", "cast"):
        trace_rules.add(f"{__package__}.{module}")
    for question in ("is_in_torch_dispatch_mode", "is_in_any_mode_without_ignore_compile_internals",
                     "any_torch_dispatch_mode_on_stack"):
        if hasattr(convert_frame, question):
            setattr(convert_frame, question, lambda *args, **kwargs: False)
    wrapper, plain_guards = convert_frame.CatchErrorsWrapper, convert_frame.CheckFunctionManager
    plain_call = wrapper.__call__
    modes: list[Any] = []

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        modes[:] = dispatch._get_current_dispatch_mode_stack() or modes
        try:
            with dispatch._disable_current_modes(), without_hooks_of_all():
                return plain_call(self, *args, **kwargs)
        finally:
            if _refusals:
                raise _refusals[0] from None

    def guards(*args: Any, **kwargs: Any) -> Any:
        ask_nothing_of_hooks_of_all(next(x for x in args if hasattr(x, "guards")).guards)
        with dispatch._disable_current_modes():
            for mode in modes:
                dispatch._push_mode(mode)
            try:
                return plain_guards(*args, **kwargs)
            finally:
                for _ in modes:
                    dispatch._pop_mode()

    wrapper.__call__ = call
    convert_frame.CheckFunctionManager = guards


@contextlib.contextmanager
def without_hooks_of_all() -> Iterator[None]:
    """Hooks of all modules are a capture's own, and not part of what is compiled."""
    register = torch.nn.modules.module
    hooks: list[dict[int, Any]] = [register._global_forward_pre_hooks, register._global_forward_hooks]
    there = [dict(each) for each in hooks]
    for each in hooks:
        each.clear()
    try:
        yield
    finally:
        for each, before in zip(hooks, there):
            each.update(before)


def ask_nothing_of_hooks_of_all(guards: Any) -> None:
    """They are there when the code runs, and were not when it was compiled."""
    guards.inner = type(guards.inner)(x for x in guards.inner if "_global_forward_" not in x.name)


# --- names ----------------------------------------------------------------------------------------


def labels_of(gm: Any) -> list[Label | None]:
    """Per output of a graph."""
    outputs = [node for node in gm.graph.nodes if node.op == "output"]
    leaves = tree_leaves(outputs[0].args[0]) if outputs else []
    return [label_of(node) if isinstance(node, torch.fx.Node) else None for node in leaves]


def label_of(node: Any) -> Label | None:
    """Of the operator that made it, whatever views of its result came between."""
    while plain_operator(node) in VIEWS and isinstance(node.args[0], torch.fx.Node):
        node = node.args[0]
    if node.op != "call_function":
        return None
    stack = node.meta.get("nn_module_stack") or {}
    path = next(reversed(stack.values()))[0] if stack else ""
    return Label(module_path(path), plain_operator(node))


def plain_operator(node: Any) -> str:
    """`addmm_3` is an `addmm`."""
    return re.sub(r"_\d+$", "", node.name).strip("_")


def module_path(path: str) -> str:
    """`L['self']._modules['h']._modules['0'].mlp` is `h.0.mlp`. What comes first is a variable."""
    parts = re.findall(r"[A-Za-z_]\w*|\d+", re.sub(r"^[LG]\['\w+'\]", "", path))
    return ".".join(x for x in parts if x not in ("_modules", "_orig_mod", "__self__"))


# --- modules --------------------------------------------------------------------------------------


def watch_modules(names: Any, enter: Callable[..., None], leave: Callable[..., None]) \
        -> list[Callable[[], None]]:
    """Hooks on each module, which compiled code does not ask for. Returns what removes them.

    What `module.compile()` made has its hooks in it, and is wrapped instead."""
    undo: list[Callable[[], None]] = []
    for module in names:
        if module._compiled_call_impl is not None:
            undo.append(watch_compiled_call(module, enter, leave))
            continue
        undo += [module.register_forward_pre_hook(enter).remove,
                 module.register_forward_hook(leave, always_call=True).remove]
    return undo


def watch_compiled_call(module: Any, enter: Callable[..., None], leave: Callable[..., None]) \
        -> Callable[[], None]:
    """For `module.compile()`, whose hooks are compiled with it. Returns what undoes this."""
    plain = module._compiled_call_impl

    def call(*args: Any, **kwargs: Any) -> Any:
        enter(module, args)
        try:
            return plain(*args, **kwargs)
        finally:
            leave(module, args, None)

    module._compiled_call_impl = call

    def undo() -> None:
        module._compiled_call_impl = plain

    return undo
