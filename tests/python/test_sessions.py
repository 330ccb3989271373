"""tidemark.capture() from a session: files, errors, what is no model. Loudly skipped without PyTorch."""

import subprocess
import sys
import unittest

import test_capture

SCRIPT = '''
import contextlib
import io
import pathlib
import sys
import tidemark
import torch

class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = torch.nn.Linear(width, width)

    def forward(self, x):
        return self.layer(x).mean()

def refused(*given):
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            tidemark.capture(*given)
        except tidemark.CaptureError as error:
            print(error)
            print(said.getvalue().count(str(error)))

def two():
    paths = [tidemark.capture(Net(width), torch.zeros(2, width)) for width in (32, 64)]
    print(*['[32, 32]' in path.read_text() for path in paths])
    print(*paths)

def wrong():
    refused(Net(32), torch.zeros(2, 33))
    refused(lambda: None, None)
    refused([1], None)

if __name__ == "__main__":
    dict(two=two, wrong=wrong)[sys.argv[1]]()
'''


class Sessions(test_capture.CaptureTest):
    script = SCRIPT

    def said(self, *arguments, **options):
        done = subprocess.run([self.python, *arguments], cwd=self.path, env=self.environment,
                              capture_output=True, text=True, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_two_captures_are_two_files_that_go_with_the_process(self):
        first_is_of_32, paths = self.said("net.py", "two")
        self.assertEqual(first_is_of_32, "True False")
        folders = {path.rpartition("/")[0] for path in paths.split()}
        self.assertEqual([path.rpartition("/")[2] for path in paths.split()],
                         ["Net-1.trace.json", "Net-2.trace.json"])
        self.assertEqual(len(folders), 1)
        self.assertFalse((self.path / "step.trace.json").exists())
        for folder in folders:
            self.assertFalse((self.path / folder).exists(), folder)

    def test_an_error_has_the_reason_which_streams_besides(self):
        shapes, once, function, unsaid, other, _ = self.said("net.py", "wrong")
        number = 1 + SCRIPT.split("\n").index("        return self.layer(x).mean()")
        self.assertRegex(shapes, rf"^net\.py:{number}: RuntimeError: (addmm: )?mat1 and mat2 shapes cannot be multiplied")
        self.assertEqual((once, unsaid), ("1", "0"))
        self.assertRegex(function, r"^the model is a function: .*SCRIPT\.py:FUNCTION`, where FUNCTION returns it$")
        self.assertEqual(other, "the model is list; need a torch.nn.Module, or a program of torch.export")

    def test_what_is_read_from_stdin_stays_there(self):
        shapes, *_ = self.said("-", "wrong", input=SCRIPT)
        self.assertRegex(shapes, "Can't get attribute 'Net' .*put the model into a file and import it$")


if __name__ == "__main__":
    test_capture.CaptureTest.python = test_capture.python_with_torch()
    unittest.main(argv=sys.argv)
