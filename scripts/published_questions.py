"""Published rows as questions to `tidemark compare`: for each source what is asked, or why nothing is."""
import json
import os
import re
import subprocess

from published_bridge import is_bridge, question_of_bridge, refusal_of_bridge
from published_models import HYBRID_OF_TESTS, megatron_model, nemotron_of_tests, padded, plain
from published_titan import question_of_titan, refusal_of_titan

# Hardware by how the row begins; the device has its capacity, which decides about nothing here.
CLUSTERS = [("h100", "dgx-h100"), ("dgx_h100", "dgx-h100"), ("a100", "dgx-a100"), ("dgx_a100", "dgx-a100"), ("h200", "dgx-h200"),
            ("b200", "dgx-b200"), ("dgx_gb200", "gb200-nvl72"), ("gb200", "gb200-nvl72")]
# Rows of GPTs of whose steps only the time is asked: what their buffers hold is Megatron-LM's own, what they compute is not.
TIMED_GPTS = ("vTrain", "arXiv 2205.05198", "arXiv 2104.04473")
# The functional tests' tokenizer is GPT-2's; Megatron-LM fills its words up to a multiple of 128 per tensor-parallel rank.
WORDS = 50257
# … of those whose model_config.yaml has a --vocab-size, which rows leave out: 131073 of NullTokenizer, which until April 2026 was told
# 131072 and counted the end of a document beside them.
WORDS_OF_TESTS = {"gpt/gpt3_7b_tp4_pp1_memory_speed": 131073, "gpt/gpt3_7b_tp1_pp4_memory_speed": 131073}
# --cp-comm-type.
CONTEXT_FORMS = {"p2p": "ring", "a2a": "all-to-all", "all_gather": "all-gather"}
# --moe-token-dispatcher-type.
EXPERT_FORMS = {"alltoall": "all-to-all", "allgather": "all-gather"}
# --fp8-recipe.
CODES = {"tensorwise": "fp8", "blockwise": "fp8-blockwise", "mxfp8": "mxfp8"}
# --optimizer.
OPTIMIZERS = {"adam": "adamw", "muon": "muon"}
# BERT's word pieces are bert-base-uncased's since the tests' data are made by tools/common_pile_dataset (febd25e, 2026-03-22).
WORDS_OF_BERT = 30522
# bert-large-cased's (the same folder's README.md), and the hundred that build_tokenizer() adds to them.
WORDS_OF_T5 = 28996 + 100
# … and, where a row leaves them out, --decoder-seq-length and --encoder-num-layers of all its tests but that of 11 B, which has 24.
WRITTEN_BY_T5, LAYERS_OF_T5 = 128, 12
# One node of the functional tests: their recipes take 8 GPUs, those named so 4.
NODE, SMALL_NODE = 8, 4


def is_timed_gpt(row):
    return row["source"].startswith(TIMED_GPTS) or "vTrain" in row["source"]


def is_megatron_test(row):
    return "Megatron-LM" in row["source"] and isinstance(row.get("notes"), dict) and "options" in row["notes"]


def is_bert(row):
    return row["model"].startswith("bert/")


def is_t5(row):
    return row["model"].startswith("t5/")


def is_hybrid(row):
    return row["model"].startswith("hybrid/hybrid_mr_mcore") or (is_megatron_test(row) and "hybrid-layer-pattern" in row["notes"]["options"])


def pattern_of(row):
    """Of a hybrid, without its stages."""
    return row["notes"]["options"].get("hybrid-layer-pattern", HYBRID_OF_TESTS).replace("|", "")


# … and the options of model_config.yaml that rows leave out, of tests by how their names begin.
OPTIONS_OF_TESTS = [
    ("gpt/gpt3_mcore_te_tp2_pp2_mla",
     {"q-lora-rank": 192, "kv-lora-rank": 64, "qk-head-dim": 16, "qk-pos-emb-head-dim": 8, "v-head-dim": 16}),
    ("moe/gpt3_moe_mcore_te_tp4_ep2_etp2_pp2_resume", {"moe-router-dtype": "fp32", "moe-shared-expert-intermediate-size": 512}),
    ("moe/gpt3_moe_mcore_te_ep8_resume", {"moe-router-dtype": "fp32"}),
]


