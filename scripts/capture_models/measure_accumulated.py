#!/usr/bin/env python3
"""What PyTorch's own allocator says of steps whose gradients add up over three micro-batches.

    venv/bin/python scripts/capture_models/measure_accumulated.py \
        tests/reference/captures/accumulated.json

On the stand-in for the CUDA runtime, as capture_all.py's steps of one micro-batch are run; their
traces are the ones beside. Per model, of the second step: most bytes allocated, and reserved; and
of the third most bytes of live storages.
"""

import json
import pathlib
import sys

import measure_replicas

# Of those whose peak is before the update.
CASES = ["gpt2-fp32", "gpt2-amp-bf16", "llama-bf16", "small-fp32", "lora-bf16"]
MICRO_BATCHES = 3


def measured(case, count):
    import torch

    from tidemark.recording import optimizers, step
    from tidemark.recording.recorder import Recorder

    with measure_replicas.placed(case) as made:
        update = optimizers.make_optimizers(made.model, made.optimizer)
        for _ in range(2):
            torch.cuda.reset_peak_memory_stats()
            for _ in range(count):
                step.forward(made).backward()
            update.step()
            update.clear()
        found = dict(allocated=torch.cuda.max_memory_allocated(),
                     reserved=torch.cuda.max_memory_reserved())
        recorder = Recorder()
        step.note_what_is_there(recorder, made, update)
        step.note_constants(recorder)
        with recorder, step.one_count_of_nodes():
            for _ in range(count):
                step.forward(made).backward()
    return dict(name=case[0], micro_batches=count, live=max(recorder.live_peaks.values()), **found)


def main():
    measure_replicas.require_stand_in()
    import torch  # noqa: F401, before the processes part
    import transformers  # noqa: F401

    import models

    rows = []
    for case in (case for case in models.CASES if case[0] in CASES):
        rows.append(measure_replicas.in_a_process_of_its_own(measured, case, MICRO_BATCHES))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    measure_replicas.write(pathlib.Path(sys.argv[1]), rows)


if __name__ == "__main__":
    main()
