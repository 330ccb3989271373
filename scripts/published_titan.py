"""Rows of LLaMA 3 under torch's fully_shard, as torchtitan trains it; position embeddings' scaling aside."""
from published_models import LLAMA_KEY_HEADS, LLAMA_WORDS, llama_size


def refusal_of_titan(row):
    notes = str(row.get("notes", ""))
    if "compile" in notes or "loat8" in notes + str(row.get("precision", "")):
        return "torch.compile or float8"
    if row.get("recompute") not in (None, "none", "full"):
        return f"recomputation '{row['recompute']}'"
    if not llama_size(row):
        return f"no such model: {row.get('model')}"
    if (row.get("pp") or 1) > 1:
        return "pipeline stages of fully_shard"
    return None


def question_of_titan(row, write, cluster):
    layers, hidden, heads, ffn = llama_size(row)
    config = {"model_type": "llama", "num_hidden_layers": row.get("layers", layers), "hidden_size": hidden, "num_attention_heads": heads,
              "num_key_value_heads": LLAMA_KEY_HEADS, "intermediate_size": ffn, "vocab_size": LLAMA_WORDS,
              "max_position_embeddings": row["sequence"], "tie_word_embeddings": False}
    mesh = f"dp={row.get('fsdp') or row['gpus']},cp={row.get('cp') or 1},tp={row.get('tp') or 1}"
    strategy = "checkpoint" if row.get("recompute") == "full" else "vanilla"
    return ["compare", write(config), "-b", str(row["micro_batch"]), "-s", str(row["sequence"]), "--precision", "bf16", "--master-weights",
            "--optimizer-form", "fused", "--mesh", mesh, "--shard", "fsdp2", "--cluster", cluster, "--strategies", strategy,
            "--format", "json"] + (["--sp"] if row.get("sequence_parallel") else [])
