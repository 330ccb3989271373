# Adapters beside plain LoRA: rank-stabilized, with magnitudes (DoRA), and whole modules trained as copies.
import pathlib
import runpy

BASE = runpy.run_path(str(pathlib.Path(__file__).parent / "cases.py"))
CASES = []


def add(network, precision, label, *modules, dropout=0.0, **more):
    config = BASE["CONFIGS"][network]
    options = {key: more.pop(key) for key in ("use_rslora", "use_dora", "modules_to_save",
                                              "fan_in_fan_out") if key in more}
    CASES.append(dict(name=f"{network}-{precision}-{label}", config=config, precision=precision,
                      attention="sdpa", lora={**BASE["lora"](*modules, dropout=dropout), **options},
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
