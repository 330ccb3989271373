"""The package's questions: the same numbers as the program's, as mappings; errors as exceptions.

Runs from a checkout (TIDEMARK_PROGRAM names the program), or where the wheel is installed.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

if importlib.util.find_spec("tidemark") is None:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "python"))

import tidemark as tm

CONFIG = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 99,
          "n_positions": 32}


def typed(*arguments):
    """What the program itself says."""
    text = subprocess.run([tm.program(), *arguments, "--format", "json"], check=True,
                          capture_output=True, text=True).stdout
    return json.loads(text)


class Questions(unittest.TestCase):
    def test_compare_has_the_rows_of_the_program(self):
        answer = tm.compare("gpt2", batch=2, strategies=["vanilla", "checkpoint"],
                            device="rtx-4090")
        expected = typed("compare", "gpt2", "-b", "2", "--strategies", "vanilla,checkpoint",
                         "--device", "rtx-4090")
        self.assertEqual(answer.rows, expected["rows"])
        self.assertEqual(answer.to_dict(), expected)
        self.assertEqual(answer["device"]["name"], "rtx-4090")
        self.assertEqual([row["strategy"] for row in answer.rows], ["vanilla", "checkpoint"])
        self.assertLess(answer.row("checkpoint")["live_peak_bytes"],
                        answer.row("vanilla")["live_peak_bytes"])
        with self.assertRaisesRegex(KeyError, "there are: vanilla, checkpoint"):
            answer.row("mesa")

    def test_lists_ask_for_each_combination(self):
        rows = tm.compare("gpt2", batch=[1, 2], device=["t4", "l4"], strategies="vanilla").rows
        self.assertEqual([(row["batch"], row["device"]) for row in rows],
                         [(1, "t4"), (2, "t4"), (1, "l4"), (2, "l4")])
        self.assertTrue(all(row["strategy"] == "vanilla" for row in rows))

    def test_a_config_may_be_a_mapping_or_know_how_to_become_one(self):
        class Config:
            def to_dict(self):
                return CONFIG

        first = tm.compare(CONFIG, batch=3, strategies="vanilla")
        second = tm.compare(Config(), batch=3, strategies="vanilla")
        self.assertEqual(first.rows, second.rows)
        self.assertIn("batch 3", str(first))  # asked again, when its file is long gone

    def test_explain_names_who_is_alive(self):
        answer = tm.explain(CONFIG, batch=2, strategy="checkpoint")
        alive = sum(buffer["bytes"] for buffer in answer["alive"])
        self.assertEqual(alive, answer.peak_bytes)
        sizes = [buffer["bytes"] for buffer in answer.largest(5)]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        self.assertEqual(len(sizes), 5)

    def test_explain_beside_a_recording_names_causes(self):
        beside_this = pathlib.Path(__file__).resolve().parent.parent / "reference"
        folder = pathlib.Path(os.environ.get("TIDEMARK_REFERENCE", beside_this)) / "beside"
        difference = tm.explain(folder / "step-2.6.0.trace.json.zst",
                                beside=folder / "outputs-2.6.0.pickle")
        self.assertEqual(difference.difference_bytes,
                         sum(cause["bytes"] for cause in difference.causes))
        self.assertEqual(difference.causes[0]["tensors"][0]["tensor"], "head.addmm")
        self.assertIn("of earlier steps", difference._repr_html_())

    def test_plan_writes_a_file_that_compare_reads(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "best.plan.json")
            answer = tm.plan("gpt2", batch=8, budget="10GiB", plan_out=path)
            self.assertEqual(answer["format"], "tidemark-plan-1")
            rows = tm.compare("gpt2", batch=8, plan=path, strategies="vanilla").rows
            self.assertEqual(len(rows), 2)
            self.assertLessEqual(rows[1]["allocated_peak_bytes"], 10 * 2**30)

    def test_search_has_the_rows_of_the_program(self):
        answer = tm.search(CONFIG, gpus=8, cluster="dgx-h100", global_batch=32)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "config.json"
            path.write_text(json.dumps(CONFIG), encoding="utf-8")
            expected = typed("search", str(path), "--gpus", "8", "--cluster", "dgx-h100",
                             "--global-batch", "32")
            without_paths = [{**row, "command": ""} for row in expected["rows"]]
        self.assertEqual([{**row, "command": ""} for row in answer.rows], without_paths)
        self.assertEqual(answer.fastest, answer.rows[0])
        self.assertEqual(min(row["step_ns"] for row in answer.rows), answer.fastest["step_ns"])
        self.assertTrue(0 < len(answer.front) <= len(answer.rows))
        self.assertIn("To run the fastest:", str(answer))

    def test_search_in_parts_is_that_of_one_run(self):
        asked = dict(gpus=4, cluster="dgx-h100", global_batch=8, strategies=["vanilla"])
        with tempfile.TemporaryDirectory() as folder:
            records = pathlib.Path(folder) / "r.jsonl"
            for part in ("1/2", "2/2"):
                tm.search("vit-ti-16", records=records, part=part, **asked)
            merged = tm.merged_search(*sorted(pathlib.Path(folder).iterdir()))
        self.assertEqual(merged.to_dict(), tm.search("vit-ti-16", **asked).to_dict())

    def test_a_search_that_nothing_fits_has_the_nearest(self):
        answer = tm.search("gpt2-xl", gpus=1, device="t4")
        self.assertEqual(answer.rows, [])
        self.assertIsNone(answer.fastest)
        self.assertGreater(answer["nearest"]["short_by_bytes"], 0)

    def test_check_records_and_compares(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tidemark.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"format": "tidemark-check", "version": 1,
                           "experiments": [{"model": "gpt2"}]}, file)
            tm.check(path, update=True)
            self.assertIn("format", tm.check(path))

    def test_notebooks_get_a_table_and_a_picture(self):
        page = tm.compare(CONFIG, batch=2, strategies="vanilla,checkpoint")._repr_html_()
        self.assertIn("<td>checkpoint</td>", page)
        self.assertIn("<svg", page)
        self.assertIn("<svg", tm.explain(CONFIG, batch=2)._repr_html_())


class Mistakes(unittest.TestCase):
    def test_usage_is_said_with_the_remedy(self):
        with self.assertRaisesRegex(tm.UsageError, "did you mean '--batch'"):
            tm.compare("gpt2", bach=3)
        with self.assertRaisesRegex(tm.UsageError, "did you mean 'vanilla'"):
            tm.compare("gpt2", strategies=["vanila"])

    def test_records_of_a_search_are_of_a_step_with_a_name(self):
        with self.assertRaisesRegex(tm.UsageError, "write the config to a file, and name that"):
            tm.search(CONFIG, gpus=2, records="r.jsonl")

    def test_a_part_of_a_search_is_kept_somewhere(self):
        with self.assertRaisesRegex(tm.UsageError, "say where with records=FILE"):
            tm.search("vit-ti-16", gpus=2, part="1/2")

    def test_wrong_files_are_named_with_their_place(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "config.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({**CONFIG, "n_layer": "two"}, file)
            with self.assertRaisesRegex(tm.TidemarkError, "config.json: /n_layer: "):
                tm.compare(path)

    def test_what_is_no_step_is_a_type_error(self):
        with self.assertRaisesRegex(TypeError, "not a int"):
            tm.compare(3)

    def test_a_program_that_is_not_there_is_said(self):
        before = os.environ.get("TIDEMARK_PROGRAM")
        os.environ["TIDEMARK_PROGRAM"] = "/nowhere/tidemark"
        try:
            with self.assertRaisesRegex(tm.TidemarkError, "/nowhere/tidemark: cannot be run"):
                tm.compare("gpt2")
        finally:
            del os.environ["TIDEMARK_PROGRAM"]
            if before is not None:
                os.environ["TIDEMARK_PROGRAM"] = before

    def test_captures_fail_as_other_questions_do(self):
        self.assertTrue(issubclass(tm.CaptureError, tm.TidemarkError))


if __name__ == "__main__":
    unittest.main()
