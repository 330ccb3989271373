"""Rows of LLaMA 3 under torch's fully_shard, torchtitan's by its own code; position embeddings' scaling aside."""
import json
import os
import re
import subprocess

from published_models import LLAMA_KEY_HEADS, LLAMA_WORDS, llama_size


STRATEGIES = {None: "vanilla", "none": "vanilla", "full": "checkpoint", "selective (per-op)": "checkpoint:op"}


def is_compiled(row):
    """Block by block, as torchtitan does it."""
    return "compile" in str(row.get("notes", ""))


def has_float8(row):
    return "loat8" in str(row.get("notes", "")) + str(row.get("precision", ""))


def framework_of_titan(row):
    """Whose code others ran is not said; transformers' is the default."""
    if row["source"].startswith("pytorch/torchtitan"):
        return ["--framework", "torchtitan-compiled" if is_compiled(row) else "torchtitan"]
    return ["--framework", "torch-compile-blocks-2.6"] if is_compiled(row) else []


def refusal_of_titan(row):
    if has_float8(row) and "rowwise" in str(row.get("precision", "")):
        return "float8 linears with factors by rows"
    if "async" in str(row.get("notes", "")).lower():
        return "products that are cut to run beside exchanges (async TP)"
    if has_float8(row) and (row.get("tp") or 1) > 1:
        return "float8 linears that tensor-parallel ranks gather codes for"
    if row.get("recompute") not in STRATEGIES:
        return f"recomputation '{row['recompute']}'"
    if not llama_size(row):
        return f"no such model: {row.get('model')}"
    if (row.get("pp") or 1) > 1:
        return "pipeline stages of fully_shard"
    return None


def device_of_titan(program, row, folder):
    """An H100 with the memory that the row says, or the cluster's own."""
    size = re.search(r"(\d+) GB", row["hardware"])
    if not size or size[1] == "80":
        return []
    text = subprocess.run([program, "devices", "h100", "--format", "json"], capture_output=True, text=True, check=True).stdout
    device = json.loads(text)
    figures = {"capacity": int(size[1]) * 10**9}
    if speed := re.search(r"([\d.]+) TB/s", row["hardware"]):
        figures["bytes_per_second"] = float(speed[1]) * 1e12
    for name, value in figures.items():
        device["figures"][name] = {"value": value, "kind": "datasheet", "source": row["hardware"]}
    path = os.path.join(folder, "device.json")
    with open(path, "w") as file:
        json.dump(device, file)
    return ["-d", path]


def question_of_titan(program, row, folder, write, cluster):
    layers, hidden, heads, ffn = llama_size(row)
    config = {"model_type": "llama", "num_hidden_layers": row.get("layers", layers), "hidden_size": hidden, "num_attention_heads": heads,
              "num_key_value_heads": LLAMA_KEY_HEADS, "intermediate_size": ffn, "vocab_size": LLAMA_WORDS,
              "max_position_embeddings": row["sequence"], "tie_word_embeddings": False}
    mesh = f"dp={row.get('fsdp') or row['gpus']},cp={row.get('cp') or 1},tp={row.get('tp') or 1}"
    return ["compare", write(config), "-b", str(row["micro_batch"]), "-s", str(row["sequence"]), "--precision", "bf16", "--master-weights",
            "--optimizer-form", "fused", "--mesh", mesh, "--shard", "fsdp2", "--cluster", cluster, "--strategies", STRATEGIES[row.get("recompute")],
            "--format", "json"] + device_of_titan(program, row, folder) + (["--sp"] if row.get("sequence_parallel") else []) + (
                framework_of_titan(row)) + (["--linears", "fp8"] if has_float8(row) else [])
