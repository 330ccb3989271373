#!/usr/bin/env python3
"""What real training steps take in PyTorch's own caching allocator, without a GPU, as a JSON fixture.

    python3 -m venv venv && venv/bin/pip install torch==2.6.0 torchvision==0.21.0 \
        transformers==4.57.1 timm==1.0.31 peft==0.21.2 accelerate
    venv/bin/python scripts/capture_steps/capture.py > tests/reference/steps_transformers-4.57.json
    venv/bin/python scripts/capture_steps/capture.py --only '^gpt2-bf16' --show

With another version of transformers (4.51.3 and 4.47.1, with tokenizers 0.21, and 5.23.0 with torch
2.15.0) the steps of steps_transformers-4.51.json, -4.47.json and -5.json:
    --only '^(gpt2|gpt2-odd-heads|llama|llama-gqa|mistral|bert|vit)-(fp32|bf16|amp-bf16)-(math|sdpa)$'

A C compiler builds the stand-in for the CUDA runtime (python/tidemark/recording/stand_in.c), which
is then preloaded. Each case
runs three steps of eager training in a child process. The second gives the allocator's numbers. The
third runs under a dispatch mode that sees every storage come and go; it gives what is saved and what
is live. cuDNN is off, because it cannot be stood in for: convolutions run as copies and products.

Per case:
  saved       bytes of storages that the backward nodes hold when the forward is over; parameters,
              buffers and casts of parameters do not count, nor does what lies on the CPU
  live        most bytes of storages at once, per phase: outputs of operators, no scratch inside them
  allocated   most bytes allocated in the second step, per phase, as the allocator counts them
  reserved    most bytes that the allocator held
  state       bytes of the optimizer's tensors
  storages    what is saved: bytes of a storage, how many there are

The steps of families that came later (steps_families.json, steps_families_transformers-5.json):
    --cases scripts/capture_steps/family_cases.py

Mixtures of experts with transformers 5 (steps_experts_transformers-5.json):
    --cases scripts/capture_steps/expert_cases.py

Activations that are not the family's own (steps_activations.json):
    --cases scripts/capture_steps/activation_cases.py

Models' own checkpointing, beside adapters and alone (steps_checkpointed.json):
    --cases scripts/capture_steps/checkpointed_cases.py

The same under a policy that keeps what attention and every second product give (steps_policy.json):
    --cases scripts/capture_steps/policy_cases.py

What nobody thought of (steps_by_chance.json, with SEED=11 COUNT=100 in the environment, then with 32 and
40, 57 and 22, 61 and 60, 65 and 30, 66 and 30, 67 and 30, 68 and 30, 69 and 30, 70 and 32, 72 and 40;
steps_by_chance_transformers-5.json, with 12 and 40, 31 and 40, 58 and 22, 62 and 60, 71 and 36, 73 and 36;
what PyTorch and peft refuse is not there, nor are StableLM's norms of heads, which came later):
    --cases scripts/capture_steps/random_cases.py

Families that call fused attention since transformers 5 (steps_shared_attention_transformers-5.json):
    --cases scripts/capture_steps/shared_attention_cases.py

Embeddings that heads share (steps_tied.json):
    --cases scripts/capture_steps/tied_cases.py

Linears in eight bits, which need torchao 0.9.0, or 0.18.0 beside PyTorch 2.15 (steps_fp8.json and
steps_fp8_transformers-5.json; there with TORCH_CUDNN_SDPA_DEPRIORITIZED=1, as cuDNN cannot run):
    --cases scripts/capture_steps/fp8_cases.py

Bases in eight-bit floats (steps_fp8_base_transformers-5.json), with those libraries of 2.15:
    --cases scripts/capture_steps/fp8_base_cases.py

Learned prompts (steps_prompts.json):
    --cases scripts/capture_steps/prompt_cases.py

Learned keys and values (steps_prefix.json):
    --cases scripts/capture_steps/prefix_cases.py

LLaMA by torchtitan's own code (steps_titan.json):
    --cases scripts/capture_steps/titan_cases.py

Preferences (steps_dpo.json), which need trl 1.16.0, whose kernels are not launched, and no torchao:
    --cases scripts/capture_steps/dpo_cases.py

Liger's kernels (steps_liger.json), which are not launched:
    --cases scripts/capture_steps/liger_cases.py

The steps of optimizers (steps_optimizers.json):
    --cases scripts/capture_steps/optimizer_cases.py

On a GPU instead of over the stand-in (bench/results/<device>/<day>/torch_steps.json), with what a
step takes, the median of ten, and the attention operators that ran:
    --on-gpu --cases scripts/capture_steps/gpu_cases.py
"""

