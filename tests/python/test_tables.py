"""Tables of answers and timelines: their columns, and what Arrow's consumers find in them.

A consumer of the C data interface is written here, as polars, pyarrow and DuckDB are not everywhere;
where they are, they read the same.
"""

import array
import ctypes
import gc
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

if importlib.util.find_spec("tidemark") is None:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "python"))

import tidemark as tm
from tidemark import arrow
from tidemark.tables import table_of


def consumed(table):
    """What a consumer reads: (format, values) by column. Moves the batch out, as the interface says."""
    capsule = table.__arrow_c_stream__()
    stream = arrow._Stream.from_address(arrow._pointer_of(id(capsule), b"arrow_array_stream"))
    schema, batch, end = arrow._Schema(), arrow._Array(), arrow._Array()
    assert stream.get_schema(ctypes.byref(stream), ctypes.byref(schema)) == 0
    assert stream.get_next(ctypes.byref(stream), ctypes.byref(batch)) == 0
    assert stream.get_next(ctypes.byref(stream), ctypes.byref(end)) == 0
    assert not end.release
    stream.release(ctypes.byref(stream))
    assert not stream.release
    del capsule
    columns = {}
    for i in range(schema.n_children):
        field, values = schema.children[i].contents, batch.children[i].contents
        assert values.length == batch.length == len(table)
        columns[field.name.decode()] = field.format.decode(), read(field.format, values)
    schema.release(ctypes.byref(schema))
    batch.release(ctypes.byref(batch))
    assert not schema.release and not batch.release
    return columns


def read(form, values):
    """The values of one column, from its buffers."""
    if form == b"n":
        return [None] * values.length
    found = [raw(form, values, i) for i in range(values.length)]
    bits = values.buffers[0]
    assert (bits is None) == (values.null_count == 0)
    return found if bits is None else [v if bit(bits, i) else None for i, v in enumerate(found)]


def raw(form, values, i):
    data = values.buffers[1]
    if form == b"b":
        return bit(data, i)
    if form in (b"l", b"g"):
        kind = ctypes.c_int64 if form == b"l" else ctypes.c_double
        return kind.from_address(data + 8 * i).value
    begin, end = (ctypes.c_int32.from_address(data + 4 * (i + k)).value for k in (0, 1))
    return ctypes.string_at(values.buffers[2] + begin, end - begin).decode() if end > begin else ""