def options_of(row):
    """Of a functional test: what the row has, and what it leaves out."""
    options = dict(row["notes"]["options"])
    for begin, more in OPTIONS_OF_TESTS:
        if row["model"].startswith(begin):
            options = more | options
    return options


def backend_of(row):
    """Less what model_config.yaml remarks behind it."""
    return row["notes"]["options"].get("attention-backend", "").split(" #")[0]


def ranks_of_expert(row):
    return row["notes"]["options"].get("expert-tensor-parallel-size", row["tp"])


def is_of_unknown_size(row):
    """A release's test, of which nothing says on how many GPUs it ran: at least on those of one replica. Only memory is compared: to
    that of a rank which keeps whole states replicas add nothing."""
    return is_megatron_test(row) and row["notes"].get("test_type") == "release" and not row.get("gpus")


def is_simumax(row):
    return "SimuMax" in row["source"]


def is_mosaic(row):
    return "llm-foundry" in row["source"]


def calibrations(rows):
    """Rows of one kind of GPU and program, with those few whose step times its rates are fitted to: of llm-foundry one wide and one
    narrow network at 2048 tokens and one at the longest sequence, on as few GPUs as there are; of vTrain's single nodes the first row of
    the smallest and of the largest micro-batch of each width, of which one waits for the host and one for the device; of SimuMax's node the
    shortest step of LLaMA on one tensor-parallel rank, of LLaMA on eight, of LLaMA at the longest sequence, and of the mixture. (name, rows,
    fitted) each; what is fitted to is not scored."""
    for hardware in sorted({row["hardware"] for row in rows if is_mosaic(row)}):
        group = [row for row in rows if is_mosaic(row) and row["hardware"] == hardware and not refusal_of(row)]
        group.sort(key=lambda row: row["gpus"])
        long = max((row for row in group if row["model"] == "mpt-1b"), key=lambda row: row["sequence"])
        picked = [next(row for row in group if row["model"] == model and row["sequence"] == 2048) for model in ("mpt-7b", "mpt-760m")]
        yield f"llm-foundry, {hardware}", group, picked + [long]
    group = [row for row in rows if "vTrain" in row["source"] and row["hardware"] == "A100 (one node)" and not refusal_of(row)]
    group.sort(key=lambda row: (row["hidden"], row["layers"], row["gpus"], row["micro_batch"]))
    widths = [[row for row in group if row["hidden"] == width] for width in sorted({row["hidden"] for row in group})]
    yield "vTrain, A100 (one node)", group, [end(rows, key=lambda row: row["micro_batch"]) for rows in widths for end in (min, max)]
    group = [row for row in rows if is_simumax(row) and not refusal_of(row)]
    shortest = sorted(group, key=lambda row: (row["global_batch"], row["sequence"]))
    yield "SimuMax, B200 (one node)", group, [next(row for row in shortest if is_one(row)) for is_one in (
        lambda row: "llama" in row["model"] and row["tp"] == 1 and row["cp"] == 1,
        lambda row: "llama" in row["model"] and row["tp"] == 8,
        lambda row: row["sequence"] == max(row["sequence"] for row in group),
        lambda row: "deepseek" in row["model"] and row["pp"] == 1)]


def refusal_of_mosaic(row):
    """Of a row of llm-foundry's benchmarks of MPT with FSDP1."""
    if "fp8" in row["precision"]:
        return "float8"
    if row["global_batch"] % (row["gpus"] * row["micro_batch"]):
        return "micro-batches of several sizes"
    return None


def refusal_of_gpt(row):
    """Of a row of TIMED_GPTS."""
    if "step_s" not in row and "model_tflops_per_gpu" not in row:
        return "a formula's result, no run"
    if row.get("recompute") not in ("none", "full", "selective"):
        return f"recomputation '{row.get('recompute')}'"
    if row["layers"] % (row.get("pp", 1) * (row.get("vpp") or 1)):
        return "uneven stages"
    return None


