# The steps of steps_checkpointed.json: models' own checkpointing beside adapters, which leave a block's weights
# frozen. Few words, so that the peak lies in the backward of a block and not in the loss.
import pathlib
import runpy

BASE = runpy.run_path(str(pathlib.Path(__file__).parent / "cases.py"))
FAMILIES = runpy.run_path(str(pathlib.Path(__file__).parent / "family_cases.py"))
CONFIGS = {**BASE["CONFIGS"], **FAMILIES["CONFIGS"]}
SIZES = {**FAMILIES["SIZES"], **BASE["SIZES"]}
ADAPTED = {"dinov2": ("query", "value"), "dinov2-swiglu": ("query", "value"), "vit": ("query", "value"),
           "bert": ("query", "value"), "gpt2": ("c_attn",), "t5": ("q", "v"),
           "llama": ("q_proj", "v_proj"), "gemma2": ("q_proj", "v_proj")}
EVERYWHERE = {"bert": ("query", "key", "value", "dense"), "gpt2": ("c_attn", "c_proj", "c_fc"),
              "llama": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")}
CASES = []


def add(network, precision, label="checkpoint", targets=None, **more):
    config = dict(CONFIGS[network])
    if "vocab_size" in config:
        config["vocab_size"] = 211
    adapters = {}
    if targets:
        adapters["lora"] = BASE["lora"](*targets, dropout=more.pop("dropout", 0.0))
        if network == "gpt2":
            adapters["lora"]["fan_in_fan_out"] = True
        if config["model_type"] in ("vit", "dinov2"):
            adapters["lora"]["modules_to_save"] = ["classifier"]
    CASES.append(dict(name=f"{network}-{precision}-{label}", config=config, precision=precision,
                      attention=more.pop("attention", "math" if network == "t5" else "sdpa"),
                      checkpoint=True, **adapters, **{**SIZES[config["model_type"]], **more}))


for NETWORK, TARGETS in ADAPTED.items():
    for PRECISION in ("fp32", "amp-bf16", "bf16"):
        add(NETWORK, PRECISION, "lora", TARGETS)
for NETWORK, TARGETS in EVERYWHERE.items():
    for PRECISION in ("fp32", "amp-bf16", "bf16"):
        add(NETWORK, PRECISION, "lora-all", TARGETS, dropout=0.1)
for NETWORK in ("gemma2", "gemma3", "modernbert"):
    for PRECISION in ("fp32", "amp-bf16", "bf16"):
        add(NETWORK, PRECISION)
