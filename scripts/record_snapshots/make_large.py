#!/usr/bin/env python3
"""A memory snapshot of any size, as long training runs leave them, to time the reader with.

    scripts/record_snapshots/make_large.py 500 /tmp/large.pickle    # about 500 MB

A step of 2,000 tensors again and again, with stacks of 12 to 40 Python frames, is written as
torch.cuda.memory._dump_snapshot() writes it. Needs no PyTorch.
"""

import pickle
import random
import sys

SEGMENT = 20 << 20


def main():
    megabytes, path = int(sys.argv[1]), sys.argv[2]
    draw = random.Random(1)
    frames = [{"name": f"function_{i}", "filename": f"project/model/part_{i % 40}.py",
               "line": i} for i in range(600)]
    stacks = [draw.sample(frames, draw.randint(12, 40)) for _ in range(2000)]
    sizes = [draw.randint(1 << 21, 18 << 20) for _ in range(2000)]
    bytes_per_event = 176  # of what this script writes, with its stack
    pairs = megabytes * 1_000_000 // bytes_per_event // 3
    events, time, live = [], 1_700_000_000_000_000, []
    free = [(i + 1) * SEGMENT for i in range(2000)]
    segments = [{"device": 0, "address": address, "total_size": SEGMENT, "allocated_size": 0,
                 "active_size": 0, "requested_size": 0, "stream": 0, "segment_type": "large",
                 "segment_pool_id": (0, 0), "is_expandable": False, "frames": [],
                 "blocks": [{"address": address, "size": SEGMENT, "requested_size": 0,
                             "state": "inactive", "frames": []}]} for address in free]

    def add(action, address, size, stack):
        nonlocal time
        time += draw.randint(1, 40)
        # Each event has a list of its own of frames that it shares with others.
        events.append({"action": action, "addr": address, "size": size, "stream": 0,
                       "time_us": time, "frames": list(stack)})

    for i in range(pairs):
        address, which = free.pop(), i % len(stacks)
        add("alloc", address, sizes[which], stacks[which])
        live.append((address, sizes[which]))
        if len(live) == 1500 or i == pairs - 1:
            while live:
                address, size = live.pop(draw.randrange(len(live)))
                add("free_requested", address, size, stacks[0])
                add("free_completed", address, size, stacks[0])
                free.append(address)
    snapshot = {"segments": segments, "device_traces": [events], "external_annotations": [],
                "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1,
                                       "expandable_segments": False}}
    with open(path, "wb") as file:
        pickle.dump(snapshot, file, protocol=4)
    print(f"{path}: {len(events)} events")


if __name__ == "__main__":
    main()
