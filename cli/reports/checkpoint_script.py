"""Wraps blocks of a PyTorch model in torch.utils.checkpoint, as the head of this file says.

    import FILE                 # the name of this file
    FILE.apply(model)           # once, before training

What it expects: a module for each block in PLACES, found by one of the paths there ("{}" is the
block's number), or a torch.nn.ModuleList of as many modules as there are blocks, if there is only
one. The step is that of the head: with another precision or attention kernel other calls come, and
other tensors would stay. PyTorch 2.4 or later where calls are chosen, else 2.0.
"""

import collections
import functools

import torch
from torch.utils.checkpoint import checkpoint

# What of each block stays: None for a block that is not wrapped; else by group the calls, counted
# from 0, whose outputs stay, and how wide the output of a product is, so that another network is
# noticed.
# -- plan --


@functools.lru_cache(maxsize=None)
def group_of(call):
    name = str(call)
    return next((group for group, names in GROUPS.items() if name in names), None)


def contexts(saved):
    """Of one pass through a block: the forward counts its calls, and so does what runs again."""
    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

    counts = {False: collections.Counter(), True: collections.Counter()}

    def policy(context, call, *args, **kwargs):
        group = group_of(call)
        if group is None:
            return CheckpointPolicy.PREFER_RECOMPUTE
        number = counts[context.is_recompute][group]
        counts[context.is_recompute][group] += 1
        if number not in saved.get(group, {}):
            return CheckpointPolicy.PREFER_RECOMPUTE
        width = saved[group][number]
        if width and args[-1].shape[-1] != width:
            raise RuntimeError(f"{group} {number} is {args[-1].shape[-1]} wide where {width} was "
                               "planned: this file is for another network")
        return CheckpointPolicy.MUST_SAVE

    return create_selective_checkpoint_contexts(policy)


def wrap(block, saved):
    forward = block.forward
    options = {"use_reentrant": False}
    if saved:
        options["context_fn"] = functools.partial(contexts, saved)

    @functools.wraps(forward)
    def wrapped(*args, **kwargs):
        if not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        return checkpoint(forward, *args, **options, **kwargs)

    block.forward = wrapped


def blocks_at(model, prefix, numbers):
    for place in PLACES[prefix]:
        try:
            return [model.get_submodule(place.format(number)) for number in numbers]
        except AttributeError:
            continue
    lists = [module for module in model.modules()
             if isinstance(module, torch.nn.ModuleList) and len(module) == len(numbers)]
    if len(lists) != 1:
        raise LookupError(f"no module is the one of {prefix}: write its path into PLACES")
    return list(lists[0])


def apply(model):
    config = getattr(model, "config", None)
    if getattr(config, "use_cache", False):
        config.use_cache = False  # keys and values would be added twice
    for prefix, blocks in BLOCKS.items():
        for block, stays in zip(blocks_at(model, prefix, list(blocks)), blocks.values()):
            if stays is not None:
                wrap(block, stays)
    return model
