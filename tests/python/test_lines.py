"""Which line of code an operation is put down to. Needs no PyTorch: a package of that name will do."""

import importlib.util
import pathlib
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).parent.parent.parent
SOURCE = ROOT / "python" / "tidemark" / "recording" / "lines.py"


def load(torch_file):
    stand_in = types.ModuleType("torch")
    stand_in.__file__ = str(torch_file)
    before = sys.modules.get("torch")
    sys.modules["torch"] = stand_in
    try:
        spec = importlib.util.spec_from_file_location("lines", SOURCE)
        lines = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(lines)
        return lines
    finally:
        sys.modules.pop("torch")
        if before is not None:
            sys.modules["torch"] = before


class Lines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.torch = self.folder / "site-packages" / "torch" / "__init__.py"
        self.lines = load(self.torch)
        sys.path.insert(0, str(self.folder))
        self.addCleanup(sys.path.remove, str(self.folder))

    def through(self, *files):
        """What is found where functions of these files call each other, the last one innermost."""
        known = self.lines.Lines()
        # This test itself is a user's file; between it and the files no frame of it may count.
        known.passed_over.append(self.lines.folder(str(pathlib.Path(__file__).parent)))
        call = known.current
        for name in reversed(files):
            around = {"call": call}
            code = "\n\ndef function():\n    return call()\n"
            exec(compile(code, str(self.folder / name), "exec"), around)
            call = around["function"]
        return call()

    def test_the_innermost_line_of_the_users_own_counts(self):
        self.assertEqual(self.through("train.py", "models/net.py", "site-packages/torch/nn/linear.py"),
                         "models/net.py:4")

    def test_packages_are_passed_over_where_the_user_called_them(self):
        self.assertEqual(self.through("train.py", "site-packages/transformers/gpt2.py"), "train.py:4")

    def test_without_a_line_of_the_users_it_is_that_of_a_package(self):
        self.assertEqual(self.through("site-packages/timm/vit.py", "site-packages/timm/norm.py",
                                      "site-packages/torch/nn/norm.py"),
                         "site-packages/timm/norm.py:4")

    def test_pytorch_alone_has_no_line(self):
        self.assertEqual(self.through("site-packages/torch/nn/linear.py"), "")

    def test_the_longest_entry_of_the_path_is_cut_off(self):
        sys.path.insert(0, str(self.folder / "models"))
        self.addCleanup(sys.path.remove, str(self.folder / "models"))
        self.assertEqual(self.through("models/net.py"), "net.py:4")

    def test_a_file_that_no_entry_holds_is_called_by_its_name(self):
        self.assertEqual(self.lines.short("/nowhere/at/all/net.py"), "net.py")


if __name__ == "__main__":
    unittest.main()