def context_form(row):
    """Of ranks that exchange heads; else keys and values are gathered."""
    notes = row.get("notes")
    is_of_heads = (row.get("cp") or 1) > 1 and isinstance(notes, dict) and "all-to-all" in notes.get("attention", "")
    return ["--cp-form", "all-to-all"] if is_of_heads else []


def is_vocabulary_known(row):
    if is_t5(row):
        return True
    if is_bert(row):  # … unless its values were recorded before, with a list that is not published
        return row["hardware"] != "dgx_a100" and (row["model"], row["hardware"]) != ("bert/bert_release_sm", "dgx_h100")
    is_usual = row["notes"].get("test_type") != "release" and row["hidden"] < 4096
    return is_usual or "vocab" in row or row["model"] in WORDS_OF_TESTS


def refusal_of_megatron(row):
    """Of a row of Megatron-LM's functional tests."""
    options = options_of(row)
    family = row["model"].split("/")[0]
    known = ("gpt", "gpt3", "bert", "nemotron", "t5", "moe", "mixtral")
    if family not in known and not row["model"].startswith("gpt") and not is_hybrid(row):
        return f"no such model: {family}"
    if "grpo" in row["model"]:
        return "reinforcement learning"
    if is_hybrid(row) and (row.get("cp") or 1) > 1:
        return "context ranks of state-space layers"
    if options.get("cp-comm-type", "p2p") not in CONTEXT_FORMS:
        return f"context ranks by '{options['cp-comm-type']}'"
    if ranks_of_expert(row) < row["tp"] and (row.get("ep") or 1) == 1:
        return "whole experts that no ranks share"
    if "native_fp8" in row["model"] or options.get("fp8-param-gather"):
        return "parameters that are stored in eight bits"
    if options.get("fp8-format") and options.get("fp8-recipe") not in CODES:
        return f"eight bits by the recipe '{options.get('fp8-recipe')}'"
    for option, what in [("use-megatron-fsdp", "Megatron-FSDP"),
                         ("defer-embedding-wgrad-compute", "a table whose gradient waits for the last backward"),
                         ("overlap-moe-expert-parallel-comm", "exchanges of visits that other micro-batches hide"),
                         ("fine-grained-activation-offloading", "offloading by module"),
                         ("cuda-graph-impl", "CUDA graphs")]:
        if options.get(option) not in (None, False, "none"):
            return what
    if options.get("multi-latent-attention") and "kv-lora-rank" not in options:
        return "latent attention whose widths the row does not state"
    if options.get("optimizer", "adam") not in OPTIMIZERS:
        return f"the optimizer '{options['optimizer']}'"
    if options.get("optimizer") == "muon" and options.get("use-distributed-optimizer"):
        return "matrices of Muon that are dealt out among ranks"
    if "uninstall_te" in row["model"]:
        return "what stands for Transformer Engine where it is not installed"
    if options.get("moe-token-dispatcher-type", "alltoall") not in EXPERT_FORMS:
        return f"tokens dispatched by '{options['moe-token-dispatcher-type']}'"
    if "op_fuser" in row["model"]:
        return "experts in fused operators"
    if "modelopt" in row["model"] or "distill" in row["model"]:
        return "distillation"
    if not is_vocabulary_known(row):
        return "a vocabulary that the row does not state"
    if is_of_unknown_size(row) and options.get("use-distributed-optimizer") and family == "mixtral":
        return "states cut among ranks whose number the row does not state"
    if row["hidden"] >= 4096:
        return None
    if options.get("pipeline-model-parallel-layout"):
        return "stages by a layout"
    without = ("none",) if is_hybrid(row) else ()
    if options.get("position-embedding-type", "learned_absolute") not in ("learned_absolute", "rope") + without:
        return f"positions '{options['position-embedding-type']}'"
    if row.get("recompute") not in ("none", "full"):
        return f"recomputation '{row.get('recompute')}'"
    if (row.get("cp") or 1) > 1 and backend_of(row) in ("unfused", "local"):
        return "context ranks without a fused kernel"
    if "memory_bytes" not in row or "global_batch" not in row:
        return "no memory, or no batch, is stated"
    return None


