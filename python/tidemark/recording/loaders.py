"""torch.utils.data.DataLoader without processes and threads: they could not be forked from a process
that has a device, and GPU memory is the same without. What they make is on the CPU, as with no default
device."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

ALONE = dict(num_workers=0, pin_memory=False, prefetch_factor=None, persistent_workers=False,
             multiprocessing_context=None, timeout=0)


def install() -> None:
    plain = DataLoader.__init__

    def __init__(self: Any, dataset: Any, batch_size: Any = 1, shuffle: Any = None,
                 sampler: Any = None, batch_sampler: Any = None, num_workers: int = 0,
                 collate_fn: Any = None, pin_memory: bool = False, *args: Any,
                 **kwargs: Any) -> None:
        kwargs = {key: value for key, value in kwargs.items() if key not in ALONE}
        plain(self, dataset, batch_size, shuffle, sampler, batch_sampler, 0, collate_fn, False,
              *args[:1], **kwargs)

    def on_cpu(function: Any) -> Any:
        def called(self: Any) -> Any:
            with torch.device("cpu"):
                return function(self)

        return called

    setattr(DataLoader, "__init__", __init__)
    setattr(DataLoader, "__iter__", on_cpu(DataLoader.__iter__))
    setattr(_BaseDataLoaderIter, "__next__", on_cpu(_BaseDataLoaderIter.__next__))
