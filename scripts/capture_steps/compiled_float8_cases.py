# The steps that compiled.py measures with --float8: of fp8_cases.py those with fused attention, and of
# LLaMA's blocks also by op. Few words, so that blocks make the peak.
import pathlib
import runpy

FLOAT8 = runpy.run_path(str(pathlib.Path(__file__).parent / "fp8_cases.py"))


def few_words(case):
    config = {**case["config"], **({"vocab_size": 61} if "vocab_size" in case["config"] else {})}
    return {**case, "config": config}


CASES = [few_words(case) for case in FLOAT8["CASES"] if case["attention"] == "sdpa" and "lora" not in case]
CASES += [{**case, "name": case["name"] + "-op", "checkpoint": "op"} for case in CASES
          if case["name"] in ("llama-bf16-sdpa", "llama-amp-bf16-sdpa", "llama-wide-bf16-sdpa", "vit-bf16-sdpa")]
