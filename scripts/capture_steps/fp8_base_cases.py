# Bases in eight-bit floats under adapters. Needs torchao==0.18.0 beside PyTorch 2.15.
import pathlib
import runpy

BASE = runpy.run_path(str(pathlib.Path(__file__).parent / "cases.py"))
ALL = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
CASES = [dict(name=f"{network}-{precision}-{label}", config=BASE["CONFIGS"][network],
              precision=precision, attention="sdpa", sm=90, batch=5, tokens=149, base="fp8", **more)
         for network in ("llama-gqa", "qwen2")
         for precision in ("fp32", "bf16", "amp-bf16")
         for label, more in (("qv", dict(lora=BASE["lora"]("q_proj", "v_proj"))),
                             ("all", dict(lora=BASE["lora"](*ALL, dropout=0.1))),
                             ("checkpoint", dict(lora=BASE["lora"]("q_proj", "v_proj"),
                                                 checkpoint=True)))]
