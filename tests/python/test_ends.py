"""Scripts that end the process of their capture, and people who do. Loudly skipped without PyTorch."""

import os
import pty
import signal
import subprocess
import sys
import unittest

import test_capture

SCRIPT = '''
import os
import sys

def leaves():
    sys.exit(0)

def says():
    sys.exit("no data")

def interrupts():
    raise KeyboardInterrupt

def leaves_at_once():
    os._exit(0)

def forks():
    child = os.fork()
    if child == 0:
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    leaves()

def reads_nothing():
    import ctypes
    ctypes.string_at(0)

def is_killed():
    import signal
    os.kill(os.getpid(), signal.SIGKILL)

def trains():
    import torch
    return torch.nn.Linear(8, 8), torch.zeros(2, 8), lambda y: y.mean()

def waits():
    import time
    print("waits", flush=True)
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        print("saves a checkpoint")
'''


class Ends(test_capture.CaptureTest):
    script = SCRIPT

    def test_the_line_that_ended_the_script_is_said(self):
        lines = SCRIPT.split("\n")
        for function, text, call in (("leaves", "    sys.exit(0)", r"sys\.exit\(0\)"),
                                     ("says", '    sys.exit("no data")', r"sys\.exit\('no data'\)"),
                                     ("interrupts", "    raise KeyboardInterrupt", "KeyboardInterrupt"),
                                     ("leaves_at_once", "    os._exit(0)", r"os\._exit\(0\)"),
                                     ("forks", "    sys.exit(0)", r"sys\.exit\(0\)")):
            with self.subTest(function):
                done = self.capture(function)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, rf"^tidemark capture: \S*net\.py:{1 + lines.index(text)}: {call} ends the "
                                 "script here, before its step is captured\n$")

    def test_a_death_has_its_line(self):
        done = self.capture("reads_nothing")
        number = 1 + SCRIPT.split("\n").index("    ctypes.string_at(0)")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, rf"^tidemark capture: net\.py:{number}: the process of the capture died here "
                         r"\(SIGSEGV\): [^\n]*\n$")
        self.assertIn("was ended (SIGKILL): by the system, where memory is short", self.capture("is_killed").stderr)

    def on_a_terminal(self, *more):
        """What a terminal is shown."""
        ours, theirs = pty.openpty()
        command = [self.python, "-m", "tidemark.capture", "net.py:trains", "-o", "step.trace.json", *more]
        done = subprocess.run(command, cwd=self.path, env=self.environment, stderr=theirs)
        os.write(theirs, b"end")
        shown = b""
        while not shown.endswith(b"end"):
            shown += os.read(ours, 4096)
        os.close(theirs), os.close(ours)
        self.assertEqual(done.returncode, 0, shown)
        return shown.decode().removesuffix("end").split("\r\x1b[K")

    def test_a_terminal_is_shown_what_a_capture_is_at(self):
        self.assertEqual(self.on_a_terminal(), ["", *(f"{text} …\r" for text in (
            "importing PyTorch", "running net.py:trains", "step 1 of 4", "step 2 of 4", "step 3 of 4", "step 4 of 4",
            "writing the trace")), ""])
        self.assertEqual(self.on_a_terminal("--quiet"), [""])

    def test_an_interrupt_is_silent(self):
        command = [self.python, "-m", "tidemark.capture", "net.py:waits"]
        with subprocess.Popen(command, cwd=self.path, env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, start_new_session=True) as process:
            self.assertEqual(process.stdout.readline(), "waits\n")
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
            self.assertEqual((process.communicate()[0], process.returncode), ("", 130))


if __name__ == "__main__":
    test_capture.CaptureTest.python = test_capture.python_with_torch()
    unittest.main(argv=sys.argv)
