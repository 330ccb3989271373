"""`tidemark record` of Python programs: what the hook does to PyTorch, and that it does nothing else.

PyTorch is a stand-in of a few lines, so that this runs everywhere. Where there is a real one with CUDA,
the last test trains with it on the stand-in for the CUDA runtime.
"""

import importlib.util
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ.get("TIDEMARK_PROGRAM", "tidemark")
SNAPSHOT = ROOT / "tests" / "reference" / "snapshots" / "two_streams.pickle"

FAKE_TORCH = f'''
import shutil
class cuda:
    calls = []
    def _lazy_call(call): cuda.calls.append(call)
    def init():
        for call in cuda.calls: call()
    class memory:
        said = None
        def _record_memory_history(**how): cuda.memory.said = how
        def _dump_snapshot(path):
            assert cuda.memory.said == {{"max_entries": 1_000_000, "stacks": "python"}}
            shutil.copy({str(SNAPSHOT)!r}, path)
class compiler:
    is_compiling = staticmethod(lambda: False)
'''
FAKE_OPTIMIZER = '''
hooks = []
register_optimizer_step_post_hook = hooks.append
class Adam:
    def step(self):
        for hook in hooks: hook(self, (), {})
'''


def chunks(path):
    """The kinds and bytes of a recording's chunks (docs/recording.md)."""
    data, at, found = path.read_bytes(), 16, []
    assert data[:16] == b"TIDEMARK-RUN-01\n"
    while at < len(data):
        kind, size = struct.unpack_from("<4sI", data, at)
        found.append((kind.decode(), data[at + 8:at + 8 + size]))
        at += 8 + size
    return found


