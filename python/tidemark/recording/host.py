"""What lies on the host in a run on a GPU, and here on the device, where make_step puts all that it makes."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.utils import rnn


def install() -> None:
    plain_pin, plain_pack = torch.Tensor.pin_memory, rnn.pack_padded_sequence

    def pin_memory(self: Any, *args: Any, **kwargs: Any) -> Any:
        """On its way to the device, where it is."""
        return self if self.is_cuda else plain_pin(self, *args, **kwargs)

    def pack_padded_sequence(input: Any, lengths: Any, *args: Any, **kwargs: Any) -> Any:
        """Reads the lengths on the host, and refuses others."""
        lengths = lengths.cpu() if isinstance(lengths, torch.Tensor) else lengths
        return plain_pack(input, lengths, *args, **kwargs)

    def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
        """A capture runs out of no memory: what a device has is told, and limits nothing."""

    for module in (torch.cuda, torch.cuda.memory):
        setattr(module, "set_per_process_memory_fraction", set_per_process_memory_fraction)
    setattr(torch.Tensor, "pin_memory", pin_memory)
    setattr(rnn, "pack_padded_sequence", pack_padded_sequence)
