# The steps that compiled.py measures: of cases.py, what torch.compile is asked for most.
import pathlib
import runpy

ALL = runpy.run_path(str(pathlib.Path(__file__).parent / "cases.py"))
FAMILIES = ("gpt2", "gpt2-odd-heads", "gpt2-gelu", "llama", "llama-gqa", "mistral", "qwen2", "qwen3",
            "bert", "roberta", "distilbert", "vit", "deit")


def without_dropout(step):
    """The same, with all probabilities of dropping 0."""
    fields = {"gpt2": ("resid_pdrop", "embd_pdrop", "attn_pdrop"),
              "bert": ("hidden_dropout_prob", "attention_probs_dropout_prob"),
              "roberta": ("hidden_dropout_prob", "attention_probs_dropout_prob")}
    config = {**step["config"],
              **{field: 0.0 for field in fields[step["config"]["model_type"]]}}
    return {**step, "name": step["name"] + "-no-dropout", "config": config}


CASES = [ALL["step"](name, precision, "sdpa") for name in FAMILIES
         for precision in ("fp32", "amp-bf16", "bf16")]
CASES += [without_dropout(step) for step in CASES
          if step["name"].startswith(("gpt2-fp32", "gpt2-amp", "gpt2-bf16", "bert"))]
CASES += [ALL["step"](name, precision, "math") for name, precision in
          (("gpt2", "fp32"), ("llama", "bf16"), ("vit", "amp-bf16"))]
