# Tokens that are learned in front of a frozen model: peft's prompt tuning.
import pathlib
import runpy

BASE = runpy.run_path(str(pathlib.Path(__file__).parent / "cases.py"))
SIZES = {"gpt2": dict(batch=5, tokens=133), "llama": dict(batch=5, tokens=149),
         "llama-gqa": dict(batch=5, tokens=149)}
CASES = [dict(name=f"{network}-{precision}-{attention}-prompt", config=BASE["CONFIGS"][network],
              precision=precision, attention=attention, virtual_tokens=21, **SIZES[network])
         for network in SIZES
         for precision in ("fp32", "bf16", "amp-bf16")
         for attention in ("sdpa", "math")]
