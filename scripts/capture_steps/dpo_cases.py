# Pairs of which one is preferred, as TRL's DPOTrainer scores them.
import pathlib
import runpy

BASE = runpy.run_path(str(pathlib.Path(__file__).parent / "cases.py"))
SIZES = {"gpt2": dict(batch=3, tokens=133), "llama": dict(batch=3, tokens=149)}
LORA = {"gpt2": dict(r=8, target_modules=["c_attn"]),
        "llama": dict(r=8, target_modules=["q_proj", "v_proj"])}


def case(network, precision, reference, **further):
    kind = "lora" if "lora" in further else reference
    return dict(name=f"{network}-{precision}-dpo-{kind}", config=BASE["CONFIGS"][network],
                precision=precision, attention="sdpa", reference=reference, **SIZES[network],
                **further)


CASES = [case(network, precision, reference)
         for network in SIZES
         for precision in ("fp32", "bf16", "amp-bf16")
         for reference in ("model", "precomputed")]
# Without GPT-2 in bf16: there PyTorch counts what a mask picks in memory that nobody has written.
CASES += [case(network, precision, "adapters", lora=LORA[network])
          for network in SIZES
          for precision in ("fp32", "bf16", "amp-bf16")
          if (network, precision) != ("gpt2", "bf16")]