def refusal_of(row):
    """Why the row is no question that can be asked yet, or None."""
    if is_timed_gpt(row):
        return refusal_of_gpt(row)
    if is_megatron_test(row):
        return refusal_of_megatron(row)
    if is_simumax(row):
        return None if megatron_model(row) else f"no such model: {row['model']}"
    if is_mosaic(row):
        return refusal_of_mosaic(row)
    if "deepspeedai" in row["source"] and row.get("zero"):
        return "a formula's result, no run"
    if is_bridge(row):
        return refusal_of_bridge(row)
    if reason := refusal_of_titan(row):
        return reason
    if not any(row["hardware"].lower().startswith(begin) for begin, _ in CLUSTERS):
        return f"no such cluster: {row['hardware']}"
    return None


def cluster_of(program, row, folder):
    """The known one; vTrain's nodes have half of its cards."""
    if "4x200 Gb/s" in row["hardware"]:
        text = subprocess.run([program, "clusters", "dgx-a100", "--format", "json"], capture_output=True, text=True, check=True).stdout
        cluster = json.loads(text)
        cluster["figures"]["network_cards"] = {"value": 4, "kind": "datasheet", "source": row["hardware"]}
        path = os.path.join(folder, "four-cards.json")
        with open(path, "w") as file:
            json.dump(cluster, file)
        return path
    return next(name for begin, name in CLUSTERS if row["hardware"].lower().startswith(begin))


def written(config, folder):
    path = os.path.join(folder, "config.json")
    with open(path, "w") as file:
        json.dump(config, file)
    return path


def schedule_of(row):
    chunks = row.get("vpp") or 1
    return ["--schedule", f"interleaved:v={chunks}"] if chunks > 1 else []


def question_of_gpt(program, row, folder):
    """GPT-2's layer at the row's sizes with GELU in one kernel, scores in memory, 16-bit weights with fp32 copies: priced as bf16."""
    path = written({"model_type": "gpt2", "n_layer": row["layers"], "n_embd": row["hidden"], "n_head": row["heads"],
                    "n_inner": row["ffn"], "vocab_size": row.get("vocab", 51200), "n_positions": row["sequence"],
                    "activation_function": "gelu"}, folder)
    strategy = {"none": "vanilla", "full": "checkpoint", "selective": "checkpoint:selective"}[row["recompute"]]
    replicas = row.get("dp", 1)
    micro_batches = row["global_batch"] // (replicas * row["micro_batch"])
    mesh = f"pp={row.get('pp', 1)},dp={replicas},tp={row.get('tp', 1)}"
    return ["compare", path, "-b", str(row["micro_batch"]), "--accumulate", str(micro_batches), "-s", str(row["sequence"]),
            "--precision", "bf16", "--master-weights", "--optimizer-form", "fused", "--attention", "math", "--mesh", mesh,
            "--cluster", cluster_of(program, row, folder), "--strategies", strategy, "--format", "json"
            ] + schedule_of(row) + (["--sp"] if row.get("sequence_parallel") and row.get("tp", 1) > 1 else [])


def words_of(row):
    return row.get("vocab", WORDS_OF_TESTS.get(row["model"], WORDS))


def megatron_bert(row):
    """model_config.yaml of the releases has --bert-no-binary-head, which their rows leave out."""
    return {"model_type": "megatron-core-bert", "num_layers": row["layers"], "hidden_size": row["hidden"],
            "num_attention_heads": row["heads"], "vocab_size": padded(WORDS_OF_BERT, row["tp"]),
            "max_position_embeddings": row["notes"]["options"]["max-position-embeddings"],
            "bert_binary_head": "release" not in row["model"]}


