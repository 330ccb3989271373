# Keys and values that are learned in front of each block's own: peft's prefix tuning.
import pathlib
import runpy

BASE = runpy.run_path(str(pathlib.Path(__file__).parent / "cases.py"))
SIZES = {"gpt2": dict(batch=5, tokens=133), "llama": dict(batch=5, tokens=149),
         "llama-gqa": dict(batch=5, tokens=149)}
PREFIXES = {"prefix": dict(num_virtual_tokens=21),
            "projected": dict(num_virtual_tokens=21, prefix_projection=True,
                              encoder_hidden_size=200)}


def case(network, precision, attention, name, sizes):
    return dict(name=f"{network}-{precision}-{attention}-{name}", config=BASE["CONFIGS"][network],
                precision=precision, attention=attention, prefix=PREFIXES[name], **sizes)


CASES = [case(network, precision, attention, "prefix", sizes)
         for network, sizes in SIZES.items()
         for precision in ("fp32", "bf16", "amp-bf16")
         for attention in ("sdpa", "math")]
CASES += [case("llama", precision, "sdpa", "projected", SIZES["llama"])
          for precision in ("fp32", "bf16", "amp-bf16")]
# What stands before the prefix in other families: packed heads, norms of heads, learned positions.
CASES += [case(network, "bf16", "sdpa", "prefix", dict(batch=4, tokens=120))
          for network in ("qwen3", "phi3", "opt", "gpt_neox")]
