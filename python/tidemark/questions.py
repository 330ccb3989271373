"""The questions: each the command of the same name, with its options as keywords."""

from __future__ import annotations

import contextlib
import os
import pathlib
import tempfile
import weakref
from typing import Any, Sequence, overload

from .answers import Answer, Comparison, Difference, Explanation, LayoutSearch, PlanAnswer
from .arguments import Step, option_arguments, strategy_arguments, subject_of
from .errors import UsageError
from .program import ask, run


def compare(step: Step, *, strategies: str | Sequence[str] | None = None,
            device: str | Sequence[str] | None = None, **options: Any) -> Comparison:
    """What each strategy needs and costs on a device.

    `step` is a preset ("gpt2"), the path of a config.json or a trace, a config as a mapping or as
    an object of transformers, or what capture() returned. `options` are those of `tidemark
    compare`, with underscores: batch=8, sequence=2048, precision="bf16", budget="20GiB",
    max_batch=True. Lists of batches or devices ask for each combination.

    compare("gpt2", batch=8, strategies=["vanilla", "checkpoint"], device="rtx-4090").rows
    """
    with subject_of(step) as subject:
        arguments = ["compare", subject, *strategy_arguments(strategies),
                     *option_arguments({"device": device, **options})]
        return _answer(Comparison, step, subject, arguments)


@overload
def explain(step: Step, item: str | None = None, *, strategy: str | None = None,
            device: str | None = None, beside: None = None, **options: Any) -> Explanation: ...
@overload
def explain(step: Step, item: str | None = None, *, strategy: str | None = None,
            device: str | None = None, beside: str | os.PathLike[str],
            **options: Any) -> Difference: ...
def explain(step: Step, item: str | None = None, *, strategy: str | None = None,
            device: str | None = None, beside: Any = None,
            **options: Any) -> Explanation | Difference:
    """Why the peak of a strategy is where it is, and who is alive there; of a tensor or op, what
    became of it. `step` may be a memory snapshot of PyTorch. `beside` is the path of one, of a
    profile or of a recorded run: why that run needed another amount of memory."""
    with subject_of(step) as subject:
        arguments = ["explain", subject, *([item] if item else []),
                     *option_arguments({"strategy": strategy, "device": device,
                                        "beside": beside, **options})]
        return _answer(Difference if beside is not None else Explanation, step, subject, arguments)


def plan(step: Step, *, budget: str | None = None, device: str | None = None,
         **options: Any) -> PlanAnswer:
    """The fastest plan whose peak keeps to `budget` ("22GiB"; without: to what the device has).
    plan_out="best.plan.json" writes it for compare(plan=…)."""
    with subject_of(step) as subject:
        arguments = ["plan", subject,
                     *option_arguments({"budget": budget, "device": device, **options})]
        return _answer(PlanAnswer, step, subject, arguments)


def search(step: Step, *, gpus: int, cluster: str | None = None,
           strategies: str | Sequence[str] | None = None,
           records: str | os.PathLike[str] | None = None, **options: Any) -> LayoutSearch:
    """The layouts of a job over `gpus` GPUs: the fastest that fit, and those that need less memory
    than any faster one. `step` is a preset or a config; `cluster` is one of `tidemark clusters`, or
    the path of a cluster file.

    search("llama-7b", gpus=64, cluster="dgx-h100", global_batch=256, precision="bf16").fastest

    What is simulated is kept line by line in the file `records`: a search that was stopped goes on
    from there, and with part="3/7" it is one part of it, for merged_search().
    """
    if records is not None and not isinstance(step, (str, os.PathLike)):
        raise UsageError("records are of a step that can be named again: write the config to a "
                         "file, and name that")
    if records is None and options.get("part") is not None:
        raise UsageError("what a part finds is for merged_search(): say where with records=FILE")
    with contextlib.ExitStack() as files:
        subject = files.enter_context(subject_of(step))
        if records is None:  # else each way of showing the answer would search again
            folder = files.enter_context(tempfile.TemporaryDirectory(prefix="tidemark-"))
            records = pathlib.Path(folder) / "search.jsonl"
        arguments = ["search", subject, *strategy_arguments(strategies),
                     *option_arguments({"gpus": gpus, "cluster": cluster, "records": records,
                                        **options})]
        answer = LayoutSearch(ask(arguments), lambda form: run([*arguments, "--format", form]))
        weakref.finalize(answer, files.pop_all().close)
        return answer


def merged_search(*records: str | os.PathLike[str]) -> LayoutSearch:
    """What one search would have found, of the files that all its parts have written."""
    arguments = ["search", "merge", *(os.fspath(record) for record in records)]
    return LayoutSearch(ask(arguments), lambda form: run([*arguments, "--format", form]))


def check(baseline: Any = None, **options: Any) -> Answer:
    """Compares what tidemark.json lists with the numbers in it; update=True records them."""
    arguments = ["check", *([] if baseline is None else [str(baseline)]), *option_arguments(options)]
    return Answer(ask(arguments), lambda form: run([*arguments, "--format", form]))


def diff(before: Any, after: Any) -> Answer:
    """What differs between two timelines, reports, baselines or memory snapshots, by path."""
    arguments = ["diff", str(before), str(after)]
    return Answer(ask(arguments), lambda form: run([*arguments, "--format", form]))


def _answer(kind: type, step: Step, subject: str, arguments: list[str]) -> Any:
    content = ask(arguments)

    def show(form: str) -> str:
        # A config that was given as a mapping had a file only for as long as it was asked about.
        with subject_of(step) as again:
            return run([again if word == subject else word for word in arguments]
                       + ["--format", form])

    return kind(content, show)