def megatron_t5(row):
    options = row["notes"]["options"]
    layers = options.get("encoder-num-layers") or row.get("layers") or (24 if "11b" in row["model"] else LAYERS_OF_T5)
    config = {"model_type": "megatron-t5", "encoder_num_layers": layers, "decoder_num_layers": options.get("decoder-num-layers", layers),
              "hidden_size": row["hidden"], "num_attention_heads": row["heads"], "vocab_size": padded(WORDS_OF_T5, row["tp"]),
              "max_position_embeddings": options.get("max-position-embeddings", row["sequence"])}
    if "kv-channels" in options:
        config["kv_channels"] = options["kv-channels"]
    if "ffn" in row:
        config["ffn_hidden_size"] = row["ffn"]
    return config


def megatron_config(row):
    if is_bert(row):
        return megatron_bert(row)
    if is_t5(row):
        return megatron_t5(row)
    if is_hybrid(row):
        options, pattern = row["notes"]["options"], pattern_of(row)
        more = {key: options[key.replace("_", "-")] for key in ("mamba_num_heads", "mamba_head_dim", "mamba_state_dim", "mamba_num_groups",
                                                                "squared_relu") if key.replace("_", "-") in options}
        return megatron_gpt(row | {"layers": len(pattern.split("/")[0])}) | more | {
            "model_type": "megatron-hybrid", "hybrid_layer_pattern": pattern,
            "position_embedding_type": options.get("position-embedding-type", "learned_absolute")}
    if row["model"].startswith("nemotron/"):
        return nemotron_of_tests(row["model"]) | {"vocab_size": padded(words_of(row), row["tp"])}
    return megatron_gpt(row)


def megatron_gpt(row):
    options = options_of(row)
    config = {"model_type": "megatron-gpt", "num_layers": row["layers"], "hidden_size": row["hidden"],
              "num_attention_heads": row["heads"],
              "vocab_size": padded(words_of(row), row["tp"], options.get("make-vocab-size-divisible-by", 128)),
              "max_position_embeddings": options.get("max-position-embeddings", row["sequence"]),
              "add_bias_linear": not options.get("disable-bias-linear", False),
              "untie_embeddings_and_output_weights": options.get("untie-embeddings-and-output-weights", False),
              "swiglu": options.get("swiglu", False)}
    for key in ("normalization", "position_embedding_type", "num_query_groups", "kv_channels", "ffn_hidden_size",
                "hidden_dropout", "attention_dropout"):
        if key.replace("_", "-") in options:
            config[key] = options[key.replace("_", "-")]
    if options.get("multi-latent-attention"):
        config |= {"multi_latent_attention": True, "apply_rope_fusion": not options.get("no-rope-fusion", False)}
        for key in ("q_lora_rank", "kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim"):
            if key.replace("_", "-") in options:
                config[key] = options[key.replace("_", "-")]
    if "ffn" in row:
        config["ffn_hidden_size"] = row["ffn"]
    if options.get("qk-layernorm"):
        config["qk_layernorm"] = True
    if "num-experts" in options:
        config |= {"num_experts": options["num-experts"], "moe_router_topk": options.get("moe-router-topk", 2),
                   "moe_grouped_gemm": options.get("moe-grouped-gemm", False)}
        for key in ("moe_ffn_hidden_size", "moe_shared_expert_intermediate_size", "moe_router_dtype"):
            if key.replace("_", "-") in options:
                config[key] = options[key.replace("_", "-")]
        if "moe-layer-freq" in options:
            config["moe_layer_freq"] = have_experts(options["moe-layer-freq"])
    for key in ("mtp_num_layers", "mtp_use_repeated_layer"):
        if key.replace("_", "-") in options:
            config[key] = options[key.replace("_", "-")]
    return config


def have_experts(text):
    """By layer, of "([0]*1+[1]*15)"; or every n-th."""
    if isinstance(text, int):
        return text
    return [int(value) for value, times in re.findall(r"\[(\d)\]\*(\d+)", text) for _ in range(int(times))]


