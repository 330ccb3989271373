"""Blocks by repetition of module paths. Needs no PyTorch."""

import importlib.util
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).parent.parent.parent
SOURCE = ROOT / "python" / "tidemark" / "recording" / "blocks.py"
spec = importlib.util.spec_from_file_location("blocks", SOURCE)
blocks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(blocks)


class Blocks(unittest.TestCase):
    def test_members_of_a_list_are_blocks(self):
        classes = {"h": "ModuleList", "h.0": "Block", "h.0.mlp": "MLP", "h.1": "Block",
                   "h.1.mlp": "MLP"}
        self.assertEqual(blocks.chosen_members(classes), {"h.0", "h.1"})

    def test_a_list_of_two_classes_is_none(self):
        classes = {"s": "Sequential", "s.0": "Linear", "s.1": "ReLU"}
        self.assertEqual(blocks.chosen_members(classes), set())

    def test_experts_within_a_layer_are_not_blocks(self):
        classes = {}
        for layer in "01":
            classes |= {f"layers.{layer}": "Layer", f"layers.{layer}.experts": "ModuleList",
                        f"layers.{layer}.experts.0": "Expert", f"layers.{layer}.experts.0.up": "Linear",
                        f"layers.{layer}.experts.1": "Expert", f"layers.{layer}.experts.1.up": "Linear"}
        self.assertEqual(blocks.chosen_members(classes), {"layers.0", "layers.1"})

    def test_stages_that_differ_give_way_to_what_they_repeat(self):
        classes = {"layers.0": "Stage", "layers.1": "Stage"}
        for path in ("layers.0.blocks.0", "layers.0.blocks.1", "layers.1.blocks.0",
                     "layers.1.blocks.1", "layers.1.blocks.2"):
            classes |= {path: "Block", f"{path}.norm": "LayerNorm"}
        self.assertEqual(blocks.chosen_members(classes), {
            "layers.0.blocks.0", "layers.0.blocks.1", "layers.1.blocks.0", "layers.1.blocks.1",
            "layers.1.blocks.2"})

    def test_a_call_within_a_block_is_no_block_of_its_own(self):
        classes = {"h.0": "B", "h.0.x": "L", "h.1": "B", "h.1.x": "L"}
        calls = [("h.0", 0, 5), ("h.1", 5, 9), ("h.1", 7, 8)]
        self.assertEqual([call for _, call in blocks.blocks_of(classes, calls)], calls[:2])


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
