# The steps of steps_titan.json, and of steps_titan_compiled.json (compiled.py --titan): LLaMA by torchtitan's own
# code (titan.py), whose blocks torchtitan checkpoints as a whole, by op, or not at all.
import pathlib
import runpy

BASE = runpy.run_path(str(pathlib.Path(__file__).parent / "cases.py"))
CONFIGS = {name: BASE["CONFIGS"][name] for name in ("llama", "llama-gqa")}
# Heads of a width that kernels take as it is, and sides of whole 128 bytes.
CONFIGS["llama-round"] = dict(model_type="llama", vocab_size=1999, hidden_size=256, num_hidden_layers=4,
                              num_attention_heads=8, num_key_value_heads=2, intermediate_size=640)
CHECKPOINTS = {"": {}, "-checkpoint": dict(checkpoint=True), "-op": dict(checkpoint="op")}


def step(name, precision, ending, words):
    config = {**CONFIGS[name], **({"vocab_size": words} if words else {})}
    return dict(name=f"{name}-{precision}{ending}{'-few-words' if words else ''}", network="torchtitan",
                config=config, precision=precision, attention="sdpa", batch=5, tokens=149 if name != "llama-round" else 160,
                **CHECKPOINTS[ending])


CASES = [step(name, precision, ending, words) for name in CONFIGS for precision in ("fp32", "bf16", "amp-bf16")
         for ending in CHECKPOINTS for words in (None, 61)]


def replica(name, ending, words, ranks):
    """One of ranks that share fp32 parameters and compute in bf16, as torchtitan trains."""
    case = step(name, "bf16", ending, words)
    return dict(case, name=f"{case['name']}-fsdp2-{ranks}", shard="fsdp2", ranks=ranks, master_weights=True,
                optimizer_form="fused")


# Of compiled blocks alone.
REPLICAS = [replica(name, ending, words, ranks) for name in ("llama", "llama-round") for ending in CHECKPOINTS
            for words, ranks in ((None, 8), (61, 8), (None, 2))]
