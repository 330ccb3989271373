"""Small tensors keep their values although no kernel runs: models look at masks and ids.

Every small tensor that is made from such tensors alone, on no random numbers and no weights, has a
twin on the CPU. Where a model asks (`if mask.all()`, `nonzero`, boolean indices), its twin answers.
Which experts a token goes to depends on weights: they take turns, so that all have as many tokens.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from .leaves import tensors_in

MOST_ELEMENTS = 1 << 20
ATEN = torch.ops.aten
# Their result's shape follows from values.
SHAPED_BY_VALUES = {ATEN.nonzero.default, ATEN.masked_select.default, ATEN.index.Tensor,
                    ATEN._unique2.default, ATEN.unique_consecutive.default,
                    ATEN.repeat_interleave.Tensor}
# F.ctc_loss reads lengths on the host and takes _ctc_loss with lists, but under a mode that with
# tensors, below which the host would read what no kernel has written. Which arguments those are.
TAKES_LISTS = {ATEN._ctc_loss.Tensor: (ATEN._ctc_loss.default, (2, 3)),
               ATEN._ctc_loss_backward.Tensor: (ATEN._ctc_loss_backward.default, (3, 4))}
# Of cuSOLVER, which is not stood in for: what they make is known, what they take is not.
SOLVED = {getattr(ATEN, name).default
          for name in ("linalg_qr", "linalg_cholesky_ex", "linalg_inv_ex", "linalg_lu_factor_ex",
                       "_linalg_eigh", "_linalg_svd", "_linalg_solve_ex", "linalg_ldl_factor_ex", "geqrf",
                       "linalg_householder_product", "linalg_lu_solve", "cholesky_solve")}
# Masks among their indices become the numbers of what they choose, which a kernel would count.
INDEXED = {ATEN.index.Tensor, ATEN.index_put.default, ATEN.index_put_.default,
           ATEN._index_put_impl_.default}


def turns(rows: int, experts: int, slots: int) -> torch.Tensor:
    return (torch.arange(rows * slots, device="cpu") % experts).view(rows, slots)


def is_masked_fill(value: Any = None, accumulate: bool = False, *_: Any) -> bool:
    """x[mask] = 0.0 takes no indices: its value lies on the CPU, and PyTorch fills instead."""
    return value is not None and value.device.type == "cpu" and value.numel() == 1 and \
        not accumulate


def made_only(function: Any, args: Any, kwargs: Any) -> Any:
    """The results of an operator that is not run."""
    def shape_of(value: Any) -> Any:
        return value.to("meta") if isinstance(value, torch.Tensor) else value

    def made(value: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cuda")

    return tree_map(made, function(*tree_map(shape_of, args), **tree_map(shape_of, kwargs)))


class Values(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.twins: Any = torch.utils.weak.WeakIdKeyDictionary()
        self.masks: dict[int, torch.Tensor] = {}  # by storage: autograd hands on other tensors of it

    def twin(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.twins.get(value, value)
        return torch.device("cpu") if isinstance(value, torch.device) else value

    def on_twins(self, function: Any, args: Any, kwargs: Any) -> Any:
        tensors = tensors_in((args, kwargs))
        if not all(x.device.type == "cpu" or x in self.twins for x in tensors):
            return None
        if function._schema.is_mutable and tensors and tensors[0].device.type == "cpu":
            return None  # is its own twin, and must change once
        small = all(x.numel() <= MOST_ELEMENTS for x in tensors)
        random = torch.Tag.nondeterministic_seeded in function.tags
        if not small or random or function._schema.name.startswith("aten::empty"):
            return None
        try:
            return function(*tree_map(self.twin, args), **tree_map(self.twin, kwargs))
        except (RuntimeError, NotImplementedError):  # an operator of CUDA alone
            return None

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
        return twin if twin is not None and twin.shape == index.shape else None

    def chosen(self, indices: Any) -> list[Any]:
        """The indices, with those that each mask chooses in its place, one per axis."""
        found: list[Any] = []
        for index in indices:
            mask = self.known_mask(index)
            found += [index] if mask is None else mask.nonzero().to("cuda").unbind(1)
        return found

    def run(self, function: Any, args: Any, kwargs: Any) -> Any:
        if function in INDEXED and not is_masked_fill(*args[2:]):
            args = (args[0], self.chosen(args[1]), *args[2:])
        elif function is ATEN.masked_select.default and self.known_mask(args[1]) is not None:
            value, mask = torch.broadcast_tensors(args[0], self.known_mask(args[1]))
            return ATEN.index.Tensor(value, mask.nonzero().to("cuda").unbind(1))
        if function in SOLVED and args[0].device.type == "cuda":
            return made_only(function, args, kwargs)
        return function(*args, **kwargs)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function is ATEN.lift_fresh.default:
            self.note(args[0], args[0].cpu())  # torch.tensor([…]) is filled before a mode sees it
        value = self.on_twins(function, args, kwargs)
        if function is ATEN._local_scalar_dense.default and value is not None:
            return value
        if value is None:
            self.forget_overwritten(function, args)
        elif function in SHAPED_BY_VALUES:
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
        if function is ATEN.topk.default and value is None and args[0].dim() == 2:
            rows, experts = args[0].shape
            value = None, turns(rows, experts, args[1])
        self.note(result, value)
        return result

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
