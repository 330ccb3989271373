"""Small tensors keep their values although no kernel runs: models look at masks and ids.

Every small tensor that is made from such tensors alone, on no random numbers and no weights, has a
twin on the CPU. Where a model asks (`if mask.all()`, `nonzero`, boolean indices), its twin answers.

Where it asks for what depends on weights, these count as they begin, and their results as zero: a
detector's boxes are its anchors then. That goes for whole numbers and truths made of them (`x > 0`,
`topk`, `argmax`), and for what is detached from the graph to be looked at. Random permutations leave
all where it is. Which experts a token goes to depends on weights, too: they take turns, so that all
have as many tokens.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any, Callable

import torch
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from . import accumulation
from .leaves import tensors_in

MOST_ELEMENTS = 1 << 20
ATEN = torch.ops.aten
# Their result's shape follows from values.
SHAPED_BY_VALUES = {ATEN.nonzero.default, ATEN.masked_select.default, ATEN.index.Tensor,
                    ATEN._unique2.default, ATEN.unique_consecutive.default,
                    ATEN.repeat_interleave.Tensor}
SHAPED_IN_PACKAGES = {"torchvision::nms"}
# Of a tensor they take its shape alone.
OF_A_SHAPE = {getattr(ATEN, name).default for name in ("zeros_like", "ones_like", "full_like",
                                                       "new_zeros", "new_ones", "new_full")}
# Of their results some are whole numbers, which others are chosen by.
CHOOSING = {ATEN.sort.default, ATEN.sort.stable, ATEN.topk.default, ATEN.max.dim, ATEN.min.dim,
            ATEN.kthvalue.default, ATEN.median.dim, ATEN.mode.default, ATEN.cummax.default,
            ATEN.cummin.default}
PERMUTED = {ATEN.randperm.default, ATEN.randperm.generator}
SET = {ATEN.set_.source_Storage, ATEN.set_.source_Storage_storage_offset}
COPIED = {ATEN._to_copy.default, ATEN.copy_.default}
# F.ctc_loss reads lengths on the host and takes _ctc_loss with lists, but under a mode that with
# tensors, below which the host would read what no kernel has written. Which arguments those are.
TAKES_LISTS = {ATEN._ctc_loss.Tensor: (ATEN._ctc_loss.default, (2, 3)),
               ATEN._ctc_loss_backward.Tensor: (ATEN._ctc_loss_backward.default, (3, 4))}
# Of cuSOLVER, which is not stood in for: what they make is known, what they take is not.
SOLVED = {getattr(ATEN, name).default
          for name in ("linalg_qr", "linalg_cholesky_ex", "linalg_inv_ex", "linalg_lu_factor_ex",
                       "_linalg_eigh", "_linalg_svd", "_linalg_solve_ex", "linalg_ldl_factor_ex", "geqrf",
                       "linalg_householder_product", "linalg_lu_solve", "cholesky_solve", "linalg_lu",
                       "_linalg_slogdet", "_linalg_det", "linalg_eig", "linalg_lstsq", "cholesky_inverse")}
CHOOSES_BY_MASK = {ATEN.index.Tensor, ATEN.masked_select.default}
# Masks among their indices become the numbers of what they choose, which a kernel would count.
INDEXED = {ATEN.index.Tensor, ATEN.index_put.default, ATEN.index_put_.default,
           ATEN._index_put_impl_.default}


def zeros_like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.zeros((), dtype=tensor.dtype, device="cpu").expand(tensor.shape)


def is_shaped_by_values(function: Any) -> bool:
    return function in SHAPED_BY_VALUES or function._schema.name in SHAPED_IN_PACKAGES


def is_discrete(value: torch.Tensor) -> bool:
    return not (value.is_floating_point() or value.is_complex())


def is_known_of_file(loaded: torch.Tensor) -> bool:
    """Masks, ids and an optimizer's count of steps, and no weights."""
    return loaded.device.type == "cuda" and loaded.numel() <= MOST_ELEMENTS and \
        (loaded.numel() == 1 or is_discrete(loaded))


def turns(rows: int, experts: int, slots: int) -> torch.Tensor:
    return (torch.arange(rows * slots, device="cpu") % experts).view(rows, slots)


def is_masked_fill(indices: Any, value: Any = None, accumulate: bool = False, *_: Any) -> bool:
    """x[mask] = 0.0 takes no indices: its value lies on the CPU, and PyTorch fills instead."""
    return value is not None and value.device.type == "cpu" and value.numel() == 1 and \
        not accumulate and all(x is None or x.dtype in (torch.bool, torch.uint8) for x in indices)


