"""Many questions at once, over any executor of concurrent.futures, to be taken up again."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
from typing import Any, Callable, Iterable, Iterator, Mapping

from .answers import Answer
from .errors import TidemarkError, UsageError
from .program import run
from .questions import compare, explain, plan, search

_KINDS: dict[str, Callable[..., Answer]] = {"compare": compare, "explain": explain, "plan": plan,
                                           "search": search}
# What waits for an executor: enough for a thousand workers, and a million questions stay unmade.
_MOST_WAITING = 4096


@dataclasses.dataclass(frozen=True)
class SweepRow:
    """One question and what came of it: either its answer or, in one line, why there is none."""

    question: Mapping[str, Any]
    answer: Mapping[str, Any] | None = None  # the keys of --format json
    error: str | None = None


def sweep(questions: Iterable[Mapping[str, Any]],
          executor: concurrent.futures.Executor | None = None, *,
          output: str | os.PathLike[str] | None = None,
          progress: Callable[[int], None] | None = None) -> list[SweepRow]:
    """Answers all `questions`, in their order whatever order they were answered in.

    A question is a mapping: "step", the options of `compare`, and if it is another question, "ask"
    ("compare", "explain", "plan" or "search"): {"step": "gpt2", "batch": 8, "ask": "plan", "budget": "8GiB"}.
    A step is a preset, a path or a config as a mapping. Equal questions are asked once.

    `executor` is any of concurrent.futures (threads if there is none), an
    mpi4py.futures.MPIPoolExecutor, or dask.distributed's client.get_executor(); its workers need
    this package. `output` is a file of JSON Lines that gets each answer as it comes: a sweep that was
    stopped goes on from there, and several files joined in any order are one. Answers of another
    version of the program, or of a step's file that has changed, are not taken from it. `progress`
    is called with the number of questions that are done.

    A question that the program refuses is a row with an error; the others are answered all the
    same, and asked again the next time. Raises UsageError for what is no question at all.
    """
    asked = [dict(question) for question in questions]
    keys = _keys(asked)
    journal = _Journal(output)
    known = {key: row for key, row in journal.read() if key in set(keys)}
    wanted = {key: question for key, question in zip(keys, asked) if key not in known}
    with journal, _executor(executor) as workers:
        for key, row in _answered(wanted, workers):
            known[key] = row
            journal.write(key, row)
            if progress is not None:
                progress(len(known))
    return [dataclasses.replace(known[key], question=question)
            for key, question in zip(keys, asked)]


def answer_one(question: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str | None]:
    """What a worker does: the answer, or the program's own line."""
    options = dict(question)
    kind, step = _KINDS[options.pop("ask", "compare")], options.pop("step")
    try:
        return kind(step, **options).to_dict(), None
    except TidemarkError as error:
        return None, str(error)


class _Journal:
    """The file of answers: a line each, whole or not there."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._path = None if path is None else pathlib.Path(path)
        self._file: Any = None

    def read(self) -> Iterator[tuple[str, SweepRow]]:
        """What was answered. A last line that was cut off is no answer yet."""
        if self._path is None or not self._path.exists():
            return
        with self._path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith("\n"):
                    return
                try:
                    entry = json.loads(line)
                    yield entry["key"], SweepRow(entry["question"], entry["answer"])
                except (ValueError, KeyError, TypeError) as error:
                    raise UsageError(f"{self._path}:{number}: this is no line of a sweep; name "
                                     "another file, or remove the line") from error

    def write(self, key: str, row: SweepRow) -> None:
        if self._file is not None and row.answer is not None:
            self._file.write(json.dumps({"key": key, "question": row.question,
                                         "answer": row.answer}, default=str) + "\n")
            self._file.flush()

    def __enter__(self) -> _Journal:
        if self._path is not None:
            _drop_cut_line(self._path)
            self._file = self._path.open("a", encoding="utf-8")
        return self

    def __exit__(self, *_: Any) -> None:
        if self._file is not None:
            self._file.close()


def _drop_cut_line(path: pathlib.Path) -> None:
    if path.exists():
        with path.open("r+b") as file:
            content = file.read()
            file.truncate(content.rfind(b"\n") + 1)


@dataclasses.dataclass
class _Outsider:
    """An executor that somebody else opened and will close."""

    executor: Any

    def __enter__(self) -> Any:
        return self.executor

    def __exit__(self, *_: Any) -> None:
        pass


def _executor(executor: Any) -> Any:
    return (concurrent.futures.ThreadPoolExecutor(os.cpu_count()) if executor is None
            else _Outsider(executor))


def _answered(wanted: Mapping[str, Mapping[str, Any]],
              executor: Any) -> Iterator[tuple[str, SweepRow]]:
    """Each as it comes. When the sweep is stopped, what has not begun never does."""
    left = iter(wanted.items())
    waiting: dict[Any, str] = {}
    try:
        while True:
            for key, question in left:
                waiting[executor.submit(answer_one, question)] = key
                if len(waiting) >= _MOST_WAITING:
                    break
            if not waiting:
                return
            done, _ = concurrent.futures.wait(waiting,
                                              return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                key = waiting.pop(future)
                yield key, SweepRow(wanted[key], *future.result())
    finally:
        for future in waiting:
            future.cancel()


def _keys(questions: list[dict[str, Any]]) -> list[str]:
    """A text per question that changes with whatever may change its answer."""
    version = run(["--version"]).strip()
    contents: dict[str, str] = {}
    return [_key(question, version, contents) for question in questions]


def _key(question: dict[str, Any], version: str, contents: dict[str, str]) -> str:
    kind = question.get("ask", "compare")
    if kind not in _KINDS:
        raise UsageError(f"a sweep asks {', '.join(_KINDS)}, not '{kind}'")
    step = question.get("step")
    if not isinstance(step, (str, os.PathLike, Mapping)):
        raise UsageError("a question of a sweep needs \"step\": a preset, a path, or a config as a "
                         f"mapping, not {type(step).__name__}")
    text = json.dumps([version, kind, _step_text(step, contents), question],
                      sort_keys=True, default=os.fspath)
    return hashlib.sha256(text.encode()).hexdigest()


def _step_text(step: Any, contents: dict[str, str]) -> str:
    """Of a file what it holds: it may be another the next time."""
    if isinstance(step, Mapping) or not os.path.isfile(step):
        return ""
    name = os.fspath(step)
    if name not in contents:
        contents[name] = hashlib.sha256(pathlib.Path(name).read_bytes()).hexdigest()
    return contents[name]
