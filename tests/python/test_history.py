"""The calls of PyTorch's allocator that a trace repeats, and their order. Loudly skipped without PyTorch."""

import sys
import unittest

import test_capture

SCRIPT = '''
import itertools
import os
import random
import sys
from tidemark.recording import stand_in
if "TIDEMARK_STAND_IN" not in os.environ:
    settings = dict(PYTORCH_CUDA_ALLOC_CONF=os.environ["SETTINGS"])
    os.execve(sys.executable, [sys.executable, *sys.argv], {**stand_in.environment(80, 108), **settings})
import torch
from tidemark.recording.history import in_order

def made_up(source):
    """Runs of allocations and of frees, in any order."""
    calls, there, count = [], [], 0
    for _ in range(200):
        for _ in range(source.randint(1, 12)):
            calls.append(source.choice((1, 700, 9000, 300_000, 1_100_000, 3_000_000, 30_000_000)) +
                         source.randint(0, 5000))
            there.append(count)
            count += 1
        for _ in range(source.randint(0, len(there))):
            calls.append(there.pop(source.randrange(len(there))) - count)
    return calls

def shuffled(calls, source):
    for is_free, run in itertools.groupby(calls, lambda call: call < 0):
        run = list(run)
        yield from source.sample(run, len(run)) if is_free else run

def played(calls):
    """Addresses of all that was made, and the blocks that are there at last. In a process of its own,
    which has the addresses of its parent."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        torch.cuda.init()
        torch.cuda.set_per_process_memory_fraction(2**-11)  # which garbage is collected for
        made = []
        for call in calls:
            if call > 0:
                made.append(torch.cuda.caching_allocator_alloc(call))
            else:
                torch.cuda.caching_allocator_delete(made[call])
        blocks = [(x["address"], [(y["size"], y["state"]) for y in x["blocks"]])
                  for x in torch.cuda.memory_snapshot()]
        os.write(writer, str(hash((str(made), str(sorted(blocks)))) & 0xffffffff).encode())
        os._exit(0)
    os.close(writer)
    os.wait()
    return os.fdopen(reader).read()

for seed in range(4):
    source = random.Random(seed)
    calls = made_up(source)
    orders = [calls, list(shuffled(calls, source)), in_order(calls)]
    assert calls != orders[1] != orders[2]
    found = {played(order) for order in orders}
    assert len(found) == 1 and found != {""}, found
    assert played(calls[:-1]) not in found
print("alike")
'''


class History(test_capture.CaptureTest):
    script = SCRIPT

    def test_the_allocator_does_not_mind_the_order_of_frees(self):
        for settings in ("", "garbage_collection_threshold:0.3,max_split_size_mb:24"):
            with self.subTest(settings):
                done = self.run_python("net.py", job=dict(SETTINGS=settings))
                self.assertEqual((done.stdout, done.returncode), ("alike\n", 0), done.stderr)


if __name__ == "__main__":
    test_capture.CaptureTest.python = test_capture.python_with_torch()
    unittest.main(argv=sys.argv)
