# The steps that compiled.py measures with --blocks: of compiled_cases.py, what is trained so most, and
# checkpointed blocks.
import pathlib
import runpy

COMPILED = runpy.run_path(str(pathlib.Path(__file__).parent / "compiled_cases.py"))
PRECISIONS = COMPILED["PRECISIONS"]
FAMILIES = ("gpt2", "llama", "llama-gqa", "qwen2", "bert", "vit")
OTHERS = ("mistral", "qwen3", "roberta", "distilbert", "deit", "gpt_neox", "gemma", "gemma2", "gemma3",
          "phi", "phi3", "stablelm", "olmo2", "starcoder2", "dinov2", "dinov2-swiglu")

CASES = [COMPILED["step"](name, precision) for name in FAMILIES for precision in PRECISIONS]
CASES += [COMPILED["without_dropout"](COMPILED["step"](name, precision))
          for name in ("gpt2", "bert") for precision in PRECISIONS]
CASES += [COMPILED["step"]("llama", "bf16", lora=COMPILED["ALL"]["lora"]("q_proj", "v_proj"))]
CASES += [COMPILED["step"](name, precision, checkpoint=True)
          for name in ("llama", "qwen2", "vit") for precision in PRECISIONS]
CASES += [COMPILED["without_dropout"](COMPILED["step"]("gpt2", precision, checkpoint=True))
          for precision in PRECISIONS]
CASES += [COMPILED["step"](name, "amp-bf16", checkpoint=True) for name in ("gpt2", "bert")]
CASES += [COMPILED["step"](name, precision) for name in OTHERS
          for precision in ("amp-bf16", "bf16")]


def few_words(case):
    """The same, whose blocks take more than the logits do."""
    return {**case, "name": case["name"] + "-few-words",
            "config": {**case["config"], "vocab_size": 61}}


CASES += [few_words(COMPILED["step"](name, precision, **more)) for name in ("gpt2", "llama", "llama-gqa")
          for precision in PRECISIONS for more in ({}, dict(checkpoint=True))]


# Wrapped as torchtitan's SelectiveAC does it.
def by_op(case):
    return {**case, "name": case["name"] + "-op", "checkpoint": "op"}


CASES += [few_words(by_op(COMPILED["step"](name, precision)))
          for name in ("llama", "llama-gqa", "qwen3", "vit", "gemma2") for precision in PRECISIONS]
CASES += [few_words(by_op(COMPILED["without_dropout"](COMPILED["step"]("gpt2", precision))))
          for precision in PRECISIONS]
