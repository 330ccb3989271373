# The steps of steps_liger.json: Liger's kernels in the place of transformers' own. Needs
# liger-kernel==0.6.4. A triton kernel would have nothing to run on, so it is not launched.
import pathlib
import runpy

BASE = runpy.run_path(str(pathlib.Path(__file__).parent / "cases.py"))
CASES = []


def add(network, precision, label="liger", **more):
    config = BASE["CONFIGS"][network]
    sizes = BASE["SIZES"][config["model_type"]]
    CASES.append(dict(name=f"{network}-{precision}-{label}", config=config, precision=precision,
                      attention="sdpa", liger=True, **{**sizes, **more}))


for PRECISION in ("fp32", "bf16", "amp-bf16"):
    for NETWORK in ("llama", "llama-gqa", "mistral", "qwen2", "qwen3", "gemma", "phi3", "olmo2"):
        add(NETWORK, PRECISION)
    add("llama", PRECISION, "liger-checkpoint", checkpoint=True)
    add("llama-gqa", PRECISION, "liger-lora", lora=BASE["lora"]("q_proj", "v_proj"))
add("llama-gqa", "bf16", "liger-long", batch=2, tokens=1531)