import argparse
import collections
import contextlib
import ctypes
import gc
import importlib.metadata
import json
import os
import pathlib
import re
import runpy
import signal
import statistics
import subprocess
import sys
import tempfile
import warnings
import weakref

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent / "python"))  # the stand-in is that of the package
OPTIMIZERS = {}  # what optimizers.py has, which needs the libraries
TIMED_STEPS = 10


def start_again_with_stand_in(arguments):
    from tidemark.recording import stand_in

    if stand_in.has_gpu():
        sys.exit("this machine has a GPU: the stand-in is for machines without one")
    environment = dict(stand_in.environment(80), HF_HUB_OFFLINE="1")
    sys.exit(subprocess.run([sys.executable, __file__, *arguments], env=environment).returncode)


# --- the models and what they are fed --------------------------------------------------------------

HEADS = {"vit": "ViTForImageClassification", "deit": "DeiTForImageClassification",
         "swin": "SwinForImageClassification", "bert": "BertForMaskedLM",
         "roberta": "RobertaForMaskedLM", "camembert": "CamembertForMaskedLM",
         "gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM",
         "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM",
         "gemma": "GemmaForCausalLM", "gemma2": "Gemma2ForCausalLM",
         "gemma3_text": "Gemma3ForCausalLM", "phi": "PhiForCausalLM", "phi3": "Phi3ForCausalLM",
         "gpt_neox": "GPTNeoXForCausalLM", "opt": "OPTForCausalLM",
         "stablelm": "StableLmForCausalLM", "olmo2": "Olmo2ForCausalLM", "olmo3": "Olmo3ForCausalLM",
         "granite": "GraniteForCausalLM", "smollm3": "SmolLM3ForCausalLM",
         "seed_oss": "SeedOssForCausalLM", "exaone4": "Exaone4ForCausalLM",
         "hunyuan_v1_dense": "HunYuanDenseV1ForCausalLM", "glm4_moe": "Glm4MoeForCausalLM",
         "arcee": "ArceeForCausalLM", "glm4": "Glm4ForCausalLM",
         "ernie4_5": "Ernie4_5ForCausalLM", "cohere": "CohereForCausalLM",
         "cohere2": "Cohere2ForCausalLM", "gpt_oss": "GptOssForCausalLM",
         "starcoder2": "Starcoder2ForCausalLM", "distilbert": "DistilBertForMaskedLM",
         "mixtral": "MixtralForCausalLM", "qwen2_moe": "Qwen2MoeForCausalLM",
         "qwen3_moe": "Qwen3MoeForCausalLM", "olmoe": "OlmoeForCausalLM",
         "t5": "T5ForConditionalGeneration", "electra": "ElectraForMaskedLM",
         "xlm-roberta": "XLMRobertaForMaskedLM", "dinov2": "Dinov2ForImageClassification",
         "bart": "BartForConditionalGeneration", "falcon": "FalconForCausalLM",
         "modernbert": "ModernBertForMaskedLM", "deberta-v2": "DebertaV2ForMaskedLM",
         "deepseek_v3": "DeepseekV3ForCausalLM",
         "clip_text_model": "CLIPTextModel", "clip_vision_model": "CLIPVisionModel",
         "siglip_text_model": "SiglipTextModel", "siglip_vision_model": "SiglipVisionModel",
         "whisper": "WhisperForConditionalGeneration",
         "beit": "BeitForImageClassification", "vit_mae": "ViTMAEForPreTraining",
         "pvt": "PvtForImageClassification", "pvt_v2": "PvtV2ForImageClassification",
         "deepseek_v2": "DeepseekV2ForCausalLM"}