def megatron_schedule(row):
    """As the options deal layers out; the embedding and the loss count as one each where a test says so."""
    options, stages, layers = row["notes"]["options"], row["pp"], row.get("layers")
    if stages == 1:
        return []
    if is_hybrid(row):  # whose pattern says stages and chunks, both as long as the others
        chunks = re.search(r"_vpp(\d+)", row["model"])
        return ["--schedule", f"interleaved:v={chunks[1]}"] if chunks else []
    if "account_for_embedding" in row["model"]:
        chunks = options.get("num-virtual-stages-per-pipeline-rank", 1)
        each = (layers + 2) // (stages * chunks)
        counts = [each - 1] + [each] * (stages * chunks - 2) + [each - 1]
        return ["--schedule", f"interleaved:v={chunks},blocks={'-'.join(map(str, counts))}"]
    if "decoder-first-pipeline-num-layers" in options:
        first, last = options["decoder-first-pipeline-num-layers"], options["decoder-last-pipeline-num-layers"]
        between = (layers - first - last) // (stages - 2)
        return ["--schedule", "1f1b:blocks=" + "-".join(map(str, [first] + [between] * (stages - 2) + [last]))]
    per_chunk = options.get("num-layers-per-virtual-pipeline-stage")
    chunks = layers // stages // per_chunk if per_chunk else options.get("num-virtual-stages-per-pipeline-rank", 1)
    # model_config.yaml of the tests named so has groups of five, which their rows leave out.
    usual = 5 if "tunable_overlap" in row["model"] else None
    group = options.get("microbatch-group-size-per-virtual-pipeline-stage", usual)
    return ["--schedule", f"interleaved:v={chunks}" + (f",group={group}" if group else "")] if chunks > 1 else []


def megatron_sharding(row):
    options = row["notes"]["options"]
    parts = []
    if not options.get("use-distributed-optimizer"):
        parts.append("whole-states")
    if options.get("overlap-grad-reduce"):
        parts.append("overlap")
    is_narrow = {"fp16": not options.get("accumulate-allreduce-grads-in-fp32"), "bf16": options.get("grad-reduce-in-bf16")}
    if is_narrow.get(row["precision"]):
        parts.append("narrow-gradients")
    if options.get("no-gradient-accumulation-fusion"):
        parts.append("no-fusion")
    if "multi_dist_optimizer_instances" in row["model"]:
        parts.append("instances=2")
    return "megatron" + (":" + ",".join(parts) if parts else "")