class Record(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        modules = self.folder / "modules"
        (modules / "torch" / "optim").mkdir(parents=True)
        (modules / "torch" / "__init__.py").write_text(FAKE_TORCH)
        (modules / "torch" / "optim" / "__init__.py").write_text("")
        (modules / "torch" / "optim" / "optimizer.py").write_text(FAKE_OPTIMIZER)
        self.modules = modules
        self.file = self.folder / "run.timeline"

    def record(self, code, *options, **variables):
        environment = {**os.environ, "PYTHONPATH": str(self.modules), **variables}
        environment.pop("CUDA_INJECTION64_PATH", None)
        return subprocess.run([PROGRAM, "record", "-o", self.file, "--", sys.executable, *options,
                               "-c", code], env=environment, capture_output=True, text=True)

    def of(self, kind):
        return [data for found, data in chunks(self.file) if found == kind]

    def test_the_allocators_history_and_the_steps_are_in_the_file(self):
        done = self.record("import torch, torch.optim.optimizer as o, sys\n"
                           "torch.cuda.init()\na, b = o.Adam(), o.Adam()\n"
                           "for i in range(3): a.step(); b.step()\nsys.exit(7)")
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertEqual(b"".join(self.of("SNAP")), SNAPSHOT.read_bytes())
        self.assertEqual(len(b"".join(self.of("MARK"))), 3 * 8)  # of the first optimizer alone
        table = subprocess.run([PROGRAM, "explain", self.file], capture_output=True, text=True)
        self.assertIn("memory snapshot of cuda:0", table.stdout)
        stacks = subprocess.run([PROGRAM, "explain", "--format", "collapsed", self.file],
                                capture_output=True, text=True)
        self.assertIn("<module> (record.py:", stacks.stdout)

    def test_a_program_that_only_asks_for_torch_is_left_alone(self):
        done = self.record("import importlib.util as u, sys; assert u.find_spec('torch')\n"
                           "assert 'torch' not in sys.modules; import torch; torch.cuda.init()")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.of("SNAP"))
        self.record("import torch")  # and no GPU
        self.assertFalse(self.of("SNAP"))

    def test_the_users_own_sitecustomize_runs(self):
        (self.modules / "sitecustomize.py").write_text("import sys; sys.mine = __file__\n")
        done = self.record("import sys; print(sys.mine, sitecustomize.__file__)\n"
                           "print(any('run.timeline-' in p for p in sys.path))"
                           .replace("import sys;", "import sys, sitecustomize;", 1))
        mine = str(self.modules / "sitecustomize.py")
        self.assertEqual(done.stdout, f"{mine} {mine}\nFalse\n", done.stderr)

    def test_what_fails_in_the_hook_is_a_note(self):
        (self.modules / "torch" / "__init__.py").write_text(
            FAKE_TORCH.replace("shutil.copy(", "raise OSError('no space left', "))
        done = self.record("import torch; torch.cuda.init()")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("PyTorch's memory history was not written", done.stderr)
        (self.modules / "torch" / "__init__.py").write_text("")  # something else of that name
        self.assertEqual(self.record("import torch; print(1)").stdout, "1\n")

    def test_an_exception_is_the_programs_own(self):
        done = self.record("import torch; torch.cuda.init(); 1 / 0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ZeroDivisionError", done.stderr)
        self.assertTrue(self.of("SNAP"))

    def test_ctrl_c_is_pythons_own(self):
        done = self.record("import os, signal, torch; torch.cuda.init()\n"
                           "os.kill(os.getpid(), signal.SIGINT)")
        self.assertEqual(done.returncode, -2)
        self.assertIn("KeyboardInterrupt", done.stderr)
        self.assertTrue(self.of("SNAP"))

    def test_a_signal_leaves_the_history_first(self):
        for name in ("SIGTERM", "SIGHUP"):
            done = self.record("import os, signal, time, torch; torch.cuda.init()\n"
                               f"os.kill(os.getpid(), signal.{name}); time.sleep(60)")
            self.assertEqual(done.returncode, -getattr(signal, name), done.stderr)
            self.assertEqual(b"".join(self.of("SNAP")), SNAPSHOT.read_bytes())
            end = self.of("DONE")
            self.assertEqual(len(end), 1)

    def test_the_programs_own_handler_stays(self):
        done = self.record("import os, signal, sys, torch\n"
                           "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\n"
                           "torch.cuda.init(); os.kill(os.getpid(), signal.SIGTERM)")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertTrue(self.of("SNAP"))

    def test_a_child_ends_by_a_signal_as_always(self):
        done = self.record(
            "import os, signal, time, torch; torch.cuda.init(); child = os.fork()\n"
            "if child == 0: time.sleep(60)\n"
            "time.sleep(0.2); os.kill(child, signal.SIGTERM)\n"
            "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))")
        self.assertEqual(done.stdout, f"{-signal.SIGTERM}\n", done.stderr)

    @unittest.skipUnless(os.environ.get("TIDEMARK_SLOW_TESTS"), "waits twenty seconds")
    def test_a_signal_ends_a_program_that_hangs_in_c(self):
        done = self.record(
            "import ctypes, os, signal, threading, torch; torch.cuda.init()\n"
            "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()\n"
            "mutex = ctypes.create_string_buffer(64); lock = ctypes.CDLL(None).pthread_mutex_lock\n"
            "lock(mutex); lock(mutex)")
        self.assertEqual(done.returncode, -signal.SIGTERM, done.stderr)

    def test_a_python_without_modules_of_others_runs_unrecorded(self):
        done = self.record("print(1)", "-I")
        self.assertEqual((done.stdout, done.returncode), ("1\n", 0))

    def test_a_real_pytorch_leaves_its_stacks(self):
        if os.environ.get("CI") or importlib.util.find_spec("torch") is None:
            self.skipTest("no PyTorch")
        sys.path.insert(0, str(ROOT / "python"))
        from tidemark.recording import stand_in

        if stand_in.has_gpu():
            self.skipTest("this machine has a GPU")
        shutil.rmtree(self.modules / "torch")
        done = self.record(
            "import torch\nm = torch.nn.Linear(512, 512).cuda()\n"
            "o = torch.optim.AdamW(m.parameters())\nfor i in range(3):\n"
            "    m(torch.randn(64, 512, device='cuda')).sum().backward(); o.step(); o.zero_grad()",
            **stand_in.environment(80))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(b"".join(self.of("MARK"))), 3 * 8)
        diff = subprocess.run([PROGRAM, "diff", "--format", "json", self.file, self.file],
                              capture_output=True, text=True)
        json.loads(diff.stdout)
        table = subprocess.run([PROGRAM, "diff", self.file, self.file], capture_output=True,
                               text=True)
        self.assertIn("recorded, step 3 of 3", table.stdout)


if __name__ == "__main__":
    unittest.main()