def bit(bits, i):
    return bool(ctypes.c_uint8.from_address(bits + i // 8).value >> (i % 8) & 1)


class Tables(unittest.TestCase):
    def tearDown(self):
        gc.collect()
        self.assertEqual(arrow._kept, {})

    def test_columns_are_the_keys_of_all_rows(self):
        table = table_of([{"a": 1, "b": {"c": 2.5, "d": [1, "x"]}}, {"a": 3, "b": None, "e": "ü"}])
        self.assertEqual(list(table.columns), ["a", "b.c", "b.d", "e"])
        self.assertEqual(table["a"], array.array("q", [1, 3]))
        self.assertEqual(table["b.c"], [2.5, None])
        self.assertEqual(table["b.d"], ['[1, "x"]', None])
        self.assertEqual(table["e"], [None, "ü"])
        self.assertEqual(len(table), 2)
        self.assertEqual(repr(table), "<Table: 2 rows of a, b.c, b.d, e>")
        with self.assertRaisesRegex(ValueError, r"different lengths: \[1, 2\]"):
            tm.Table({"a": [1], "b": [1, 2]})

    def test_whole_numbers_beside_others_are_floating_point_numbers(self):
        self.assertEqual(table_of([{"a": 1}, {"a": 0.5}])["a"], array.array("d", [1.0, 0.5]))
        self.assertEqual(table_of([{"a": True}, {"a": False}])["a"], [True, False])

    def test_arrow_has_every_type_with_and_without_gaps(self):
        rows = [{"whole": i, "some": i if i % 3 else None, "real": i / 4, "maybe": None if i == 5 else 0.5,
                 "truth": i % 2 == 0, "doubt": None if i % 4 == 1 else i > 6, "text": "é" * i,
                 "word": None if i == 0 else f"w{i}", "nothing": None} for i in range(19)]
        columns = consumed(table_of(rows))
        for name, form in {"whole": "l", "some": "l", "real": "g", "maybe": "g", "truth": "b",
                           "doubt": "b", "text": "u", "word": "u", "nothing": "n"}.items():
            self.assertEqual(columns[name], (form, [row[name] for row in rows]), name)

    def test_arrow_has_tables_without_rows_or_columns(self):
        self.assertEqual(consumed(tm.Table({})), {})
        self.assertEqual(consumed(tm.Table({"a": array.array("q"), "b": []})),
                         {"a": ("l", []), "b": ("n", [])})

    def test_numbers_are_not_copied_and_stay_while_somebody_reads_them(self):
        column = array.array("q", [4, 5, 6])
        batch = arrow._batch(tm.Table({"a": column}))
        values = batch.children[0].contents
        self.assertEqual(values.buffers[1], column.buffer_info()[0])
        with self.assertRaises(BufferError):  # it would move
            column.append(7)
        del column
        gc.collect()
        self.assertEqual(read(b"l", values), [4, 5, 6])
        batch.release(ctypes.byref(batch))

    def test_children_that_were_moved_out_are_released_by_who_has_them(self):
        batch = arrow._batch(tm.Table({"a": array.array("q", [1, 2]), "b": ["x", "y"]}))
        moved = arrow._Array()
        ctypes.memmove(ctypes.byref(moved), batch.children[1], ctypes.sizeof(moved))
        batch.children[1].contents.release = arrow._ReleaseArray()
        batch.release(ctypes.byref(batch))
        self.assertEqual(read(b"u", moved), ["x", "y"])
        moved.release(ctypes.byref(moved))

    def test_a_stream_that_nobody_reads_goes_with_its_capsule(self):
        table = table_of([{"a": 1}])
        capsules = [table.__arrow_c_stream__() for _ in range(3)]
        self.assertEqual(len(arrow._kept), 6)
        del capsules

    def test_interpreters_end_while_streams_are_there(self):
        code = ("import tidemark as tm\nfrom tidemark.tables import table_of\n"
                "kept = table_of([{'a': 1, 'b': 'x'}]).__arrow_c_stream__()\n")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              env={"PYTHONPATH": str(pathlib.Path(tm.__file__).parent.parent)})
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class TablesOfAnswers(unittest.TestCase):
    def test_rows_are_columns(self):
        answer = tm.compare("gpt2", batch=2, strategies=["vanilla", "checkpoint:selective"])
        table = answer.table
        self.assertEqual(table["strategy"], ["vanilla", "checkpoint:selective"])
        self.assertEqual(table["step_ns"][0], answer.row("vanilla")["step_ns"])
        self.assertNotIn("at_peak_bytes", table.columns)
        self.assertIn("at_peak_bytes.parameter", table.columns)

    def test_timelines_have_what_explain_says(self):
        options = {"batch": 2, "sequence": 64, "strategy": "checkpoint", "device": "rtx-4090"}
        line = tm.timeline("gpt2", **options)
        explained = tm.explain("gpt2", **options)
        self.assertEqual(line.live_peak_bytes, explained.peak_bytes)
        self.assertEqual(line.memory["live_bytes"][-1] - line.memory["live_bytes"][0]
                         + line.memory["change_bytes"][0], 0)
        self.assertEqual(line.duration_ns, max(line.runs["end_ns"]))
        gelu = line.buffers["name"].index("blocks.11.mlp.gelu")
        self.assertLess(line.buffers["begin_ns"][gelu], line.buffers["end_ns"][gelu])
        self.assertEqual(line.runs["task"][0], "forward")
        self.assertEqual(line.runs["op"][0], "embed")
        self.assertIn("recompute", line.runs["task"])
        self.assertIn("checkpoint on rtx-4090", repr(line))

    def test_copies_and_files_have_timelines(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "step.timeline.json"
            subprocess.run([tm.program(), "explain", "gpt2", "-b", "1", "--strategy", "offload", "-o", path],
                           check=True, capture_output=True)
            line = tm.read_timeline(path)
            self.assertEqual(line.duration_ns, json.loads(path.read_text())["duration_ns"])
        copies = [i for i, task in enumerate(line.runs["task"]) if task == "copy_out"]
        self.assertTrue(copies)
        self.assertTrue(all(line.runs["op"][i] is None for i in copies))


class Libraries(unittest.TestCase):
    """Each that is installed."""

    def setUp(self):
        self.table = table_of([{"a": 1, "b": "x", "c": None}, {"a": 2, "b": None, "c": 0.5}])
        self.values = {"a": [1, 2], "b": ["x", None], "c": [None, 0.5]}

    def library(self, name):
        return importlib.import_module(name) if importlib.util.find_spec(name) else self.skipTest(
            f"no {name}")

    def test_numpy(self):
        numpy = self.library("numpy")
        shared = numpy.asarray(self.table["a"])
        self.table["a"][0] = 7
        self.assertEqual(shared.tolist(), [7, 2])
        self.assertEqual(numpy.from_dlpack(shared).tolist(), [7, 2])

    def test_polars(self):
        polars = self.library("polars")
        self.assertEqual(polars.DataFrame(self.table).to_dict(as_series=False), self.values)

    def test_pyarrow(self):
        pyarrow = self.library("pyarrow")
        table = pyarrow.table(self.table)
        self.assertEqual(table.to_pydict(), self.values)
        table.validate(full=True)
        self.assertEqual(table["a"].chunk(0).buffers()[1].address, self.table["a"].buffer_info()[0])

    def test_duckdb(self):
        duckdb = self.library("duckdb")
        rows = self.table  # found by its name
        self.assertEqual(duckdb.sql("select a, b from rows order by a desc").fetchall(),
                         [(2, None), (1, "x")])
        del rows

    def test_pandas(self):
        pandas = self.library("pandas")
        self.assertEqual(self.table.to_pandas()["a"].tolist(), [1, 2])
        if hasattr(pandas.DataFrame, "from_arrow"):
            self.assertEqual(pandas.DataFrame.from_arrow(self.table)["a"].tolist(), [1, 2])


if __name__ == "__main__":
    unittest.main()