# Models without a loss of their own: the mean of each output, added up.
BARE = ("clip_text_model", "clip_vision_model", "siglip_text_model", "siglip_vision_model")


def initialization(case):
    """StableLM's in transformers 4.57 asks norms of heads for biases, which they do not have."""
    if not case["config"].get("qk_layernorm", False):
        return contextlib.nullcontext()
    from transformers.modeling_utils import no_init_weights

    return no_init_weights()


def build_model(case):
    import torch
    import transformers

    if case.get("network") == "torchtitan":
        return build_titan(case)
    attention = "eager" if case["attention"] == "math" else "sdpa"
    model_class = getattr(transformers, case.get("class") or HEADS[case["config"]["model_type"]])
    fields = {key: value for key, value in case["config"].items() if key != "model_type"}
    config = model_class.config_class(**fields)
    config.use_cache = False
    with torch.device("cuda"), initialization(case):
        model = model_class._from_config(config, attn_implementation=attention)
    if case["precision"] == "bf16":
        model = model.to(torch.bfloat16)
    if case.get("liger"):
        use_liger(model)
    if "base" in case:
        quantize(model, case["base"])
    if "linears" in case:
        convert_linears(model)
    if "lora" in case:
        import peft

        model = peft.get_peft_model(model, peft.LoraConfig(**case["lora"]),
                                    **case.get("peft", {}))
    if "virtual_tokens" in case:
        import peft

        model = peft.get_peft_model(model, peft.PromptTuningConfig(
            task_type="CAUSAL_LM", num_virtual_tokens=case["virtual_tokens"]))
    if "prefix" in case:
        import peft

        model = peft.get_peft_model(model, peft.PrefixTuningConfig(
            task_type="CAUSAL_LM", **case["prefix"]))
    if case.get("checkpoint"):
        policy = dict(context_fn=keep_every_second_product) if case["checkpoint"] == "op" else {}
        model.gradient_checkpointing_enable(dict(use_reentrant=False, **policy))
        if "lora" in case:
            model.enable_input_require_grads()
    return model.train()


def build_titan(case):
    sys.path.insert(0, str(HERE))
    import titan

    model = titan.build(case)
    if case.get("checkpoint"):
        policy = dict(context_fn=keep_every_second_product) if case["checkpoint"] == "op" else {}
        titan.wrap(model, **policy)
    return model


def keep_every_second_product():
    """The policy of torchtitan's SelectiveAC: what attention and products give stays, but every second mm runs again."""
    import torch
    from torch._functorch.partitioners import get_default_op_list
    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

    kept = {packet.default for packet in get_default_op_list().compute_intensive_ops}
    products = dict.fromkeys((False, True), 0)

    def policy(context, operator, *arguments, **options):
        if operator == torch.ops.aten.mm.default:
            products[context.is_recompute] += 1
            stays = products[context.is_recompute] % 2 == 1
        else:
            stays = operator in kept
        return CheckpointPolicy.MUST_SAVE if stays else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def use_liger(model):
    """What the Trainer does with use_liger_kernel=True."""
    import types

    import triton

    triton.JITFunction.run = lambda *arguments, **options: None
    triton.runtime.driver.set_active(types.SimpleNamespace(get_benchmarker=lambda: None))
    from liger_kernel.transformers import _apply_liger_kernel_to_instance

    _apply_liger_kernel_to_instance(model)


