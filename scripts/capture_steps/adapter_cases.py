# Adapters beside plain LoRA: rank-stabilized, with magnitudes (DoRA), and whole modules trained as copies.
# And LoRA under each model's own checkpointing, with the gradients that peft's users ask for behind the embedding.
import pathlib
import runpy

BASE = runpy.run_path(str(pathlib.Path(__file__).parent / "cases.py"))
CASES = []


def add(network, precision, label, *modules, dropout=0.0, **more):
    config = BASE["CONFIGS"][network]
    options = {key: more.pop(key) for key in ("use_rslora", "use_dora", "modules_to_save",
                                              "fan_in_fan_out") if key in more}
    CASES.append(dict(name=f"{network}-{precision}-{label}", config=config, precision=precision,
                      attention=more.pop("attention", "sdpa"),
                      lora={**BASE["lora"](*modules, dropout=dropout), **options},
                      **{**BASE["SIZES"][config["model_type"]], **more}))


LINEARS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
for PRECISION in ("fp32", "bf16", "amp-bf16"):
    add("llama", PRECISION, "dora", "q_proj", "v_proj", use_dora=True)
    add("llama", PRECISION, "saved-head", "q_proj", "v_proj", modules_to_save=["lm_head"])
    add("llama-gqa", PRECISION, "saved-both", "q_proj", "v_proj",
        modules_to_save=["embed_tokens", "lm_head"])
    add("llama-gqa", PRECISION, "dora-all", *LINEARS, dropout=0.1, use_dora=True)
add("llama", "bf16", "rslora", "q_proj", "v_proj", use_rslora=True)
add("gpt2", "bf16", "dora", "c_attn", use_dora=True, fan_in_fan_out=True)
add("bert", "amp-bf16", "dora", "query", "value", use_dora=True)
add("llama-gqa", "bf16", "dora-16", "q_proj", "v_proj", use_dora=True,
    peft=dict(autocast_adapter_dtype=False))
add("llama", "bf16", "dora-checkpoint", "q_proj", "v_proj", use_dora=True, checkpoint=True)
for MODULE in ("lm_head", "embed_tokens"):  # of a tied pair: the copy ends the sharing
    add("qwen2", "bf16", f"saved-{MODULE}", "q_proj", "v_proj", modules_to_save=[MODULE])

for NETWORK, CLASS, HEAD, *TARGETS in (
        ("bert", "BertForSequenceClassification", "classifier", "query", "value"),
        ("llama", "LlamaForSequenceClassification", "score", "q_proj", "v_proj")):
    add(NETWORK, "bf16", HEAD, *TARGETS, modules_to_save=[HEAD], **{"class": CLASS})
    CASES[-1]["config"] = {**CASES[-1]["config"], "architectures": [CLASS], "pad_token_id": 0}

for NETWORK, PRECISION, *TARGETS in (
        ("bert", "bf16", "query", "value"), ("bert", "amp-bf16", "query", "value"),
        ("distilbert", "bf16", "q_lin", "v_lin"), ("gpt2", "bf16", "c_attn"),
        ("gpt2", "amp-bf16", "c_attn"), ("llama", "bf16", "q_proj", "v_proj"),
        ("llama", "amp-bf16", "q_proj", "v_proj"), ("phi3", "amp-bf16", "qkv_proj"),
        ("opt", "amp-bf16", "q_proj", "v_proj"), ("t5", "bf16", "q", "v"),
        ("vit", "bf16", "query", "value"), ("dinov2", "amp-bf16", "query", "value")):
    ATTENTION = "math" if NETWORK == "t5" else "sdpa"
    SAVED = dict(modules_to_save=["classifier"]) if NETWORK in ("vit", "dinov2") else {}
    add(NETWORK, PRECISION, "checkpoint", *TARGETS, checkpoint=True, attention=ATTENTION, **SAVED)
