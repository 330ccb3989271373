"""Sweeps: the same answers over any executor, in any order, from any number of attempts."""

import concurrent.futures
import importlib.util
import json
import multiprocessing
import os
import pathlib
import sys
import tempfile
import unittest

if importlib.util.find_spec("tidemark") is None:
    sources = str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")
    sys.path.insert(0, sources)
    os.environ["PYTHONPATH"] = sources  # for workers that are new processes

import tidemark as tm

CONFIG = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 99,
          "n_positions": 32}
QUESTIONS = [{"step": "vit-ti-16", "batch": batch, "strategies": "vanilla"} for batch in (3, 1, 2)]
QUESTIONS.append({"ask": "explain", "step": "vit-ti-16", "batch": 2})


class Counting(concurrent.futures.Executor):
    """Answers at once, the last asked first, and knows what it was asked."""

    def __init__(self):
        self.asked = []

    def submit(self, function, question):
        self.asked.append(question)
        future = concurrent.futures.Future()
        future.set_result(function(question))
        return future


def answers(rows):
    return [row.answer for row in rows]


class Sweeps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "sweep.jsonl"

    def test_are_what_single_questions_are_in_their_order(self):
        rows = tm.sweep(QUESTIONS)
        self.assertEqual([row.question for row in rows], QUESTIONS)
        for row, batch in zip(rows, (3, 1, 2)):
            self.assertEqual(row.answer, tm.compare("vit-ti-16", batch=batch,
                                                    strategies="vanilla").to_dict())
        self.assertEqual(rows[3].answer, tm.explain("vit-ti-16", batch=2).to_dict())

    def test_take_configs_as_mappings(self):
        row, = tm.sweep([{"step": CONFIG, "batch": 2}])
        self.assertEqual(row.answer["rows"], tm.compare(CONFIG, batch=2).rows)

    def test_give_the_same_over_processes(self):
        spawn = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=spawn) as executor:
            self.assertEqual(tm.sweep(QUESTIONS, executor), tm.sweep(QUESTIONS))
            self.assertEqual(executor.submit(sum, [1, 2]).result(), 3)  # left open

    @unittest.skipUnless(importlib.util.find_spec("distributed"), "dask.distributed is not here")
    def test_give_the_same_over_dask(self):
        from distributed import Client

        with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
            self.assertEqual(tm.sweep(QUESTIONS, client.get_executor()), tm.sweep(QUESTIONS))

    @unittest.skipUnless(importlib.util.find_spec("mpi4py"), "mpi4py is not here")
    def test_give_the_same_over_mpi(self):
        from mpi4py.futures import MPIPoolExecutor

        with MPIPoolExecutor(1) as executor:
            self.assertEqual(tm.sweep(QUESTIONS, executor), tm.sweep(QUESTIONS))

    def test_go_on_where_they_were_stopped(self):
        class Stopped(Exception):
            pass

        def stop(done):
            if done == 2:
                raise Stopped

        with self.assertRaises(Stopped):
            tm.sweep(QUESTIONS, Counting(), output=self.file, progress=stop)
        executor, done = Counting(), []
        rows = tm.sweep(QUESTIONS, executor, output=self.file, progress=done.append)
        self.assertEqual(rows, tm.sweep(QUESTIONS))
        self.assertEqual((len(executor.asked), done), (2, [3, 4]))
        self.assertEqual(len(self.file.read_text().splitlines()), 4)

    def test_ask_a_line_again_that_was_cut_off(self):
        tm.sweep(QUESTIONS, output=self.file)
        whole = self.file.read_bytes()
        self.file.write_bytes(whole[:-40])
        executor = Counting()
        self.assertEqual(tm.sweep(QUESTIONS, executor, output=self.file), tm.sweep(QUESTIONS))
        self.assertEqual(len(executor.asked), 1)
        self.assertEqual(sorted(self.file.read_bytes().splitlines()), sorted(whole.splitlines()))

    def test_are_joined_from_files_in_any_order(self):
        parts = [self.folder / name for name in ("a", "b")]
        tm.sweep(QUESTIONS[0::2], output=parts[0])
        tm.sweep(QUESTIONS[1::2], output=parts[1])
        self.file.write_bytes(parts[1].read_bytes() + parts[0].read_bytes())
        executor = Counting()
        self.assertEqual(tm.sweep(QUESTIONS, executor, output=self.file), tm.sweep(QUESTIONS))
        self.assertEqual(executor.asked, [])

    def test_ask_equal_questions_once(self):
        executor = Counting()
        rows = tm.sweep([QUESTIONS[0]] * 3, executor)
        self.assertEqual((len(rows), len(executor.asked)), (3, 1))

    def test_ask_again_about_a_file_that_has_changed(self):
        path = self.folder / "config.json"
        path.write_text(json.dumps(CONFIG))
        question = [{"step": path, "batch": 2, "strategies": "vanilla"}]
        before = tm.sweep(question, output=self.file)
        path.write_text(json.dumps({**CONFIG, "n_layer": 3}))
        after = tm.sweep(question, output=self.file)
        self.assertEqual(after[0].answer["rows"], tm.compare(path, batch=2,
                                                             strategies="vanilla").rows)
        self.assertGreater(after[0].answer["rows"][0]["live_peak_bytes"],
                           before[0].answer["rows"][0]["live_peak_bytes"])

    def test_do_not_end_with_a_question_that_is_refused(self):
        wrong = {"step": "vit-ti-16", "batch": 2, "strategies": "vanila"}
        for _ in range(2):  # refusals are not kept
            executor = Counting()
            rows = tm.sweep([wrong, *QUESTIONS], executor, output=self.file)
            self.assertIn("did you mean 'vanilla'", rows[0].error)
            self.assertIsNone(rows[0].answer)
            self.assertEqual(answers(rows[1:]), answers(tm.sweep(QUESTIONS)))
        self.assertEqual(executor.asked, [wrong])

    def test_say_what_is_no_question(self):
        with self.assertRaisesRegex(tm.UsageError, "compare, explain, plan, search, not 'check'"):
            tm.sweep([{"ask": "check", "step": "gpt2"}])
        with self.assertRaisesRegex(tm.UsageError, "needs \"step\".*not NoneType"):
            tm.sweep([{"batch": 2}])
        self.file.write_text("what is this\n")
        with self.assertRaisesRegex(tm.UsageError, "sweep.jsonl:1: this is no line of a sweep"):
            tm.sweep(QUESTIONS, output=self.file)


if __name__ == "__main__":
    unittest.main()