def quantize(model, base):
    """What transformers' loading does with a BitsAndBytesConfig: all linears but the head."""
    import torch

    if base == "fp8":  # or with a TorchAoConfig
        from torchao.quantization import Float8WeightOnlyConfig, quantize_

        quantize_(model, Float8WeightOnlyConfig(), filter_fn=lambda module, name: isinstance(
            module, torch.nn.Linear) and name.split(".")[-1] != "lm_head")
        return
    import bitsandbytes

    linears = [(parent, name, child) for parent in model.modules()
               for name, child in parent.named_children()
               if isinstance(child, torch.nn.Linear) and name != "lm_head"]
    for parent, name, old in linears:
        sizes = dict(input_features=old.in_features, output_features=old.out_features,
                     bias=old.bias is not None)
        if base == "int8":
            new = bitsandbytes.nn.Linear8bitLt(**sizes, has_fp16_weights=False, threshold=0.0)
        else:
            new = bitsandbytes.nn.Linear4bit(**sizes, compute_dtype=torch.bfloat16, quant_type="nf4",
                                             compress_statistics=base == "nf4-double")
        new = new.to(torch.bfloat16).cuda().requires_grad_(False)
        setattr(parent, name, new)


def convert_linears(model):
    """As torchao's README has it: all linears but the head, where both sizes are multiples of 16."""
    import torch
    from torchao.float8 import convert_to_float8_training

    heads = ("lm_head", "classifier", "decoder", "score")

    def is_converted(module, name):
        return name.split(".")[-1] not in heads and module.in_features % 16 == 0 \
            and module.out_features % 16 == 0

    convert_to_float8_training(model, module_filter_fn=is_converted)


def preference_loss(case, model, inputs):
    """The loss of TRL's DPOTrainer, whose constructor wants data and a tokenizer; its second model."""
    import triton
    from accelerate import Accelerator
    from peft import PeftModel
    from trl import DPOTrainer
    from trl.trainer.utils import add_fused_lm_head, disable_dropout_in_model

    triton.JITFunction.run = lambda *arguments, **options: None
    amp = case["precision"].startswith("amp")
    trainer = DPOTrainer.__new__(DPOTrainer)
    trainer.accelerator = Accelerator(mixed_precision="bf16" if amp else "no")
    trainer.precompute_ref_logps = case["reference"] == "precomputed"
    plain = {key: value for key, value in case.items() if key not in ("lora", "checkpoint")}
    trainer.ref_model = build_model(plain).eval() if case["reference"] == "model" else None
    outputs = ("log_probs", "entropy", "mean_logits", "is_top1")
    for each in (model, trainer.ref_model):
        if each is not None:
            disable_dropout_in_model(each)
    add_fused_lm_head(model.get_base_model() if isinstance(model, PeftModel) else model,
                      outputs=outputs)
    trainer.model = trainer.accelerator.prepare_model(model)
    if trainer.ref_model is not None:
        add_fused_lm_head(trainer.ref_model)
        trainer.ref_model = trainer.accelerator.prepare_model(trainer.ref_model, evaluation_mode=True)
    trainer.args = argparse.Namespace(gradient_checkpointing_kwargs=dict(use_reentrant=False))
    trainer.ld_alpha, trainer.beta, trainer.loss_types = None, 0.1, ["sigmoid"]
    trainer.loss_weights, trainer.f_divergence_type = [1.0], "reverse_kl"
    trainer.use_weighting = trainer.aux_loss_enabled = False
    trainer._total_train_tokens, trainer._tp_size = 0, 1
    trainer._metrics = {"train": collections.defaultdict(list)}
    return trainer.ref_model, lambda: trainer._compute_loss(trainer.model, inputs, False)


def preference_inputs(case):
    """What TRL's collator makes of pairs: chosen ones, then rejected ones, all of the same length."""
    import torch

    ids = torch.zeros(2 * case["batch"], case["tokens"], dtype=torch.long, device="cuda")
    scored = torch.ones_like(ids)
    scored[:, 0] = 0
    inputs = dict(input_ids=ids, attention_mask=torch.ones_like(ids), completion_mask=scored)
    if case["reference"] == "precomputed":
        inputs["ref_chosen_logps"] = torch.zeros(case["batch"], device="cuda")
        inputs["ref_rejected_logps"] = torch.zeros(case["batch"], device="cuda")
    return inputs