def question_of_megatron(program, row, folder):
    """The last rank of a functional test, which writes the log."""
    options = row["notes"]["options"]
    gpus = row.get("gpus") or (SMALL_NODE if row["model"].endswith(("_1node", "_1N4G")) else NODE)
    context = row.get("cp") or 1
    replicas = row.get("dp") or max(1, gpus // (row["tp"] * row["pp"] * context))
    micro_batches = row["global_batch"] // (replicas * row["micro_batch"])
    is_local = options.get("transformer-impl", "transformer_engine") == "local"
    is_fixed = row["notes"].get("cublas_workspace") == ":4096:8"
    attention = "math" if is_local else {"unfused": "math", "local": "math", "flash": "flash"}.get(backend_of(row), "sdpa")
    mesh = f"pp={row['pp']},dp={replicas},cp={context},tp={row['tp']},ep={row.get('ep') or 1}"
    if ranks_of_expert(row) < row["tp"]:
        mesh += f",etp={ranks_of_expert(row)}"
    question = ["compare", written(megatron_config(row), folder), "-b", str(row["micro_batch"]), "--accumulate", str(micro_batches),
                "-s", str(row["sequence"]), "--precision", "bf16", "--master-weights",
                "--framework", "megatron-local" if is_local else "megatron-deterministic" if is_fixed else "megatron",
                "--attention", attention, "--mesh", mesh, "--shard", megatron_sharding(row), "--cluster",
                cluster_of(program, row, folder), "--strategies", "checkpoint" if row["recompute"] == "full" else "vanilla", "--format", "json"]
    if is_t5(row):
        question += ["--target-sequence", str(options.get("decoder-seq-length", WRITTEN_BY_T5))]
    question += megatron_schedule(row) + (["--linears", CODES[options["fp8-recipe"]]] if options.get("fp8-format") else [])
    if options.get("optimizer", "adam") != "adam":
        question += ["--optimizer", OPTIMIZERS[options["optimizer"]]]
    if options.get("cross-entropy-loss-fusion"):
        question += ["--loss", "fused" if options.get("cross-entropy-fusion-impl") == "te" else "native"]
    if context > 1:
        question += ["--cp-form", CONTEXT_FORMS[options.get("cp-comm-type", "p2p")]]
    if options.get("moe-token-dispatcher-type") == "allgather":
        question += ["--ep-form", "all-gather"]
    if row["pp"] > 1:
        question += ["--rank", f"pp{row['pp'] - 1}"]
    return question + (["--sp"] if row["sequence_parallel"] and row["tp"] > 1 else [])


def fused_loss(text):
    """SimuMax's docs/strategy.md: its "cross-entropy fusion" is --cross-entropy-fusion-impl te."""
    return ["--loss", "fused"] if "cross-entropy fusion" in text else []


def question_of_simumax(program, row, folder):
    """LLaMA 3's layer without dropout, or DeepSeek's; the tightest rank."""
    config = megatron_model(row)
    if plain(row["model"]) == "deepseekv3":
        config["first_k_dense_replace"] = 1  # as their summary says
    path = written(config, folder)
    mesh = ",".join(f"{axis}={row.get(axis) or 1}" for axis in ("pp", "dp", "cp", "tp", "ep"))
    return ["compare", path, "-b", str(row["micro_batch"]), "--accumulate", str(row["grad_accumulation"]), "-s", str(row["sequence"]),
            "--precision", "bf16", "--master-weights", "--framework", "megatron", "--mesh", mesh, "--shard",
            "megatron" if row["zero"] else "megatron:whole-states", "--cluster", cluster_of(program, row, folder), "--strategies",
            "vanilla", "--format", "json"] + context_form(row) + fused_loss(row["notes"].get("framework", "")) + (
                ["--sp"] if row["sequence_parallel"] and row["tp"] > 1 else [])


def question_of_mosaic(program, row, folder):
    """MPT as GPT-2's layer without dropout: its biases and positions take little. Reductions are in fp32, as of mixed precision DEFAULT."""
    path = written({"model_type": "gpt2", "n_layer": row["layers"], "n_embd": row["hidden"], "n_head": row["heads"],
                    "n_inner": row["ffn"], "vocab_size": row["vocab"], "n_positions": row["sequence"],
                    "activation_function": "gelu", "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}, folder)
    return ["compare", path, "-b", str(row["micro_batch"]), "--accumulate", str(row["global_batch"] // (row["gpus"] * row["micro_batch"])),
            "-s", str(row["sequence"]), "--precision", "bf16", "--master-weights", "--optimizer-form", "fused", "--attention", "sdpa",
            "--gpus", str(row["gpus"]), "--shard", "fsdp1" if row["zero"] == 3 else "fsdp1:no-reshard",
            "--cluster", cluster_of(program, row, folder), "--strategies", "checkpoint" if row["recompute"] == "full" else "vanilla",
            "--format", "json"]


def question_of(program, row, folder):
    if is_timed_gpt(row):
        return question_of_gpt(program, row, folder)
    if is_megatron_test(row):
        return question_of_megatron(program, row, folder)
    if is_simumax(row):
        return question_of_simumax(program, row, folder)
    if is_mosaic(row):
        return question_of_mosaic(program, row, folder)
    if is_bridge(row):
        return question_of_bridge(row, lambda config: written(config, folder))
    return question_of_titan(program, row, folder, lambda config: written(config, folder), cluster_of(program, row, folder))
