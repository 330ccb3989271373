"""pytest: a step's peak as a test, without a GPU.

    @pytest.mark.limit_peak("10 GiB", device="l4")
    def test_step_fits(memory_step):
        memory_step(model, batch, loss=loss)        # or memory_step("gpt2", batch=8)

A step above the limit fails the test and names the five largest tensors alive at the peak. With
--memory-baseline the numbers of each step are compared with those that --memory-update recorded.
"""

from __future__ import annotations

import pathlib
import re
from typing import Any, Iterator

import pytest

from .answers import Explanation
from .errors import TidemarkError
from .pytest_baseline import Baseline

_UNITS = {"b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "kb": 10**3, "mb": 10**6,
          "gb": 10**9, "tb": 10**12}
_SHOWN = 5


_BASELINE = pytest.StashKey[Baseline]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tidemark")
    group.addoption("--memory-baseline", metavar="FILE", nargs="?", const="",
                    help="fail tests whose steps (memory_step) need another amount of memory or time "
                    "than FILE has recorded (default tidemark.json)")
    group.addoption("--memory-update", metavar="FILE", nargs="?", const="",
                    help="record what the steps need in FILE (default tidemark.json), which tidemark "
                    "check reads, too")
    parser.addini("memory_baseline", "always compare with this file, as --memory-baseline does",
                  default="")


def _baseline_path(config: pytest.Config) -> pathlib.Path | None:
    """Of the first option that was given; a name alone is meant from where pytest was started."""
    usual = config.getini("memory_baseline")
    for named in (config.getoption("memory_update"), config.getoption("memory_baseline")):
        if named:
            return config.invocation_params.dir / named
        if named == "":
            return config.rootpath / (usual or "tidemark.json")
    return config.rootpath / usual if usual else None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Numbers of tests that failed for other reasons are recorded, too: what a step needs is known
    before its test ends."""
    if session.config.getoption("memory_update") is None:
        return
    try:
        session.config.stash[_BASELINE].save()
    except TidemarkError as error:
        raise pytest.UsageError(f"--memory-update: {error}") from error


def pytest_configure(config: pytest.Config) -> None:
    path = _baseline_path(config)
    if path is not None:
        config.stash[_BASELINE] = Baseline(path)
    config.addinivalue_line(
        "markers", "limit_peak(limit, device=None, **options): fails the test if the step given to "
        "memory_step allocates more than limit ('10 GiB'); options are those of tidemark explain")


def parse_size(text: str | int) -> int:
    """'10 GiB' or '24GB' in bytes; a number is bytes already."""
    if isinstance(text, int):
        return text
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*", text)
    if not found or found[2].lower() not in _UNITS:
        raise pytest.UsageError(f"limit_peak: {text!r} is no size (need '10 GiB', '24 GB', …)")
    return int(float(found[1]) * _UNITS[found[2].lower()])


def _size_text(size: int) -> str:
    for unit in ("GiB", "MiB", "KiB"):
        if size >= _UNITS[unit.lower()]:
            return f"{size / _UNITS[unit.lower()]:.2f} {unit}"
    return f"{size} B"


def _message(explanation: Explanation, limit: int, allocated: int) -> str:
    lines = [f"the step allocates {_size_text(allocated)} on {explanation['device']['name']}, "
             f"{_size_text(allocated - limit)} more than {_size_text(limit)}",
             f"at the peak ({explanation['peak']['at']}) the largest tensors are:"]
    for buffer in explanation.largest(_SHOWN):
        what = buffer["tensor"] or "(scratch)"
        of = "" if buffer["role"] == "value" else f" ({buffer['role']})"
        where = f", block {buffer['block']}" if buffer["block"] else ""
        line = f", {buffer['line']}" if buffer.get("line") else ""
        lines.append(f"  {_size_text(buffer['bytes']):>10}  {what}{of}, {buffer['category']}"
                     f"{where}{line}")
    return "\n".join(lines)


class MemoryStep:
    """Holds one test's limit; calling it with a step asks whether the step keeps to it."""

    def __init__(self, node: pytest.Item, folder: pathlib.Path) -> None:
        self._node = node
        self._folder = folder
        self._asked = 0
        marker = node.get_closest_marker("limit_peak")
        self._limit: int | None = None
        self._options: dict[str, Any] = {}
        if marker is not None:
            if len(marker.args) != 1:
                raise pytest.UsageError("limit_peak needs one size: limit_peak('10 GiB')")
            self._limit = parse_size(marker.args[0])
            self._options = dict(marker.kwargs)

    def __call__(self, step: Any, batch: Any = None, *, loss: Any = None, optimizer: Any = None,
                 **options: Any) -> Explanation:
        """A preset, path or config with the options of `tidemark explain`; or a model of PyTorch
        with its batch, as capture() takes it."""
        import tidemark

        options = {**self._options, **options}
        if hasattr(step, "named_parameters"):
            strategy = options.pop("strategy", None)
            device = options.get("device")
            given = {name: options.pop(name) for name in ("precision",) if name in options}
            if optimizer is not None:
                given["optimizer"] = optimizer
            step = tidemark.capture(step, batch, loss=loss, device=device,
                                    output=self._folder / "step.trace.json", **given)
            options["strategy"] = strategy
        else:
            options = {"batch": batch, "loss": loss, "optimizer": optimizer, **options}
        explanation = tidemark.explain(step, **options)
        allocated = explanation["report"]["allocated_peak_bytes"]
        self._asked += 1
        if self._limit is not None and allocated > self._limit:
            pytest.fail(_message(explanation, self._limit, allocated), pytrace=False)
        self._keep_or_compare(step, options)
        return explanation


    @property
    def is_used(self) -> bool:
        return self._asked > 0

    def _keep_or_compare(self, step: Any, options: dict[str, Any]) -> None:
        baseline = self._node.config.stash.get(_BASELINE, None)
        if baseline is None:
            return
        name = self._node.nodeid + (f" #{self._asked}" if self._asked > 1 else "")
        if self._node.config.getoption("memory_update") is not None:
            baseline.record(name, step, options)
        elif differences := baseline.differences(name, step, options):
            pytest.fail("\n".join(differences), pytrace=False)


@pytest.fixture
def memory_step(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[MemoryStep]:
    """Asks what a training step needs; with @pytest.mark.limit_peak, fails above the limit."""
    step = MemoryStep(request.node, tmp_path)
    yield step
    if request.node.get_closest_marker("limit_peak") and not step.is_used:
        pytest.fail("limit_peak: the test gave no step to memory_step, so nothing was limited",
                    pytrace=False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if (item.get_closest_marker("limit_peak")
                and "memory_step" not in getattr(item, "fixturenames", ())):
            raise pytest.UsageError(f"{item.nodeid}: limit_peak needs the fixture memory_step, "
                                    "which takes the step")
