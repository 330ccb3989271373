"""Captures of models that nothing was tuned for, beside PyTorch's own allocator (scripts/capture_models:
zoo_packages.py, zoo_own_code.py). Needs no PyTorch: small ones are in tests/reference/captures_zoo."""

import importlib.util
import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parent.parent.parent
FOLDER = ROOT / "tests" / "reference" / "captures_zoo"
PROGRAM = os.environ.get("TIDEMARK_PROGRAM") or shutil.which("tidemark")
# What is missed. DistributedDataParallel's buckets are C++'s own, which no dispatch mode sees: they count here alone.
# For the reversible function the cause is not known.
LIVE = {"reformer-amp-bf16": -32768, "ddp-loop": 202280}


def load_figures():
    spec = importlib.util.spec_from_file_location(
        "zoo_figures", ROOT / "scripts" / "capture_models" / "zoo_figures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Zoo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        figures = load_figures()
        steps = json.loads((FOLDER / "measured.json").read_text())["steps"]
        with tempfile.TemporaryDirectory() as scratch:
            cls.rows = [figures.figures(PROGRAM, FOLDER, step, pathlib.Path(scratch)) for step in steps]

    def worst(self, key, at):
        return max((abs(row[key][at]), row["name"]) for row in self.rows)

    def test_saved_and_live_bytes(self):
        for row in self.rows:
            with self.subTest(row["name"]):
                self.assertEqual(row["saved"], 0)
                self.assertEqual(row["live"], LIVE.get(row["name"], 0))

    def test_the_recorded_calls_are_repeated_to_the_byte(self):
        for row in self.rows:
            self.assertEqual(row["replayed"], [0, 0], row["name"])

    def test_what_follows_from_the_ops_alone(self):
        ordered = sorted(abs(row["derived"][0]) for row in self.rows)
        self.assertLessEqual(ordered[len(ordered) * 9 // 10], 0.01)
        self.assertLessEqual(self.worst("derived", 0), (0.17, "reformer-amp-bf16"))
        self.assertLessEqual(self.worst("derived", 1), (7.15, "mamba2-amp-bf16"))  # 2 of 28 MiB


if __name__ == "__main__":
    if not PROGRAM:
        print("SKIPPED: no program: TIDEMARK_PROGRAM names it")
        sys.exit(77)
    unittest.main()