def made_only(function: Any, args: Any, kwargs: Any) -> Any:
    """The results of an operator that is not run."""
    def shape_of(value: Any) -> Any:
        return value.to("meta") if isinstance(value, torch.Tensor) else value

    def made(value: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cuda")

    return tree_map(made, function(*tree_map(shape_of, args), **tree_map(shape_of, kwargs)))


def without_generator_of_host(args: Any, kwargs: Any) -> Any:
    """What a script makes on the host, with a generator that is there, is on the device here."""
    generator = kwargs.get("generator")
    if generator is None or generator.device.type != "cpu":
        return kwargs
    device = args[0].device if isinstance(args[0], torch.Tensor) else kwargs.get("device")
    on_host = device is None or torch.device(device).type == "cpu"
    return kwargs if on_host else dict(kwargs, generator=None)


_loading = False  # from a file: what is on the device is what was there


def install() -> None:
    """Before a user's modules import what is replaced here."""
    plain = torch.load

    @functools.wraps(plain)
    def load(*args: Any, **kwargs: Any) -> Any:
        global _loading
        _loading = True
        try:
            return plain(*args, **kwargs)
        finally:
            _loading = False

    torch.load = torch.serialization.load = load


class Values(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.twins: Any = torch.utils.weak.WeakIdKeyDictionary()
        self.masks: dict[int, torch.Tensor] = {}  # by storage: autograd hands on other tensors of it
        self.sums = accumulation.Sums()
        self.seen: Callable[[Any, Any], None] | None = None  # is told what is given and made, before the step

    def twin(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.twins.get(value, value)
        return torch.device("cpu") if isinstance(value, torch.device) else value

    def on_twins(self, function: Any, args: Any, kwargs: Any) -> Any:
        tensors = tensors_in((args, kwargs))
        if function in OF_A_SHAPE and tensors[0].numel() <= MOST_ELEMENTS:
            return self.run_on_cpu(function, args, kwargs | dict(device=None), self.twin_or_zeros)
        if not all(x.device.type == "cpu" or x in self.twins for x in tensors):
            return None
        if function._schema.is_mutable and tensors and tensors[0].device.type == "cpu":
            return None  # is its own twin, and must change once
        small = all(x.numel() <= MOST_ELEMENTS for x in tensors)
        random = torch.Tag.nondeterministic_seeded in function.tags
        if not small or random or function._schema.name.startswith("aten::empty"):
            return None
        return self.run_on_cpu(function, args, kwargs, self.twin)

    @staticmethod
    def run_on_cpu(function: Any, args: Any, kwargs: Any, stand_in: Any) -> Any:
        try:
            return function(*tree_map(stand_in, args), **tree_map(stand_in, kwargs))
        except (RuntimeError, NotImplementedError, IndexError):  # an operator of CUDA alone
            return None

    def twin_or_zeros(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.device.type == "cuda" and \
                value not in self.twins:
            return zeros_like(value)
        return self.twin(value)

    def guessed(self, function: Any, args: Any, kwargs: Any, result: Any = None) -> Any:
        """Of what depends on weights or on random numbers (top of this file), or None."""
        if function in PERMUTED:
            return torch.arange(args[0], device="cpu")
        if function is ATEN.detach.default:
            is_looked_at = args[0].requires_grad and not is_lazy(args[0])
            return zeros_like(args[0]) if is_looked_at else None
        made = tensors_in(result)
        if function is ATEN.topk.default and args[0].dim() == 2:
            return None, turns(args[0].shape[0], args[0].shape[1], args[1])
        if function not in CHOOSING and not all(map(is_discrete, made)):
            return None
        tensors = tensors_in((args, kwargs))
        if not tensors or function._schema.is_mutable or \
                any(x.numel() > MOST_ELEMENTS for x in [*tensors, *made]) or \
                torch.Tag.nondeterministic_seeded in function.tags:
            return None
        return self.run_on_cpu(function, args, kwargs, self.twin_or_zeros)

    def forget_overwritten(self, function: Any, args: Any) -> None:
        if function._schema.is_mutable and args and isinstance(args[0], torch.Tensor):
            self.twins.pop(args[0], None)
            self.masks.pop(args[0].untyped_storage()._cdata, None)

    def known_mask(self, index: Any) -> torch.Tensor | None:
        if not isinstance(index, torch.Tensor) or index.dtype is not torch.bool:
            return None
        twin = self.twins.get(index)
        if twin is None and index.device.type == "cuda":
            twin = self.masks.get(index.untyped_storage()._cdata)
            if twin is None or twin.shape != index.shape:  # of random numbers, or large
                return torch.ones((), dtype=torch.bool, device="cpu").expand(index.shape)
        return twin if twin is not None and twin.shape == index.shape else None

    def chosen(self, indices: Any) -> list[Any]:
        """The indices, with those that each mask chooses in its place, one per axis."""
        found: list[Any] = []
        for index in indices:
            mask = self.known_mask(index)
            found += [index] if mask is None else mask.nonzero().to("cuda").unbind(1)
        return found

    def run(self, function: Any, args: Any, kwargs: Any) -> Any:
        if function in INDEXED and not is_masked_fill(*args[1:]):
            args = (args[0], self.chosen(args[1]), *args[2:])
        elif function is ATEN.masked_select.default and self.known_mask(args[1]) is not None:
            value, mask = torch.broadcast_tensors(args[0], self.known_mask(args[1]))
            return ATEN.index.Tensor(value, mask.nonzero().to("cuda").unbind(1))
        if function in SOLVED and args[0].device.type == "cuda":
            return made_only(function, args, kwargs)
        return function(*args, **without_generator_of_host(args, kwargs))

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        node = torch._C._current_autograd_node()
        if node is None:
            result = self.answered(function, args, kwargs)
            if self.seen is not None:
                self.seen((args, kwargs), result)
            return result
        target = self.sums.target(function, args, kwargs, node)
        if target is not None:
            self.twins.pop(target, None)
            return accumulation.added(target, args)
        result = self.answered(function, args, kwargs)
        self.sums.note((args, kwargs), result)
        return result

    def answered(self, function: Any, args: Any, kwargs: Any) -> Any:
        if function is ATEN.lift_fresh.default:
            self.note(args[0], args[0].cpu())  # torch.tensor([…]) is filled before a mode sees it
        value = self.on_twins(function, args, kwargs)
        if function is ATEN._local_scalar_dense.default:
            if not isinstance(args[0], torch.Tensor):  # of a script, whose numbers are tensors
                return args[0]
            return zeros_like(args[0]).item() if value is None else value
        if value is None and is_shaped_by_values(function) and function not in CHOOSES_BY_MASK:
            value = self.guessed(function, args, kwargs)
        if value is None:
            self.forget_overwritten(function, args)
        elif is_shaped_by_values(function):
            result = tree_map(lambda x: x.to("cuda") if isinstance(x, torch.Tensor) else x, value)
            self.note(result, value)
            return result
        if function in TAKES_LISTS:
            same, lists = TAKES_LISTS[function]
            lengths = {i: self.twin(args[i]) for i in lists}
            if all(x.device.type == "cpu" for x in lengths.values()):
                function = same
                args = tuple(lengths[i].tolist() if i in lists else x for i, x in enumerate(args))
        result = self.run(function, args, kwargs)
        if value is None and function in COPIED:
            self.bring(args[1 if function is ATEN.copy_.default else 0], result)
        if _loading and function in SET and is_known_of_file(result):
            value = result.cpu()
        self.note(result, self.guessed(function, args, kwargs, result) if value is None else value)
        return result

    def bring(self, source: torch.Tensor, result: torch.Tensor) -> None:
        """To the host, from the device, where nothing was computed."""
        if source.device.type == "cuda" and result.device.type == "cpu" and \
                result.numel() <= MOST_ELEMENTS:
            result.copy_(self.twin_or_zeros(source))

    def note(self, result: Any, value: Any) -> None:
        if value is None:
            return
        for made, twin in zip(tree_leaves(result), tree_leaves(value)):
            if isinstance(made, torch.Tensor) and isinstance(twin, torch.Tensor) and \
                    made.device.type == "cuda" and made.shape == twin.shape and \
                    twin.numel() <= MOST_ELEMENTS:
                self.twins[made] = twin
                if twin.dtype is torch.bool and made.untyped_storage().nbytes() == made.numel():
                    self.remember_mask(made.untyped_storage(), twin)
            elif isinstance(made, torch.Tensor) and made is not twin and \
                    made.device.type == "cpu" and isinstance(twin, torch.Tensor) and \
                    made.shape == twin.shape:
                made.copy_(twin)  # brought from the device, where nothing was computed

    def remember_mask(self, storage: torch.UntypedStorage, twin: torch.Tensor) -> None:
        if storage._cdata not in self.masks:
            weakref.finalize(storage, self.masks.pop, storage._cdata, None)
        self.masks[storage._cdata] = twin