def chunked_loss(model, inputs, chunks):
    """Cross-entropy by chunks of rows, each checkpointed, with the labels of transformers 4.57."""
    import torch
    from torch.nn.functional import cross_entropy, linear, pad
    from torch.utils.checkpoint import checkpoint

    body = getattr(model, model.base_model_prefix)
    hidden = body(inputs["input_ids"], attention_mask=inputs["attention_mask"])[0]
    hidden = hidden.view(-1, hidden.size(-1))
    labels = pad(inputs["labels"], (0, 1), value=-100)[..., 1:].contiguous().view(-1)

    def of_chunk(rows, table, wanted):
        return cross_entropy(linear(rows, table).float(), wanted)

    losses = [checkpoint(of_chunk, rows, model.lm_head.weight, wanted, use_reentrant=False)
              for rows, wanted in zip(hidden.chunk(chunks), labels.chunk(chunks))]
    return torch.stack(losses).mean()


def build_inputs(case, model):
    import torch

    if "reference" in case:
        return preference_inputs(case)
    batch, kind = case["batch"], case["config"]["model_type"]
    if kind == "whisper":
        dtype = torch.bfloat16 if case["precision"] == "bf16" else torch.float32
        shape = (batch, case["config"]["num_mel_bins"], 2 * case["config"]["max_source_positions"])
        labels = torch.zeros(batch, case["target_tokens"], dtype=torch.long, device="cuda")
        return dict(input_features=torch.zeros(shape, dtype=dtype, device="cuda"), labels=labels)
    if "tokens" not in case:
        side = case["config"].get("image_size", 224)
        dtype = torch.bfloat16 if case["precision"] == "bf16" else torch.float32
        return dict(pixel_values=torch.zeros(batch, 3, side, side, dtype=dtype, device="cuda"),
                    **({} if kind in (*BARE, "vit_mae") else
                       dict(labels=torch.zeros(batch, dtype=torch.long, device="cuda"))))
    ids = torch.zeros(batch, case["tokens"], dtype=torch.long, device="cuda")
    inputs = dict(input_ids=ids)
    if kind not in BARE:
        inputs["labels"] = torch.zeros_like(ids)
    if "target_tokens" in case:
        inputs["labels"] = torch.zeros(batch, case["target_tokens"], dtype=torch.long, device="cuda")
    if "class" in case and "SequenceClassification" in case["class"]:
        inputs["labels"] = torch.zeros(batch, dtype=torch.long, device="cuda")
    if "class" in case and "QuestionAnswering" in case["class"]:
        inputs["start_positions"] = torch.zeros(batch, dtype=torch.long, device="cuda")
        inputs["end_positions"] = torch.zeros_like(inputs["start_positions"])
        del inputs["labels"]
    # As a tokenizer hands it over. Without it, transformers 4.53 to 4.57 take every batch for packed.
    if kind != "siglip_text_model" and "network" not in case:  # whose tokenizers hand over none
        inputs["attention_mask"] = torch.ones_like(ids)
    if case.get("padded"):
        inputs["attention_mask"][0, -1] = 0
    return inputs


# --- measuring -------------------------------------------------------------------------------------


def plain(tensor):
    """The tensors that lie in memory: of a wrapper, as torchao's are, those inside."""
    if not hasattr(tensor, "__tensor_flatten__"):
        return [tensor]
    return [inner for name in tensor.__tensor_flatten__()[0] for inner in plain(getattr(tensor, name))]


def storage_sizes(tensors):
    sizes = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        if tensor.device.type == "cuda":
            sizes[storage._cdata] = storage.nbytes()
    return sizes


