"""What a capture is told to run is checked first. Needs no PyTorch."""

import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "python"))

from tidemark.recording.errors import CaptureError  # noqa: E402
from tidemark.recording.target import check_target, module_in  # noqa: E402


class Target(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.script = pathlib.Path(folder.name) / "net.py"
        self.script.write_text("def step():\n    pass\n")

    def said(self, target):
        with self.assertRaises(CaptureError) as refused:
            check_target(target)
        return str(refused.exception)

    def test_there_is_a_file(self):
        self.assertEqual(self.said("nothere.py:foo"), "nothere.py: no such file")

    def test_there_is_a_function(self):
        check_target(f"{self.script}:step")
        self.assertEqual(self.said(f"{self.script}:steps"),
                         f"{self.script}: no function named 'steps' (it has: step)")

    def test_a_module_is_one_of_this_folder(self):
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.script.parent)
        os.makedirs("pkg/sub")
        pathlib.Path("pkg/sub/train.py").write_text("def step():\n    pass\n")
        check_target("pkg.sub.train:step")
        check_target("net:step")
        self.assertEqual(module_in("pkg.sub.train:step"), "pkg.sub.train")
        self.assertEqual([module_in(x) for x in ("net.py:step", "pkg.sub.other:step", "pkg/sub/train.py:step",
                                                 "../net:step")], [None] * 4)
        self.assertEqual(self.said("pkg.sub.other:step"), "pkg.sub.other: no such file")
        self.assertEqual(self.said("pkg.sub.train:steps"),
                         "pkg.sub.train: no function named 'steps' (it has: step)")

    def test_a_name_may_come_from_elsewhere(self):
        self.script.write_text("from steps import *\n")
        check_target(f"{self.script}:steps")

    def test_both_are_named(self):
        for target in ("net.py", "net.py:", ":step"):
            self.assertEqual(self.said(target),
                             f"{target}: need SCRIPT.py:FUNCTION, package.module:FUNCTION, a config.json "
                             "or its folder")

    def test_a_config_is_a_file_or_in_a_folder(self):
        folder = self.script.parent
        self.assertEqual(self.said("nothere.json"), "nothere.json: no such file")
        self.assertEqual(self.said(str(folder)), f"{folder}: no config.json in it")
        (folder / "config.json").write_text("{}")
        check_target(str(folder))
        check_target(str(folder / "config.json"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
