"""What steps of tests needed when they were recorded, in a file that `tidemark check` reads."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import tempfile
from typing import Any, Mapping

from .errors import TidemarkError
from .program import ask, run

_EMPTY = {"format": "tidemark-check", "version": 1, "experiments": []}


class Baseline:
    """A tidemark.json with an experiment per step that a test gave to memory_step."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._folder = path.parent.resolve()
        self._recorded: dict[str, dict[str, Any]] = {}

    def record(self, name: str, step: Any, options: Mapping[str, Any]) -> None:
        """For save(). Steps that have no file get one beside the baseline."""
        self._recorded[name] = _experiment(name, self._placed(name, step, self._folder), options)

    def save(self) -> int:
        """Writes the experiments recorded, with their numbers, and returns how many. Others in the
        file stay. Raises TidemarkError, and changes nothing, where one cannot be run."""
        if not self._recorded:
            return 0
        document = self._document()
        kept = [each for each in document["experiments"] if each.get("id") not in self._recorded]
        document["experiments"] = [*kept, *self._recorded.values()]
        new = self._path.with_name(self._path.name + ".new")
        new.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        try:
            run(["check", str(new), "--update", "--quiet"])
            os.replace(new, self._path)
        finally:
            new.unlink(missing_ok=True)
        return len(self._recorded)

    def differences(self, name: str, step: Any, options: Mapping[str, Any]) -> list[str]:
        """What is not as recorded, a line each; that nothing was recorded, if so."""
        expected = self._document().get("expected", {})
        numbers = [each for each in expected.get("experiments", []) if each["id"] == name]
        if not numbers:
            return [f"{self._path.name} has no numbers of this step yet (pytest --memory-update "
                    "records them)"]
        with tempfile.TemporaryDirectory(prefix="tidemark-") as folder:
            path = pathlib.Path(folder).resolve() / self._path.name
            experiment = _experiment(name, self._placed(name, step, path.parent), options)
            path.write_text(json.dumps({**_EMPTY, "experiments": [experiment],
                                        "expected": {**expected, "experiments": numbers}}), encoding="utf-8")
            report = ask(["check", str(path)])
        verdict = report["experiments"][0]
        if not verdict["failed"]:
            return []
        lines = [finding["text"] for finding in verdict["findings"]]
        return [*lines, *(verdict[cause] for cause in ("cause", "time_cause") if verdict[cause])]

    def _document(self) -> dict[str, Any]:
        if not self._path.exists():
            return dict(_EMPTY)
        try:
            document = json.loads(self._path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise TidemarkError(f"{self._path}: {error}") from error
        if not isinstance(document, dict) or document.get("format") != "tidemark-check":
            raise TidemarkError(f"{self._path}: this is no file of tidemark check")
        return {**_EMPTY, **document}

    def _placed(self, name: str, step: Any, root: pathlib.Path) -> str:
        """The step as a check file in `root` names it, with its file there: numbers are only compared
        with those of the same name."""
        if isinstance(step, (str, os.PathLike)) and not os.path.exists(step):
            return os.fspath(step)  # a preset
        stem = pathlib.Path(f"{self._path.stem}-steps") / re.sub(r"[^\w.-]+", "-", name)
        if not isinstance(step, (str, os.PathLike)):
            config = dict(step) if isinstance(step, Mapping) else step.to_dict()
            inside = stem.with_name(stem.name + ".config.json")
            (root / inside).parent.mkdir(parents=True, exist_ok=True)
            (root / inside).write_text(json.dumps(config, default=str), encoding="utf-8")
            return inside.as_posix()
        source = pathlib.Path(step).resolve()
        if source.is_dir():
            source /= "config.json"
        inside = (source.relative_to(self._folder) if source.is_relative_to(self._folder)
                  else stem.with_name(stem.name + "." + source.name))
        if root / inside != source:
            (root / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, root / inside)
        return inside.as_posix()


def _experiment(name: str, model: str, options: Mapping[str, Any]) -> dict[str, Any]:
    stated = {key: value for key, value in options.items() if value is not None}
    return {"id": name, "model": model, **stated}