def make_watcher(known, parameters):
    """A dispatch mode that keeps count of the storages that are there. Sums of gradients are made as where
    none looks on (accumulation.py)."""
    import torch
    from tidemark.recording import accumulation
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Watcher(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.alive = dict(known)
            self.now = self.most = sum(known.values())
            self.saved, self.casts, self.attention = {}, set(), set()
            self.sums = accumulation.Sums()

        def end_of_phase(self):
            most, self.most = self.most, self.now
            return most

        def gone(self, key):
            self.now -= self.alive.pop(key, 0)

        def pack(self, tensor):
            for inner in plain(tensor):
                storage = inner.untyped_storage()
                if inner.device.type == "cuda":
                    self.saved[storage._cdata] = storage.nbytes()
            return tensor

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if any(hasattr(kind, "__tensor_flatten__") for kind in types):
                return NotImplemented  # then the wrapper's own operators come here
            kwargs = kwargs or {}
            node = torch._C._current_autograd_node()
            target = node and self.sums.target(function, args, kwargs, node)
            if target is not None:
                return accumulation.added(target, args)
            result = function(*args, **kwargs)
            if node is not None:
                self.sums.note((args, kwargs), result)
            if "attention" in function._schema.name:
                self.attention.add(function._schema.name.removeprefix("aten::"))
            for tensor in tree_leaves(result):
                if not isinstance(tensor, torch.Tensor) or tensor.device.type != "cuda":
                    continue
                storage = tensor.untyped_storage()
                key = storage._cdata
                if key in self.alive:
                    continue
                self.alive[key] = storage.nbytes()
                weakref.finalize(storage, self.gone, key)
                self.saved.pop(key, None), self.casts.discard(key)
                self.now += storage.nbytes()
                self.most = max(self.most, self.now)
                if function is torch.ops.aten._to_copy.default and \
                        args[0].untyped_storage()._cdata in parameters:
                    self.casts.add(key)
            return result

    return Watcher()


def measure(case, on_gpu):
    import torch
    from tidemark.recording import accumulation
    from tidemark.recording.values import Values

    warnings.filterwarnings("ignore")
    accumulation.learn()
    if on_gpu:
        return measure_with_values(case, on_gpu)
    torch.backends.cudnn.enabled = False
    with Values():
        return measure_with_values(case, on_gpu)


def randomize(inputs, case):
    """Kernels are faster on zeros, and where all tokens are one, gradients of its row add up."""
    import torch

    torch.manual_seed(0)
    for name, tensor in inputs.items():
        if tensor.is_floating_point():
            tensor.normal_()
        elif name in ("input_ids", "labels"):
            tensor.random_(case["config"].get("vocab_size", 2))


def median_step_ns(step):
    import torch

    times = []
    for _ in range(TIMED_STEPS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e6)
    return round(statistics.median(times))


def measure_with_values(case, on_gpu):
    import contextlib

    import torch

    model = build_model(case)
    optimizer = OPTIMIZERS["make"](case, model)
    inputs = build_inputs(case, model)
    if on_gpu:
        randomize(inputs, case)
        torch.cuda.empty_cache()  # as if the weights had been loaded in the step's precision
    amp = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}.get(case["precision"])
    reference = None
    if "reference" in case:
        reference, preferences = preference_loss(case, model, inputs)
    gc.collect()
    gc.disable()

    def forward():
        if "reference" in case:
            return preferences()  # each of its models has an autocast of its own
        autocast = torch.autocast("cuda", amp) if amp else contextlib.nullcontext()
        with autocast:
            if "loss" in case:
                return chunked_loss(model, inputs, int(case["loss"].split(":")[1]))
            outputs = model(**inputs)
            if case["config"]["model_type"] in BARE:
                return sum(output.mean() for output in outputs.values())
            return outputs.loss

    allocated = {}

    def phase(name):
        allocated[name] = torch.cuda.max_memory_allocated()
        torch.cuda.reset_peak_memory_stats()

    for step in range(2):
        torch.cuda.reset_peak_memory_stats()
        begin, reserved = torch.cuda.memory_allocated(), 0
        loss = forward()
        after = torch.cuda.memory_allocated()
        reserved = max(reserved, torch.cuda.max_memory_reserved())
        phase("forward")
        loss.backward()
        reserved = max(reserved, torch.cuda.max_memory_reserved())
        phase("backward")
        optimizer.step()
        reserved = max(reserved, torch.cuda.max_memory_reserved())
        phase("optimizer")
        optimizer.zero_grad(set_to_none=True)
        del loss

    def whole_step():
        forward().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    times = dict(step_ns=median_step_ns(whole_step)) if on_gpu else {}
    models = [model] if reference is None else [model, reference]
    parameters = storage_sizes([inner for m in models for t in (*m.parameters(), *m.buffers())
                                for inner in plain(t)])
    states = [t for state in optimizer.state.values() for t in state.values()
              if isinstance(t, torch.Tensor)]
    watcher = make_watcher({**parameters, **storage_sizes(states),
                            **storage_sizes(inputs.values())}, parameters)
    live = {"begin": watcher.now}
    with watcher:
        with torch.autograd.graph.saved_tensors_hooks(watcher.pack, lambda tensor: tensor):
            loss = forward()
        kept = {key: size for key, size in watcher.saved.items()
                if key in watcher.alive and key not in parameters and key not in watcher.casts}
        live["forward"] = watcher.end_of_phase()
        loss.backward()
        live["backward"] = watcher.end_of_phase()
        optimizer.step()
        live["optimizer"] = watcher.end_of_phase()
        optimizer.zero_grad(set_to_none=True)
        del loss
    groups = collections.Counter(kept.values())
    if on_gpu:
        times["attention_operators"] = sorted(watcher.attention)
    return dict(saved=sum(kept.values()), live=live,
                allocated=dict(begin=begin, after_forward=after, **allocated), reserved=reserved,
                state=sum(storage_sizes(states).values()),
                parameters=sum(p.numel() for m in models for p in m.parameters()),
                trainable=sum(p.numel() for p in model.parameters() if p.requires_grad),
                storages=sorted(groups.items(), reverse=True), **times), groups


