"""What a captured script saves: nothing of what the stand-in computed. Loudly skipped without PyTorch."""

import sys
import unittest

import test_capture

SCRIPT = '''
import io
import os
import torch
from torch import nn

def loop(save, width=64):
    model = nn.Linear(width, width).cuda()
    optimizer = torch.optim.SGD(model.parameters())
    def step():
        model(torch.zeros(4, width, device="cuda")).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        save(model)
    return step

def saving():
    def save(model):
        torch.save(model.state_dict(), "real.pt")
        torch.save(model.state_dict(), io.BytesIO())
        torch.save({name: each.cpu() for name, each in model.state_dict().items()}, "real.pt")
    return loop(save)

def aside():
    def save(model):
        torch.save(model.state_dict(), "new.pt")
        os.replace("new.pt", "real.pt")
        os.rename("real.pt", "other.pt")
    return loop(save)

def prepared():
    torch.save(dict(of_host=torch.ones(64, device="cpu")), "host.pt")
    torch.save([nn.Linear(8, 8)], "real.pt")
    assert torch.load("host.pt")["of_host"].sum() == 64
    return loop(lambda model: None)

def with_safetensors():
    from safetensors.torch import save_file, save_model
    def save(model):
        save_file(model.state_dict(), "real.pt")
        save_model(model, "real.pt")
    return loop(save)

def distributed():
    import torch.distributed.checkpoint as checkpoint
    return loop(lambda model: checkpoint.save(model.state_dict(), checkpoint_id="shards"))

def of_timm():
    from timm.utils import CheckpointSaver
    def save(model):
        saver = CheckpointSaver(model, torch.optim.SGD(model.parameters()), checkpoint_dir="real", recovery_dir="real")
        best, _ = saver.save_checkpoint(1, metric=2.0)
    return loop(save)

def trainer():
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments
    model = LlamaForCausalLM(LlamaConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=1,
                                         num_attention_heads=2, vocab_size=40))
    ids = torch.zeros(16, dtype=torch.long)
    options = TrainingArguments("real", max_steps=1, save_steps=1, save_total_limit=1, report_to=[],
                                per_device_train_batch_size=2, disable_tqdm=True)
    trainer = Trainer(model=model, args=options, train_dataset=[dict(input_ids=ids, labels=ids)] * 8)
    def step():
        trainer.train()
        trainer.save_model("real/checkpoint-7")
        trainer.model.save_pretrained("real/checkpoint-7")
    return step

def circle():
    """As pickling a weight leaves one."""
    def save(model):
        circle = [each.untyped_storage() for each in model.parameters()]
        circle.append(circle)
    return loop(save)
'''
SAID = "{} is left out: a capture has no numbers worth keeping, and the files may be real ones\n"


class Saves(test_capture.CaptureTest):
    script = SCRIPT

    def setUp(self):
        self.real = self.path / "real.pt"
        self.real.write_text("real")

    def require_left_out(self, function, *names):
        done = self.capture(function)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.real.read_text(), "real")
        for name in names:  # once
            self.assertEqual(done.stderr.count(SAID.format(name)), 1, done.stderr)
        self.assertEqual(done.stderr.count("left out"), len(names), done.stderr)
        return done

    def require(self, package):
        if self.run_python("-c", f"import {package}").returncode != 0:
            self.skipTest(f"no {package}")

    def test_checkpoints_stay_as_they_are(self):
        number = 1 + SCRIPT.split("\n").index('        torch.save(model.state_dict(), "real.pt")')
        done = self.require_left_out("saving", "torch.save()")
        self.assertIn(f"net.py:{number}: torch.save() is left out", done.stderr)
        self.require_left_out("distributed", "torch.distributed.checkpoint")
        self.assertFalse((self.path / "shards").exists())

    def test_what_was_not_written_takes_no_files_place(self):
        self.require_left_out("aside", "torch.save()")
        self.assertEqual([(self.path / name).exists() for name in ("new.pt", "other.pt")], [False, False])

    def test_data_of_the_host_is_written_before_the_step(self):
        self.require_left_out("prepared", "torch.save()")
        self.assertTrue((self.path / "host.pt").exists())

    def test_checkpoints_of_libraries(self):
        self.require("safetensors")
        self.require_left_out("with_safetensors", "safetensors")
        self.require("timm")
        self.require_left_out("of_timm", "timm's CheckpointSaver")

    def test_a_trainer_neither_saves_nor_deletes(self):
        self.require("transformers, accelerate")
        for at in (5, 6, 7):
            folder = self.path / "real" / f"checkpoint-{at}"
            folder.mkdir(parents=True)
            (folder / "model.safetensors").write_text("real")
        self.require_left_out("trainer", "a checkpoint of transformers.Trainer", "save_pretrained()",
                              "transformers.Trainer.save_model()")
        found = sorted(str(path.relative_to(self.path / "real")) for path in (self.path / "real").glob("*/*"))
        self.assertEqual(found, [f"checkpoint-{at}/model.safetensors" for at in (5, 6, 7)])

    def test_weights_in_garbage_are_there_once(self):
        self.require_left_out("circle")
        names = [x["name"] for x in self.trace()["tensors"] if x["category"] in ("parameter", "input")]
        self.assertEqual(names, ["weight", "bias"])


if __name__ == "__main__":
    test_capture.CaptureTest.python = test_capture.python_with_torch()
    unittest.main(argv=sys.argv)
