# The steps that compiled.py measures: of cases.py and family_cases.py, what torch.compile is asked
# for most.
import pathlib
import runpy

HERE = pathlib.Path(__file__).parent
ALL = runpy.run_path(str(HERE / "cases.py"))
LATER = runpy.run_path(str(HERE / "family_cases.py"))
PRECISIONS = ("fp32", "amp-bf16", "bf16")
FAMILIES = ("gpt2", "gpt2-odd-heads", "gpt2-gelu", "llama", "llama-gqa", "mistral", "qwen2", "qwen3",
            "bert", "roberta", "distilbert", "vit", "deit", "gpt_neox", "gemma", "gemma2", "gemma3",
            "phi", "phi3", "stablelm", "olmo2", "starcoder2", "xlm-roberta", "dinov2",
            "dinov2-swiglu")
LATER_FAMILIES = ("falcon", "falcon-grouped", "falcon-serial", "siglip-vision", "siglip-text",
                  "clip-vision", "clip-text", "modernbert")
EAGER = ("t5", "flan-t5", "swin")  # whose code has no fused attention
# Convolutions of short graphs have their channels last, with copies of weights in fp32.
DEEPER = dict(vit=6, deit=6, dinov2=6)


def step(name, precision, attention="sdpa", **more):
    case = (ALL if name in ALL["CONFIGS"] else LATER)["step"](name, precision, attention, **more)
    config = case["config"]
    if precision == "fp32" and name in DEEPER:
        config = {**config, "num_hidden_layers": DEEPER[name]}
    if name == "phi3":  # a width of gate and up together whose rows need no padding
        config = {**config, "intermediate_size": 640}
    return {**case, "config": config}


def without_dropout(case):
    """The same, with all probabilities of dropping 0."""
    fields = {"gpt2": ("resid_pdrop", "embd_pdrop", "attn_pdrop"),
              "bert": ("hidden_dropout_prob", "attention_probs_dropout_prob"),
              "roberta": ("hidden_dropout_prob", "attention_probs_dropout_prob")}
    config = {**case["config"],
              **{field: 0.0 for field in fields[case["config"]["model_type"]]}}
    return {**case, "name": case["name"] + "-no-dropout", "config": config}


CASES = [step(name, precision) for name in FAMILIES + LATER_FAMILIES for precision in PRECISIONS]
CASES += [step(name, precision, "math") for name in EAGER for precision in PRECISIONS]
CASES += [without_dropout(case) for case in CASES
          if case["name"].startswith(("gpt2-fp32", "gpt2-amp", "gpt2-bf16", "bert"))]
CASES += [step(name, precision, "math") for name, precision in
          (("gpt2", "fp32"), ("llama", "bf16"), ("vit", "amp-bf16"))]
CASES += [step("llama", precision, lora=ALL["lora"]("q_proj", "v_proj"))
          for precision in PRECISIONS]
CASES += [
    step("llama-gqa", "bf16", lora=ALL["lora"]("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj",
                                               "up_proj", "down_proj", dropout=0.1)),
    step("bert", "amp-bf16", lora=ALL["lora"]("query", "value")),
    step("gpt2", "bf16", lora={**ALL["lora"]("c_attn"), "fan_in_fan_out": True}),
    step("llama", "bf16", padded=True),
]
