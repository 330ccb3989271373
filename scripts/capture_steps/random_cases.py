# The steps of steps_by_chance.json: what the dice give of families, sizes, fields of a config, precisions, attention,
# adapters, heads, checkpointing and optimizers, so that what nobody thought of is compared, too.
import os
import random

SEED = int(os.environ.get("SEED", "11"))
COUNT = int(os.environ.get("COUNT", "60"))
LINEARS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def decoder(dice, **fields):
    """The fields that most decoders have under these names."""
    heads = dice.choice((2, 3, 4, 6, 8))
    width = heads * dice.choice((16, 24, 32, 40, 48, 64))
    keys = dice.choice([n for n in (1, 2, heads // 2, heads) if n and heads % n == 0])
    return dict(vocab_size=dice.randrange(300, 4000), hidden_size=width,
                num_hidden_layers=dice.randrange(2, 5), num_attention_heads=heads,
                num_key_value_heads=keys, intermediate_size=dice.randrange(width, 4 * width, 2),
                tie_word_embeddings=dice.random() < 0.4, pad_token_id=0,
                **{key: dice.choice(values) for key, values in fields.items()})


def encoder(dice, **fields):
    heads = dice.choice((2, 3, 4, 6))
    width = heads * dice.choice((16, 24, 32, 40, 48, 64))
    return dict(hidden_size=width, num_hidden_layers=dice.randrange(2, 5), num_attention_heads=heads,
                intermediate_size=dice.randrange(width, 4 * width, 2),
                **{key: dice.choice(values) for key, values in fields.items()})


def of_words(dice, **fields):
    return dict(vocab_size=dice.randrange(300, 4000), max_position_embeddings=520,
                hidden_dropout_prob=dice.choice((0.0, 0.1)),
                attention_probs_dropout_prob=dice.choice((0.0, 0.1)), **encoder(dice, **fields))


def of_images(dice, **fields):
    patch = dice.choice((8, 14, 16))
    return dict(image_size=patch * dice.randrange(4, 9), patch_size=patch, **encoder(dice, **fields))


def gpt2(dice):
    heads = dice.choice((2, 3, 4, 6))
    return dict(vocab_size=dice.randrange(300, 4000), n_embd=heads * dice.choice((24, 32, 48, 64)),
                n_layer=dice.randrange(2, 5), n_head=heads, n_positions=520,
                attn_pdrop=dice.choice((0.0, 0.1)), resid_pdrop=dice.choice((0.0, 0.1)),
                embd_pdrop=dice.choice((0.0, 0.1)))


def opt(dice):
    heads = dice.choice((2, 3, 4, 6))
    width = heads * dice.choice((24, 32, 48, 64))
    return dict(vocab_size=dice.randrange(300, 4000), hidden_size=width, word_embed_proj_dim=width,
                num_hidden_layers=dice.randrange(2, 5), num_attention_heads=heads,
                ffn_dim=dice.randrange(width, 4 * width, 2), max_position_embeddings=520,
                dropout=dice.choice((0.0, 0.1)), attention_dropout=dice.choice((0.0, 0.1)))


def falcon(dice):
    heads = dice.choice((2, 4, 6))
    keys = dice.choice(({}, dict(num_kv_heads=2, new_decoder_architecture=True),
                        dict(parallel_attn=False, multi_query=False)))
    return dict(vocab_size=dice.randrange(300, 4000), hidden_size=heads * dice.choice((24, 32, 64)),
                num_hidden_layers=dice.randrange(2, 5), num_attention_heads=heads, **keys)


def distilbert(dice):
    heads = dice.choice((2, 3, 4, 6))
    width = heads * dice.choice((24, 32, 48, 64))
    return dict(vocab_size=dice.randrange(300, 4000), dim=width, n_layers=dice.randrange(2, 5),
                n_heads=heads, hidden_dim=dice.randrange(width, 4 * width, 2),
                max_position_embeddings=520, dropout=dice.choice((0.0, 0.1)))


def t5(dice):
    heads = dice.choice((2, 3, 4, 6))
    width = heads * dice.choice((24, 32, 48, 64))
    return dict(vocab_size=dice.randrange(300, 4000), d_model=width, d_kv=dice.choice((24, 40, 64)),
                num_heads=heads, d_ff=dice.randrange(width, 4 * width, 2),
                num_layers=dice.randrange(1, 4), num_decoder_layers=dice.randrange(1, 4),
                feed_forward_proj=dice.choice(("relu", "gated-gelu")),
                dropout_rate=dice.choice((0.0, 0.1)), tie_word_embeddings=dice.random() < 0.5,
                decoder_start_token_id=0)


def bart(dice):
    heads = dice.choice((2, 3, 4, 6))
    width = heads * dice.choice((24, 32, 48, 64))
    return dict(vocab_size=dice.randrange(300, 4000), d_model=width,
                encoder_layers=dice.randrange(1, 4), decoder_layers=dice.randrange(1, 4),
                encoder_attention_heads=heads, decoder_attention_heads=heads,
                encoder_ffn_dim=dice.randrange(width, 4 * width, 2),
                decoder_ffn_dim=dice.randrange(width, 4 * width, 2), max_position_embeddings=520,
                dropout=dice.choice((0.0, 0.1)), attention_dropout=dice.choice((0.0, 0.1)))


def whisper(dice):
    return dict(bart(dice), num_mel_bins=dice.choice((40, 80)),
                max_source_positions=dice.randrange(80, 200), max_target_positions=520,
                pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)


def modernbert(dice):
    heads = dice.choice((2, 3, 4, 6))
    return dict(vocab_size=dice.randrange(300, 4000), hidden_size=heads * dice.choice((32, 48, 64)),
                num_hidden_layers=dice.randrange(2, 6), num_attention_heads=heads,
                intermediate_size=dice.randrange(100, 700, 2), max_position_embeddings=520,
                local_attention=dice.choice((32, 64)), pad_token_id=0,
                global_attn_every_n_layers=dice.choice((2, 3)), mlp_dropout=dice.choice((0.0, 0.1)))


def deberta(dice):
    return dict(of_words(dice), relative_attention=True, position_buckets=dice.choice((32, 64)),
                norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type="p2c|c2p",
                position_biased_input=False, max_relative_positions=-1, type_vocab_size=0)


def experts(dice, **fields):
    return dict(decoder(dice), num_experts=dice.randrange(4, 9), num_experts_per_tok=2, **fields)


def deepseek(dice):
    sizes = decoder(dice)
    sizes["num_key_value_heads"] = sizes["num_attention_heads"]
    return dict(sizes, moe_intermediate_size=dice.randrange(60, 200, 2), n_routed_experts=8,
                n_shared_experts=dice.choice((1, 2)), num_experts_per_tok=2, first_k_dense_replace=1,
                kv_lora_rank=48, q_lora_rank=dice.choice((None, 64)), qk_nope_head_dim=32,
                qk_rope_head_dim=16, v_head_dim=32, n_group=4, topk_group=2)


def swin(dice):
    heads = dice.choice(([2, 4], [2, 4, 8], [3, 6, 12]))
    return dict(embed_dim=heads[0] * dice.choice((16, 24)), num_heads=heads,
                depths=[dice.choice((2, 2, 3)) for _ in heads], window_size=dice.choice((4, 7)),
                image_size=dice.choice((96, 112, 128)), patch_size=4,
                hidden_dropout_prob=dice.choice((0.0, 0.1)), drop_path_rate=dice.choice((0.0, 0.1)))


def pvt(dice, **fields):
    width = dice.choice((16, 24, 32))
    return dict(fields, strides=[4, 2, 2], hidden_sizes=[width, 2 * width, 4 * width], depths=[dice.randrange(1, 3) for _ in "123"],
                num_attention_heads=[1, 2, 4], mlp_ratios=[4, 4, 4], num_encoder_blocks=3,
                image_size=dice.choice((96, 128)), hidden_dropout_prob=dice.choice((0.0, 0.1)))


PACKED = ("query", "value"), ("query", "key", "value", "dense")
SEPARATE = ("q_proj", "v_proj"), LINEARS
# Each: its model_type, its dice, what adapters are put beside, the classes of heads it may have.
CAUSAL = ("ForCausalLM", "ForSequenceClassification", "ForTokenClassification")
WORDS = ("ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
FAMILIES = {
    "gpt2": ("GPT2", gpt2, (("c_attn",), ("c_attn", "c_proj", "c_fc")), ("LMHeadModel", *CAUSAL[1:])),
    "llama": ("Llama", lambda d: decoder(d, attention_bias=(False, True), mlp_bias=(False, True),
                                         attention_dropout=(0.0, 0.0, 0.1)), SEPARATE, CAUSAL),
    "mistral": ("Mistral", lambda d: decoder(d, sliding_window=(None, 64, 4096)), SEPARATE, CAUSAL),
    "qwen2": ("Qwen2", decoder, SEPARATE, CAUSAL),
    "qwen3": ("Qwen3", lambda d: decoder(d, head_dim=(32, 48, 64)), SEPARATE, CAUSAL),
    "gemma": ("Gemma", lambda d: decoder(d, head_dim=(32, 48, 64)), SEPARATE, CAUSAL),
    "gemma2": ("Gemma2", lambda d: decoder(d, head_dim=(32, 64), sliding_window=(64, 4096)), SEPARATE,
               CAUSAL),
    "gemma3_text": ("Gemma3", lambda d: decoder(d, head_dim=(32, 64), sliding_window=(64, 4096)),
                    SEPARATE, CAUSAL[:1]),
    "phi": ("Phi", lambda d: decoder(d, resid_pdrop=(0.0, 0.1), partial_rotary_factor=(0.5,)),
            (("q_proj", "v_proj"), ("q_proj", "k_proj", "v_proj", "dense", "fc1", "fc2")), CAUSAL),
    "phi3": ("Phi3", lambda d: decoder(d, resid_pdrop=(0.0, 0.1)),
             (("qkv_proj",), ("qkv_proj", "o_proj", "gate_up_proj", "down_proj")), CAUSAL),
    "gpt_neox": ("GPTNeoX", lambda d: decoder(d, use_parallel_residual=(False, True),
                                              hidden_dropout=(0.0, 0.1), rotary_pct=(0.25, 1.0)),
                 (("query_key_value",), ("query_key_value", "dense")), CAUSAL),
    "opt": ("OPT", opt, (("q_proj", "v_proj"), ("q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2")),
            CAUSAL[:2]),
    "stablelm": ("StableLm", lambda d: decoder(d, use_qkv_bias=(False, True),
                                               use_parallel_residual=(False, True),
                                               qk_layernorm=(False, True)), SEPARATE, CAUSAL),
    "olmo2": ("Olmo2", decoder, SEPARATE, CAUSAL[:1]),
    "starcoder2": ("Starcoder2", lambda d: decoder(d, residual_dropout=(0.0, 0.1)),
                   (("q_proj", "v_proj"), ("q_proj", "k_proj", "v_proj", "o_proj", "c_fc", "c_proj")),
                   CAUSAL),
    "mixtral": ("Mixtral", lambda d: dict(decoder(d), num_local_experts=d.randrange(3, 7)),
                (("q_proj", "v_proj"), ("q_proj", "k_proj", "v_proj", "o_proj")), CAUSAL[:1]),
    "qwen2_moe": ("Qwen2Moe", lambda d: experts(d, moe_intermediate_size=d.randrange(60, 200, 2),
                                                shared_expert_intermediate_size=d.randrange(60, 400, 2)),
                  SEPARATE[:1], CAUSAL[:1]),
    "qwen3_moe": ("Qwen3Moe", lambda d: experts(d, moe_intermediate_size=d.randrange(60, 200, 2),
                                                head_dim=40), SEPARATE[:1], CAUSAL[:1]),
    "olmoe": ("Olmoe", experts, SEPARATE[:1], CAUSAL[:1]),
    "deepseek_v2": ("DeepseekV2", lambda d: dict(deepseek(d), topk_method="group_limited_greedy"),
                    (("kv_b_proj",),), CAUSAL[:1]),
    "deepseek_v3": ("DeepseekV3", deepseek, (("kv_b_proj",),), CAUSAL[:1]),
    "falcon": ("Falcon", falcon, (("query_key_value",), ("query_key_value", "dense")), CAUSAL),
    "bert": ("Bert", of_words, PACKED, WORDS),
    "roberta": ("Roberta", of_words, PACKED, WORDS),
    "xlm-roberta": ("XLMRoberta", of_words, PACKED, WORDS),
    "camembert": ("Camembert", of_words, PACKED, WORDS),
    "electra": ("Electra", lambda d: dict(of_words(d), embedding_size=d.choice((64, 96))), PACKED, WORDS),
    "distilbert": ("DistilBert", distilbert, (("q_lin", "v_lin"), ("q_lin", "k_lin", "v_lin", "out_lin")),
                   WORDS),
    "modernbert": ("ModernBert", modernbert, (("Wqkv",), ("Wqkv", "Wo", "Wi")), WORDS),
    "deberta-v2": ("DebertaV2", deberta, (("query_proj", "value_proj"),), WORDS),
    "t5": ("T5", t5, (("q", "v"), ("q", "k", "v", "o", "wi", "wo")), ("ForConditionalGeneration",)),
    "bart": ("Bart", bart, (("q_proj", "v_proj"), ("q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2")),
             ("ForConditionalGeneration",)),
    "whisper": ("Whisper", whisper, (("q_proj", "v_proj"),), ("ForConditionalGeneration",)),
    "vit": ("ViT", lambda d: of_images(d, hidden_dropout_prob=(0.0, 0.1)), PACKED, ("ForImageClassification",)),
    "deit": ("DeiT", of_images, PACKED, ("ForImageClassification",)),
    "dinov2": ("Dinov2", lambda d: of_images(d, use_swiglu_ffn=(False, True), drop_path_rate=(0.0, 0.1)),
               PACKED[:1], ("ForImageClassification",)),
    "beit": ("Beit", lambda d: of_images(d, use_relative_position_bias=(False, True),
                                         use_mean_pooling=(False, True)), PACKED, ("ForImageClassification",)),
    "swin": ("Swin", swin, PACKED, ("ForImageClassification",)),
    "pvt": ("Pvt", lambda d: pvt(d, patch_sizes=[4, 2, 2], sequence_reduction_ratios=[4, 2, 1]), PACKED[:1], ("ForImageClassification",)),
    "pvt_v2": ("PvtV2", lambda d: pvt(d, patch_sizes=[7, 3, 3], sr_ratios=[4, 2, 1]), PACKED[:1], ("ForImageClassification",)),
    "vit_mae": ("ViTMAE", lambda d: dict(of_images(d), decoder_hidden_size=96, decoder_num_hidden_layers=2,
                                         decoder_num_attention_heads=4, decoder_intermediate_size=350),
                PACKED[:1], ("ForPreTraining",)),
    "clip_text_model": ("CLIPText", lambda d: dict(encoder(d), vocab_size=1823, max_position_embeddings=300),
                        (("q_proj", "v_proj"),), ("Model",)),
    "clip_vision_model": ("CLIPVision", of_images, (("q_proj", "v_proj"),), ("Model",)),
    "siglip_text_model": ("SiglipText", lambda d: dict(encoder(d), vocab_size=1823,
                                                       max_position_embeddings=300),
                          (("q_proj", "v_proj"),), ("Model",)),
    "siglip_vision_model": ("SiglipVision", of_images, (("q_proj", "v_proj"),), ("Model",)),
}
EAGER = ("deberta-v2", "swin", "pvt", "pvt_v2", "t5", "electra")
OF_IMAGES = ("vit", "deit", "dinov2", "beit", "swin", "pvt", "pvt_v2", "vit_mae", "clip_vision_model",
             "siglip_vision_model")


def trained_head(kind, name):
    """What peft's task types train beside adapters."""
    if "QuestionAnswering" in name:
        return "classifier" if kind == "modernbert" else "qa_outputs"
    scores = FAMILIES[kind][3] == CAUSAL or kind in ("gpt2", "opt")
    return "score" if scores and not (kind in ("gpt2", "falcon") and "Token" in name) else "classifier"


def drawn(dice, number):
    kind = dice.choice(list(FAMILIES))
    stem, make, targets, heads = FAMILIES[kind]
    config = dict(model_type=kind, **make(dice))
    case = dict(name="", config=config, precision=dice.choice(("fp32", "amp-bf16", "bf16", "amp-fp16")),
                attention="math" if kind in EAGER or dice.random() < 0.3 else "sdpa",
                batch=dice.randrange(1, 9))
    if case["precision"].startswith("amp") and "tie_word_embeddings" in config:
        config["tie_word_embeddings"] = False  # see tied_cases.py
    label = [kind, case["precision"], case["attention"]]
    if kind in OF_IMAGES:
        config["num_labels"] = dice.randrange(3, 200)
        case["batch"] = dice.randrange(2, 30)
        if kind in ("vit_mae", "clip_vision_model", "siglip_vision_model"):
            del config["num_labels"]
    elif kind != "whisper":
        case["tokens"] = dice.randrange(33, 290)
    if kind in ("t5", "bart", "whisper"):
        case["target_tokens"] = dice.randrange(17, 200)
    if dice.random() < 0.3 and len(heads) > 1:
        ending = dice.choice(heads[1:])
        case["class"] = stem + ending
        config.update(architectures=[case["class"]], pad_token_id=0)
        if ending != "ForQuestionAnswering":
            config["num_labels"] = dice.randrange(2, 30)
        label.append(ending[3:])
    if dice.random() < 0.4:
        case["lora"] = dict(r=dice.choice((4, 8, 16, 64)), lora_alpha=16,
                            lora_dropout=dice.choice((0.0, 0.0, 0.05)),
                            target_modules=list(dice.choice(targets)))
        if kind == "gpt2":
            case["lora"]["fan_in_fan_out"] = True
        if config.get("num_labels") or "QuestionAnswering" in case.get("class", ""):
            case["lora"]["modules_to_save"] = [trained_head(kind, case.get("class", ""))]
        label.append("lora")
    # PVT's class has no checkpointing; peft's hook fails on what these two's embeddings return.
    has_none = kind == "pvt" or ("lora" in case and kind in ("beit", "pvt_v2"))
    if dice.random() < 0.35 and not has_none:
        case["checkpoint"] = True
        label.append("checkpoint")
    if dice.random() < 0.15 and "tokens" in case:
        case["padded"] = True
        label.append("padded")
    if dice.random() < 0.3:
        case["optimizer"] = dice.choice(("sgd", "sgd-momentum", "adagrad", "rmsprop", "adafactor"))
        label.append(case["optimizer"])
    elif dice.random() < 0.3:
        case["optimizer_form"] = dice.choice(("for-loop", "fused"))
        label.append(case["optimizer_form"])
    if dice.random() < 0.15:
        case["sm"] = dice.choice((75, 90)) if "bf16" not in case["precision"] else 90
        label.append(f"sm{case['sm']}")
    case["name"] = f"{SEED}-{number}-" + "-".join(label)
    return case


DICE = random.Random(SEED)
CASES = [drawn(DICE, number) for number in range(COUNT)]