def measure_in_child(case, on_gpu):
    """In a process of its own: the allocator's cache and cuBLAS's workspaces start anew."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.close(reader)
        try:
            os.environ["STAND_IN_SM"] = str(case.get("sm", 80))
            result = measure(case, on_gpu)
        except Exception as error:  # said by the parent
            import traceback

            traceback.print_exc()
            result = (str(error), None)
        with os.fdopen(writer, "w") as pipe:
            json.dump(result, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else ("the process died", None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default=HERE / "cases.py", type=pathlib.Path,
                        help="a Python file that names the steps CASES")
    parser.add_argument("--only", default="", help="cases whose name matches this expression")
    parser.add_argument("--on-gpu", action="store_true", help="on this machine's GPU, with times")
    parser.add_argument("--show", action="store_true", help="numbers for people, saved storages too")
    arguments = parser.parse_args()
    if not arguments.on_gpu and os.environ.get("TIDEMARK_STAND_IN") != "ready":
        start_again_with_stand_in(sys.argv[1:])
    import torch  # imported once, before the processes of the cases

    OPTIMIZERS.update(runpy.run_path(str(HERE / "optimizers.py")))
    import transformers  # noqa: F401

    torch.set_num_threads(1)
    packages = ("torch", "transformers", "peft")
    versions = {name: importlib.metadata.version(name) for name in packages}
    cases = runpy.run_path(str(arguments.cases))["CASES"]
    if any("linears" in case or case.get("base") == "fp8" for case in cases):
        versions["torchao"] = importlib.metadata.version("torchao")
    if any("reference" in case for case in cases):
        versions["trl"] = importlib.metadata.version("trl")
    print(json.dumps(dict(versions=versions), separators=(",", ":"))[:-1] + ',"steps":[',
          flush=True)
    # What was measured stays, and can be read, if somebody stops it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    try:
        end_of_last = ""
        for case in cases:
            if not re.search(arguments.only, case["name"]):
                continue
            result, groups = measure_in_child(case, arguments.on_gpu)
            print(case["name"], result, file=sys.stderr, flush=True)
            if isinstance(result, str):
                continue
            if arguments.show:
                for size, count in sorted(groups.items(), key=lambda item: -int(item[0])):
                    print(f"  {count} x {size}", file=sys.stderr)
            config = json.dumps(case["config"], separators=(",", ":"))  # text, as in its own file
            row = json.dumps({**case, "config": config, **result}, separators=(",", ":"))
            print(end_of_last + row, end="", flush=True)
            end_of_last = ",\n"
    finally:
        print("\n]}")


if __name__ == "__main__":
    main()
