"""Models of transformers, timm, torchvision and diffusers that nothing was tuned for, small and of odd
sizes (capture_all.py --zoo, zoo_figures.py).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F


def ids(b, t):
    return torch.zeros(b, t, dtype=torch.long)


def words(batch, tokens, mask=True):
    x = ids(batch, tokens)
    d = dict(input_ids=x, labels=x.clone())
    if mask:
        d["attention_mask"] = torch.ones_like(x)
    return d


def pictures(batch, side, classes=10):
    labels = torch.zeros(batch, dtype=torch.long)
    return (torch.zeros(batch, 3, side, side), lambda o: F.cross_entropy(o, labels))


def hf(name, config, **more):
    import transformers

    config = getattr(transformers, config)(**more)
    try:
        config.use_cache = False
    except Exception:
        pass
    return getattr(transformers, name)(config)


def gpt_oss():
    return (
        hf(
            "GptOssForCausalLM",
            "GptOssConfig",
            num_hidden_layers=2,
            hidden_size=96,
            intermediate_size=96,
            num_attention_heads=6,
            num_key_value_heads=2,
            head_dim=16,
            vocab_size=999,
            num_local_experts=4,
            num_experts_per_tok=2,
            sliding_window=16,
        ),
        words(2, 37),
    )


def albert():
    return (
        hf(
            "AlbertForMaskedLM",
            "AlbertConfig",
            num_hidden_layers=3,
            hidden_size=96,
            embedding_size=32,
            intermediate_size=200,
            num_attention_heads=4,
            vocab_size=999,
        ),
        words(3, 41),
    )


def bloom():
    return (
        hf("BloomForCausalLM", "BloomConfig", n_layer=2, hidden_size=96, n_head=4, vocab_size=999),
        words(3, 41),
    )


def falcon():
    return (
        hf(
            "FalconForCausalLM",
            "FalconConfig",
            num_hidden_layers=2,
            hidden_size=128,
            num_attention_heads=4,
            vocab_size=999,
        ),
        words(3, 41),
    )


def gptj():
    return (
        hf(
            "GPTJForCausalLM",
            "GPTJConfig",
            n_layer=2,
            n_embd=128,
            n_head=4,
            rotary_dim=16,
            vocab_size=999,
            n_positions=128,
        ),
        words(3, 41),
    )


def qwen2_5_vl():
    import transformers

    c = transformers.Qwen2_5_VLConfig(
        text_config=dict(
            vocab_size=999,
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            rope_scaling=dict(type="mrope", rope_type="default", mrope_section=[4, 6, 6]),
        ),
        vision_config=dict(
            depth=2,
            hidden_size=64,
            intermediate_size=128,
            num_heads=4,
            out_hidden_size=128,
            patch_size=14,
            fullatt_block_indexes=[1],
            window_size=56,
        ),
        image_token_id=900,
        vision_start_token_id=901,
        vision_end_token_id=902,
        video_token_id=903,
    )
    m = transformers.Qwen2_5_VLForConditionalGeneration(c)
    grid = torch.tensor([[1, 8, 8]])
    n = 64 // 4
    x = torch.zeros(1, 8 + n, dtype=torch.long)
    x[0, 3] = 901
    x[0, 4 : 4 + n] = 900
    return (
        m,
        dict(
            input_ids=x,
            labels=x.clone(),
            attention_mask=torch.ones_like(x),
            pixel_values=torch.zeros(64, 3 * 2 * 14 * 14),
            image_grid_thw=grid,
        ),
    )


def qwen3_vl():
    import transformers

    c = transformers.Qwen3VLConfig(
        text_config=dict(
            vocab_size=999,
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=32,
            rope_scaling=dict(rope_type="default", mrope_section=[6, 5, 5]),
        ),
        vision_config=dict(
            depth=2,
            hidden_size=64,
            intermediate_size=128,
            num_heads=4,
            out_hidden_size=128,
            patch_size=16,
            deepstack_visual_indexes=[0],
            num_position_embeddings=64,
        ),
        image_token_id=900,
        vision_start_token_id=901,
        vision_end_token_id=902,
        video_token_id=903,
    )
    m = transformers.Qwen3VLForConditionalGeneration(c)
    n = 64 // 4
    x = torch.zeros(1, 8 + n, dtype=torch.long)
    x[0, 3] = 901
    x[0, 4 : 4 + n] = 900
    return (
        m,
        dict(
            input_ids=x,
            labels=x.clone(),
            attention_mask=torch.ones_like(x),
            pixel_values=torch.zeros(64, 3 * 2 * 16 * 16),
            image_grid_thw=torch.tensor([[1, 8, 8]]),
            mm_token_type_ids=(x == 900).long(),
        ),
    )


def rwkv():
    return (
        hf(
            "RwkvForCausalLM",
            "RwkvConfig",
            num_hidden_layers=2,
            hidden_size=64,
            vocab_size=999,
            context_length=32,
        ),
        words(2, 17, mask=False),
    )


def mamba2():
    return (
        hf(
            "Mamba2ForCausalLM",
            "Mamba2Config",
            num_hidden_layers=2,
            hidden_size=64,
            vocab_size=999,
            num_heads=8,
            head_dim=16,
            state_size=16,
            n_groups=2,
            chunk_size=16,
        ),
        words(2, 33, mask=False),
    )


def llava():
    import transformers

    c = transformers.LlavaConfig(
        text_config=transformers.LlamaConfig(
            vocab_size=999,
            hidden_size=96,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
        ),
        vision_config=transformers.CLIPVisionConfig(
            hidden_size=64,
            intermediate_size=96,
            num_hidden_layers=3,
            num_attention_heads=4,
            image_size=32,
            patch_size=8,
        ),
        image_token_index=900,
    )
    m = transformers.LlavaForConditionalGeneration(c)
    x = torch.zeros(2, 24, dtype=torch.long)
    x[:, 2:18] = 900
    return (
        m,
        dict(
            input_ids=x,
            labels=x.clone(),
            attention_mask=torch.ones_like(x),
            pixel_values=torch.zeros(2, 3, 32, 32),
        ),
    )


def detr():
    import transformers

    c = transformers.DetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=transformers.ResNetConfig(
            embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], out_features=["stage2"]
        ),
        d_model=64,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=96,
        decoder_ffn_dim=96,
        num_queries=10,
        num_labels=5,
    )
    m = transformers.DetrForObjectDetection(c)
    return (
        m,
        dict(pixel_values=torch.zeros(2, 3, 64, 64)),
        lambda o: o.logits.float().mean() + o.pred_boxes.float().mean(),
    )


def segformer():
    m = hf(
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        depths=[1, 1, 1, 1],
        hidden_sizes=[16, 32, 48, 64],
        num_attention_heads=[1, 2, 3, 4],
        decoder_hidden_size=48,
        num_labels=7,
    )
    return (
        m,
        dict(pixel_values=torch.zeros(2, 3, 64, 64), labels=torch.zeros(2, 64, 64, dtype=torch.long)),
    )


def sam():
    import transformers

    c = transformers.SamConfig(
        vision_config=dict(
            hidden_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            image_size=64,
            patch_size=8,
            output_channels=32,
            mlp_dim=96,
            window_size=4,
            global_attn_indexes=[1],
            num_pos_feats=16,
        ),
        prompt_encoder_config=dict(hidden_size=32, image_size=64, patch_size=8),
        mask_decoder_config=dict(
            hidden_size=32, mlp_dim=64, num_hidden_layers=1, num_attention_heads=2, iou_head_hidden_dim=32
        ),
    )
    m = transformers.SamModel(c)
    return (
        m,
        dict(pixel_values=torch.zeros(2, 3, 64, 64), input_points=torch.ones(2, 1, 1, 2)),
        lambda o: o.pred_masks.float().mean() + o.iou_scores.float().mean(),
    )


def wav2vec2():
    m = hf(
        "Wav2Vec2ForCTC",
        "Wav2Vec2Config",
        num_hidden_layers=2,
        hidden_size=64,
        num_attention_heads=4,
        intermediate_size=96,
        conv_dim=[32] * 7,
        vocab_size=32,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
        mask_time_prob=0.0,
        num_feat_extract_layers=7,
    )
    return (m, dict(input_values=torch.zeros(2, 8000), labels=torch.ones(2, 6, dtype=torch.long)))


def reformer():
    m = hf(
        "ReformerModelWithLMHead",
        "ReformerConfig",
        hidden_size=64,
        num_attention_heads=2,
        attention_head_size=32,
        feed_forward_size=96,
        attn_layers=["local", "lsh"],
        axial_pos_shape=[8, 8],
        axial_pos_embds_dim=[32, 32],
        vocab_size=320,
        is_decoder=True,
        num_hashes=1,
        num_buckets=4,
        lsh_attn_chunk_length=16,
        local_attn_chunk_length=16,
    )
    return (m, words(2, 64))


def longformer():
    m = hf(
        "LongformerForMaskedLM",
        "LongformerConfig",
        num_hidden_layers=2,
        hidden_size=64,
        num_attention_heads=4,
        intermediate_size=96,
        vocab_size=999,
        attention_window=16,
        max_position_embeddings=140,
    )
    return (m, words(2, 64))


def bigbird():
    m = hf(
        "BigBirdForMaskedLM",
        "BigBirdConfig",
        num_hidden_layers=2,
        hidden_size=64,
        num_attention_heads=4,
        intermediate_size=96,
        vocab_size=999,
        block_size=16,
        num_random_blocks=2,
        max_position_embeddings=512,
    )
    return (m, words(1, 256))


def xlnet():
    m = hf("XLNetLMHeadModel", "XLNetConfig", n_layer=2, d_model=64, n_head=4, d_inner=96, vocab_size=999)
    return (m, words(2, 29))


def funnel():
    return (
        hf(
            "FunnelForMaskedLM",
            "FunnelConfig",
            block_sizes=[1, 1],
            num_decoder_layers=1,
            d_model=64,
            n_head=4,
            d_head=16,
            d_inner=96,
            vocab_size=999,
        ),
        words(2, 32),
    )


def gemma3():
    return (
        hf(
            "Gemma3ForCausalLM",
            "Gemma3TextConfig",
            num_hidden_layers=3,
            hidden_size=96,
            intermediate_size=192,
            num_attention_heads=4,
            num_key_value_heads=1,
            head_dim=24,
            vocab_size=999,
            sliding_window=16,
            layer_types=["sliding_attention", "sliding_attention", "full_attention"],
        ),
        words(2, 33),
    )


def blip():
    import transformers

    c = transformers.BlipConfig(
        text_config=dict(
            vocab_size=999,
            hidden_size=64,
            intermediate_size=96,
            num_hidden_layers=2,
            num_attention_heads=4,
            encoder_hidden_size=64,
            bos_token_id=1,
            sep_token_id=2,
            eos_token_id=2,
            pad_token_id=0,
        ),
        vision_config=dict(
            hidden_size=64,
            intermediate_size=96,
            num_hidden_layers=2,
            num_attention_heads=4,
            image_size=32,
            patch_size=8,
        ),
    )
    m = transformers.BlipForConditionalGeneration(c)
    x = torch.ones(2, 9, dtype=torch.long)
    return (m, dict(pixel_values=torch.zeros(2, 3, 32, 32), input_ids=x, labels=x.clone()))


def dinov2():
    m = hf(
        "Dinov2ForImageClassification",
        "Dinov2Config",
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=56,
        patch_size=14,
        num_labels=5,
        drop_path_rate=0.1,
    )
    return (m, dict(pixel_values=torch.zeros(2, 3, 56, 56), labels=torch.zeros(2, dtype=torch.long)))


def jamba():
    return (
        hf(
            "JambaForCausalLM",
            "JambaConfig",
            num_hidden_layers=2,
            hidden_size=64,
            intermediate_size=96,
            num_attention_heads=4,
            num_key_value_heads=2,
            vocab_size=999,
            attn_layer_period=2,
            attn_layer_offset=1,
            expert_layer_period=2,
            expert_layer_offset=1,
            num_experts=4,
            use_mamba_kernels=False,
            mamba_d_state=8,
            pad_token_id=0,
        ),
        words(2, 9),
    )


def videomae():
    m = hf(
        "VideoMAEForVideoClassification",
        "VideoMAEConfig",
        image_size=32,
        patch_size=8,
        num_frames=4,
        tubelet_size=2,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        num_labels=5,
    )
    return (m, dict(pixel_values=torch.zeros(2, 4, 3, 32, 32), labels=torch.zeros(2, dtype=torch.long)))


def time_series():
    m = hf(
        "TimeSeriesTransformerForPrediction",
        "TimeSeriesTransformerConfig",
        prediction_length=6,
        context_length=12,
        lags_sequence=[1, 2],
        num_time_features=2,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
    )
    return (
        m,
        dict(
            past_values=torch.zeros(3, 14),
            past_time_features=torch.zeros(3, 14, 2),
            past_observed_mask=torch.ones(3, 14),
            future_values=torch.zeros(3, 6),
            future_time_features=torch.zeros(3, 6, 2),
        ),
    )


def timm_(name, side=64, batch=2, **k):
    import timm

    return (timm.create_model(name, num_classes=10, **k), *pictures(batch, side))


def eva():
    return timm_("eva02_tiny_patch14_224", 56, img_size=56, depth=2)


def beit():
    return timm_("beit_base_patch16_224", 64, img_size=64, depth=2, embed_dim=96, num_heads=4)


def coatnet():
    return timm_("coatnet_pico_rw_224", 64, img_size=64)


def nfnet():
    return timm_("eca_nfnet_l0", 64)


def regnet():
    return timm_("regnety_002", 64)


def efficientformer():
    return timm_("efficientformer_l1", 224)


def levit():
    return timm_("levit_128s", 224)


def maxvit():
    return timm_("maxvit_rmlp_pico_rw_256", 64, img_size=64)


def xcit():
    return timm_("xcit_nano_12_p16_224", 64)


def mixer():
    return timm_("mixer_s32_224", 224)


def gmlp():
    return timm_("gmlp_ti16_224", 224)


def cait():
    return timm_("cait_xxs24_224", 64, img_size=64, depth=2)


def mobilevit():
    return timm_("mobilevitv2_050", 64)


def hiera():
    return timm_("hiera_tiny_224", 224)


def tv(name, side=64, batch=2, **k):
    import torchvision

    return (getattr(torchvision.models, name)(num_classes=10, **k), *pictures(batch, side))


def resnext():
    return tv("resnext50_32x4d")


def densenet():
    return tv("densenet121")


def tvvit():
    return tv("vit_b_32", image_size=64)


def googlenet():
    import torchvision

    m = torchvision.models.googlenet(num_classes=10, aux_logits=True, init_weights=False)
    y = torch.zeros(2, dtype=torch.long)
    return (
        m,
        torch.zeros(2, 3, 64, 64),
        lambda o: F.cross_entropy(o.logits, y) + 0.3 * F.cross_entropy(o.aux_logits1, y),
    )


def maskrcnn():
    import torchvision

    m = torchvision.models.detection.maskrcnn_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=4, min_size=96, max_size=96
    )
    t = [
        dict(
            boxes=torch.tensor([[10.0, 10.0, 50.0, 50.0]]),
            labels=torch.tensor([1]),
            masks=torch.zeros(1, 96, 96, dtype=torch.uint8),
        )
    ]
    return (m, ([torch.zeros(3, 96, 96)], t), lambda o: sum(o.values()))


def fasterrcnn():
    import torchvision

    m = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_fpn(
        weights=None, weights_backbone=None, num_classes=4, min_size=96, max_size=128
    )
    t = [dict(boxes=torch.tensor([[10.0, 10.0, 50.0, 50.0]]), labels=torch.tensor([1])) for _ in range(2)]
    return (m, ([torch.zeros(3, 96, 96), torch.zeros(3, 80, 100)], t), lambda o: sum(o.values()))


def fcos():
    import torchvision

    m = torchvision.models.detection.fcos_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=4, min_size=96, max_size=96
    )
    t = [dict(boxes=torch.tensor([[10.0, 10.0, 50.0, 50.0]]), labels=torch.tensor([1]))]
    return (m, ([torch.zeros(3, 96, 96)], t), lambda o: sum(o.values()))


def retinanet():
    import torchvision

    m = torchvision.models.detection.retinanet_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=4, min_size=96, max_size=96
    )
    t = [dict(boxes=torch.tensor([[10.0, 10.0, 50.0, 50.0]]), labels=torch.tensor([1]))]
    return (m, ([torch.zeros(3, 96, 96)], t), lambda o: sum(o.values()))


def deeplab():
    import torchvision

    m = torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=4
    )
    y = torch.zeros(2, 64, 64, dtype=torch.long)
    return (m, torch.zeros(2, 3, 64, 64), lambda o: F.cross_entropy(o["out"], y))


def raft():
    import torchvision

    m = torchvision.models.optical_flow.raft_small(weights=None)
    return (
        m,
        (torch.zeros(1, 3, 128, 128), torch.zeros(1, 3, 128, 128)),
        lambda o: sum((x.abs().mean() for x in o)),
    )


def r3d():
    import torchvision

    y = torch.zeros(2, dtype=torch.long)
    return (
        torchvision.models.video.r3d_18(num_classes=10),
        torch.zeros(2, 3, 4, 32, 32),
        lambda o: F.cross_entropy(o, y),
    )


def unet2dcond():
    import diffusers

    m = diffusers.UNet2DConditionModel(
        sample_size=16,
        block_out_channels=(32, 64),
        layers_per_block=1,
        cross_attention_dim=48,
        attention_head_dim=8,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )
    return (
        m,
        dict(
            sample=torch.zeros(2, 4, 16, 16),
            timestep=torch.tensor([3, 5]),
            encoder_hidden_states=torch.zeros(2, 9, 48),
        ),
        lambda o: o.sample.float().square().mean(),
    )


def dit():
    import diffusers

    m = diffusers.DiTTransformer2DModel(
        num_attention_heads=4,
        attention_head_dim=16,
        in_channels=4,
        out_channels=8,
        num_layers=2,
        sample_size=16,
        num_embeds_ada_norm=10,
    )
    return (
        m,
        dict(
            hidden_states=torch.zeros(2, 4, 16, 16),
            timestep=torch.tensor([3, 5]),
            class_labels=torch.tensor([1, 2]),
        ),
        lambda o: o.sample.float().square().mean(),
    )


def sd3():
    import diffusers

    m = diffusers.SD3Transformer2DModel(
        sample_size=16,
        patch_size=2,
        in_channels=4,
        num_layers=2,
        attention_head_dim=16,
        num_attention_heads=4,
        joint_attention_dim=32,
        caption_projection_dim=64,
        pooled_projection_dim=48,
        out_channels=4,
        pos_embed_max_size=16,
    )
    return (
        m,
        dict(
            hidden_states=torch.zeros(2, 4, 16, 16),
            encoder_hidden_states=torch.zeros(2, 11, 32),
            pooled_projections=torch.zeros(2, 48),
            timestep=torch.tensor([3, 5]),
        ),
        lambda o: o.sample.float().square().mean(),
    )


def flux():
    import diffusers

    m = diffusers.FluxTransformer2DModel(
        patch_size=1,
        in_channels=16,
        num_layers=1,
        num_single_layers=2,
        attention_head_dim=16,
        num_attention_heads=4,
        joint_attention_dim=32,
        pooled_projection_dim=48,
        guidance_embeds=True,
        axes_dims_rope=(4, 6, 6),
    )
    return (
        m,
        dict(
            hidden_states=torch.zeros(2, 16, 16),
            encoder_hidden_states=torch.zeros(2, 11, 32),
            pooled_projections=torch.zeros(2, 48),
            timestep=torch.tensor([0.3, 0.5]),
            img_ids=torch.zeros(16, 3),
            txt_ids=torch.zeros(11, 3),
            guidance=torch.ones(2),
        ),
        lambda o: o.sample.float().square().mean(),
    )


def vae():
    import diffusers

    m = diffusers.AutoencoderKL(
        block_out_channels=(32, 64),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        layers_per_block=1,
        latent_channels=4,
        norm_num_groups=8,
    )
    return (
        m,
        dict(sample=torch.zeros(2, 3, 32, 32), sample_posterior=True),
        lambda o: o.sample.float().square().mean(),
    )


CASES = [
    ("gpt_oss", "amp-bf16"),
    ("albert", "bf16"),
    ("bloom", "fp32"),
    ("falcon", "fp32"),
    ("gptj", "amp-bf16"),
    ("qwen2_5_vl", "amp-bf16"),
    ("qwen3_vl", "amp-bf16"),
    ("rwkv", "fp32"),
    ("mamba2", "amp-bf16"),
    ("llava", "fp32"),
    ("detr", "amp-bf16"),
    ("segformer", "bf16"),
    ("sam", "fp32"),
    ("wav2vec2", "amp-bf16"),
    ("reformer", "amp-bf16"),
    ("longformer", "fp32"),
    ("bigbird", "fp32"),
    ("xlnet", "fp32"),
    ("funnel", "fp32"),
    ("gemma3", "fp32"),
    ("blip", "amp-bf16"),
    ("dinov2", "fp32"),
    ("jamba", "fp32"),
    ("videomae", "fp32"),
    ("time_series", "bf16"),
    ("eva", "bf16"),
    ("beit", "fp32"),
    ("coatnet", "fp32"),
    ("nfnet", "amp-bf16"),
    ("regnet", "fp32"),
    ("efficientformer", "amp-bf16"),
    ("levit", "amp-bf16"),
    ("maxvit", "amp-bf16"),
    ("xcit", "amp-bf16"),
    ("mixer", "fp32"),
    ("gmlp", "fp32"),
    ("cait", "fp32"),
    ("mobilevit", "amp-bf16"),
    ("hiera", "amp-bf16"),
    ("resnext", "fp32"),
    ("densenet", "amp-bf16"),
    ("tvvit", "fp32"),
    ("googlenet", "fp32"),
    ("maskrcnn", "fp32"),
    ("fasterrcnn", "fp32"),
    ("fcos", "fp32"),
    ("retinanet", "bf16"),
    ("deeplab", "fp32"),
    ("raft", "fp32"),
    ("r3d", "bf16"),
    ("unet2dcond", "fp32"),
    ("dit", "fp32"),
    ("sd3", "amp-bf16"),
    ("flux", "fp32"),
    ("vae", "bf16"),
]
