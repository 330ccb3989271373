# Losses by chunks, and bases in four and eight bits. Needs bitsandbytes==0.50.2.
import pathlib
import runpy

BASE = runpy.run_path(str(pathlib.Path(__file__).parent / "cases.py"))
SIZES = {"gpt2": dict(batch=5, tokens=133), "llama": dict(batch=5, tokens=149),
         "llama-gqa": dict(batch=5, tokens=149)}
CASES = []


def add(network, precision, label, **more):
    CASES.append(dict(name=f"{network}-{precision}-{label}", config=BASE["CONFIGS"][network],
                      precision=precision, attention="sdpa", **SIZES[network], **more))


for PRECISION in ("fp32", "bf16", "amp-bf16"):
    for CHUNKS in (1, 4, 7):
        add("llama", PRECISION, f"chunked-{CHUNKS}", loss=f"chunked:{CHUNKS}")
add("gpt2", "bf16", "chunked-8", loss="chunked:8")
for NETWORK in ("llama", "llama-gqa"):
    for STORED in ("nf4", "nf4-double", "int8"):
        add(NETWORK, "bf16", STORED, base=STORED, lora=BASE["lora"]("q_proj", "v_proj"))
    add(NETWORK, "bf16", "nf4-double-all", base="nf4-double",
        lora=BASE["lora"]("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
                          "down_proj", dropout=0.1))
    add(NETWORK, "amp-bf16", "nf4-double", base="nf4-double",
        lora=BASE["lora"]("q_proj", "v_proj"))
