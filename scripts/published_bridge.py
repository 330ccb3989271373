"""Rows of Megatron-Bridge's tables. What its recipes have in common (src/megatron/bridge/perf_recipes of the release): the distributed
optimizer with overlap, gradients reduced in bf16, --sp beside tensor parallelism, experts whole on each rank and their loads forced to be
equal. Some recover norms and activations, which takes little time; only time is compared. Megatron-FSDP is asked as torch's fully_shard:
it gathers and scatters as much, layer by layer."""
from published_models import layers_of, megatron_model

CLUSTERS = [("dgx-gb300", "gb300-nvl72"), ("dgx-gb200", "gb200-nvl72"), ("dgx-b300", "dgx-b300"), ("dgx-b200", "dgx-b200"),
            ("dgx-h100", "dgx-h100")]


def is_bridge(row):
    return "Megatron-Bridge" in row["source"]


def refusal_of_bridge(row):
    text = f"{row['where']} {row['model']} {row.get('notes', '')}".lower()
    if megatron_model(row) is None:
        return f"no such model: {row['model']}"
    if not row["precision"].lower().startswith(("bf16", "fp8", "mxfp8", "nvfp4")):
        return f"products in {row['precision']}"
    if row.get("fsdp") and (row.get("pp") or 1) > 1:
        return "pipeline stages of Megatron-FSDP"
    if "w/ mtp" in text:
        return "prediction of several tokens"
    if "sft" in text or "lora" in text:
        return "fine-tuning, whose data the row does not state"
    if not any(row["hardware"].lower() == begin for begin, _ in CLUSTERS):
        return f"no such cluster: {row['hardware']}"
    return None


def dealt_out(layers, chunks):
    """Layers of each chunk: as many of each; where that leaves some over, the embedding and the loss count as one each; or as many as
    are needed of each from the first on, as DeepSeek's layouts have it."""
    if layers % chunks == 0:
        return None
    if (layers + 2) % chunks == 0:
        each = (layers + 2) // chunks
        return [each - 1] + [each] * (chunks - 2) + [each - 1]
    each = (layers + chunks - 1) // chunks
    return [max(0, min(each, layers - each * i)) for i in range(chunks)]


def schedule_of_bridge(row, layers):
    stages, chunks = row.get("pp") or 1, row.get("vpp") or 1
    if stages == 1:
        return []
    parts = [f"v={chunks}"] if chunks > 1 else []
    if counts := dealt_out(layers, stages * chunks):
        parts.append("blocks=" + "-".join(map(str, counts)))
    kind = "interleaved" if chunks > 1 else "1f1b"
    return ["--schedule", kind + (":" + ",".join(parts) if parts else "")]


def linears_of_bridge(row):
    """FP8 and FP8-CS are current scaling, FP8-MX is MXFP8; of two the first is the row's."""
    precision = row["precision"].lower().split()[0]
    if precision == "bf16":
        return []
    if precision == "nvfp4" and row["model"] == "Nemotron_3_Super":
        precision = "nvfp4:last=14"  # nemotron_3_super_bf16_with_nvfp4_mixed
    return ["--linears", precision.replace("fp8-mx", "mxfp8").replace("fp8-cs", "fp8")]


def overlap_of_bridge(row):
    """tp_comm_overlap, which recipes leave out of LLaMA's steps in four bits only."""
    if (row.get("tp") or 1) == 1:
        return []
    is_left_out = row["precision"] == "NVFP4" and "llama" in row["model"].lower()
    return ["--sp"] if is_left_out else ["--sp", "--tp-overlap"]


def question_of_bridge(row, write):
    config = megatron_model(row)
    mesh = ",".join(f"{axis}={row.get(axis) or 1}" for axis in ("pp", "dp", "cp", "tp", "ep"))
    if (row.get("ep") or 1) > 1:
        mesh += ",etp=1"
    cluster = next(name for begin, name in CLUSTERS if row["hardware"].lower() == begin)
    return ["compare", write(config), "-b", str(row["micro_batch"]), "--accumulate",
            str(row["global_batch"] // (row["dp"] * row["micro_batch"])), "-s", str(row["sequence"]), "--precision", "bf16",
            "--master-weights", "--framework", "megatron", "--mesh", mesh, "--shard", "fsdp2" if row.get("fsdp") else "megatron:overlap,narrow-gradients",
            "--cluster", cluster, "--strategies", "vanilla", "--format", "json"
            ] + linears_of_bridge(row) + schedule_of_bridge(row, layers_of(config)) + overlap_of_bridge(row)
