# The steps of steps_policy.json: blocks under a selective checkpoint that keeps what attention and every second
# product give, as torchtitan's SelectiveAC does (`checkpoint:op`). Few words, so that blocks make the peak.
import pathlib
import runpy

BASE = runpy.run_path(str(pathlib.Path(__file__).parent / "cases.py"))
FAMILIES = runpy.run_path(str(pathlib.Path(__file__).parent / "family_cases.py"))
CONFIGS = {**BASE["CONFIGS"], **FAMILIES["CONFIGS"]}
SIZES = {**FAMILIES["SIZES"], **BASE["SIZES"]}
SCORES_IN_MEMORY = ("gpt2", "llama", "bert")
ADAPTED = {"gpt2": ("c_attn",), "llama": ("q_proj", "v_proj"), "bert": ("query", "value")}
CASES = []


def add(network, precision, attention, targets=None):
    config = dict(CONFIGS[network])
    if "vocab_size" in config:
        config["vocab_size"] = 211
    adapters = dict(lora=BASE["lora"](*targets)) if targets else {}
    if network == "gpt2" and targets:
        adapters["lora"]["fan_in_fan_out"] = True
    CASES.append(dict(name=f"{network}-{precision}-{attention}-op{'-lora' if targets else ''}", config=config,
                      precision=precision, attention=attention, checkpoint="op", **adapters, **SIZES[config["model_type"]]))


for NETWORK in ("gpt2", "llama", "llama-gqa", "mistral", "qwen2", "qwen3", "gemma2", "phi3", "olmo2", "bert", "vit",
                "dinov2-swiglu"):
    for PRECISION in ("fp32", "bf16", "amp-bf16"):
        for ATTENTION in ("sdpa", "math") if NETWORK in SCORES_IN_MEMORY else ("sdpa",):
            add(NETWORK, PRECISION, ATTENTION)
for NETWORK in ("t5", "gpt_neox", "falcon", "modernbert", "stablelm", "whisper"):
    for PRECISION in ("bf16", "amp-bf16"):
        add(NETWORK, PRECISION, "math" if NETWORK == "t5" else "sdpa")
for NETWORK, TARGETS in ADAPTED.items():
    for PRECISION in ("bf16", "amp-bf16"):
        add(NETWORK, PRECISION, "sdpa", TARGETS)
