"""A model of transformers by its config.json: the installed version's own code, and a batch for it.

    tidemark capture config.json -b 8 -s 512      a file, or the folder that holds one

Which class is built says --head, or what the config's `architectures` name; without either the first
of LOSSES that transformers has for the family. What a batch is made of is read from the class's
forward: ids, masks, pictures, labels. Nothing is downloaded, and no code that comes with a model runs.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import inspect
import json
import os
import pathlib
import sys
from typing import Any, Callable

import torch

from .errors import CaptureError
from .step import Step

# By the names of `tidemark compare --head`. An encoder-decoder's language model is a class of its own.
LOSSES = {"mlm": ("AutoModelForMaskedLM",),
          "lm": ("AutoModelForSeq2SeqLM", "AutoModelForCausalLM"),
          "pretraining": ("AutoModelForPreTraining",),
          "image-classification": ("AutoModelForImageClassification",),
          "sequence-classification": ("AutoModelForSequenceClassification",),
          "token-classification": ("AutoModelForTokenClassification",),
          "question-answering": ("AutoModelForQuestionAnswering",),
          "next-sentence": ("AutoModelForNextSentencePrediction",),
          "none": ("AutoModel",)}
ATTENTION = {"sdpa": "sdpa", "math": "eager"}
POSITIONS = ("max_position_embeddings", "max_seq_len", "context_length")
MOST_TOKENS = 2048  # as of the models that Tidemark knows
OWN_STEP = "write a make_step for it, docs/capture.md"


def read(target: str) -> dict[str, Any]:
    path = pathlib.Path(target)
    path = path / "config.json" if path.is_dir() else path
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CaptureError(f"{path}: {error}") from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise CaptureError(f"{path}: no model_type in it; need the config.json of a model of "
                           "transformers, or SCRIPT.py:FUNCTION")
    return config


def class_in(config: dict[str, Any]) -> str:
    """Of `architectures`, which may be missing or null."""
    return (config.get("architectures") or [""])[0]


def without_dtypes(data: Any) -> tuple[Any, set[Any]]:
    """Of the whole and its towers, and what they were: the step's precision casts the weights."""
    if not isinstance(data, dict):
        return data, set()
    found = {data.get("dtype"), data.get("torch_dtype")} - {None}
    rest = {}
    for key, value in data.items():
        if key not in ("dtype", "torch_dtype"):
            rest[key], inner = without_dtypes(value)
            found |= inner
    return rest, found


def config_of(target: str, data: dict[str, Any]) -> Any:
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        import transformers
    except ImportError as error:
        raise CaptureError(f"{target}: needs transformers beside PyTorch ({error})") from error
    kind = data["model_type"]
    named = getattr(transformers, class_in(data), None)
    if kind in transformers.CONFIG_MAPPING:
        config = transformers.CONFIG_MAPPING[kind].from_dict(data)
    elif named is not None:  # Kimi K2's files name DeepSeek-V3's class
        config = named.config_class.from_dict(data)
    else:
        raise CaptureError(f"{target}: transformers {transformers.__version__} has no model_type "
                           f"{kind!r}; with a version that has it, or where its code comes with "
                           f"the model, {OWN_STEP}")
    config.use_cache = False  # of generation
    return config


def maker(config: Any, head: str | None) -> Callable[..., Any]:
    """What builds the model: the class that the config names, or the first of the head, or of any."""
    import transformers

    if head is not None and head not in LOSSES:
        raise CaptureError(f"--head {head} is not one of transformers' auto classes (known: "
                           f"{', '.join(LOSSES)})")
    named = getattr(transformers, class_in(config.to_dict()), None)
    if head is None and named is not None:
        return named._from_config
    for key, names in LOSSES.items():
        for name in names if head in (None, key) else ():
            auto = getattr(transformers, name)
            if type(config) in auto._model_mapping.keys():
                return auto.from_config
    asked = f"--head {head}" if head else "class"
    raise CaptureError(f"{config.model_type} has no {asked} in transformers "
                       f"{transformers.__version__}")


def model_of(config: Any, options: argparse.Namespace) -> torch.nn.Module:
    attention = ATTENTION.get(options.attention or "sdpa")
    if attention is None:
        raise CaptureError(f"--attention {options.attention}: a config is captured with one of "
                           f"{', '.join(ATTENTION)}")
    asked = dict(attn_implementation=attention) if options.attention else {}
    model = maker(config, options.head)(config, **asked)
    print(f"tidemark capture: {type(model).__name__} of transformers "
          f"{importlib.metadata.version('transformers')}", file=sys.stderr)
    return model


class Batch:
    """What the model's forward is called with."""

    def __init__(self, model: Any, options: argparse.Namespace) -> None:
        self.model, self.options = model, options
        self.config = model.config
        self.takes = inspect.signature(model.forward).parameters
        self.samples = options.batch or 1
        self.text = self.config.get_text_config() if hasattr(self.config, "get_text_config") \
            else self.config

    def zeros(self, *shape: int, dtype: torch.dtype = torch.long) -> torch.Tensor:
        return torch.zeros(self.samples, *shape, dtype=dtype)

    def tokens(self) -> int:
        """Rounded down to a multiple of 8: some tables begin with rows for padding."""
        if self.options.sequence:
            return int(self.options.sequence)
        given = [getattr(self.text, key, None) for key in POSITIONS]
        positions = next((x for x in given if x and x > 0), MOST_TOKENS)  # XLNet's are -1
        return min(MOST_TOKENS, positions - positions % 8 or positions)

    def ids(self, length: int) -> torch.Tensor:
        """A token that means nothing to the model, and at the end the one that ends a text."""
        special = {value for key, value in self.text.to_dict().items()
                   if key.endswith(("token_id", "token_index")) and isinstance(value, int)}
        ids = self.zeros(length) + next(x for x in range(len(special) + 1) if x not in special)
        end = getattr(self.text, "eos_token_id", None)
        if isinstance(end, int):
            ids[:, -1] = end
        return ids

    def side(self) -> tuple[int, int]:
        vision = getattr(self.config, "vision_config", self.config)
        size = self.options.image or getattr(vision, "image_size", 224)
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        return int(height), int(width)

    def add_text(self, batch: dict[str, torch.Tensor]) -> None:
        ids = batch["input_ids"] = self.ids(self.tokens())
        if "attention_mask" in self.takes:
            mask = batch["attention_mask"] = torch.ones_like(ids)
            if self.options.padded:
                mask[0, -1] = 0

    def add_pictures(self, batch: dict[str, torch.Tensor]) -> None:
        vision = getattr(self.config, "vision_config", self.config)
        frames = [vision.num_frames] if hasattr(vision, "num_frames") else []
        batch["pixel_values"] = self.zeros(*frames, getattr(vision, "num_channels", 3), *self.side(),
                                           dtype=torch.float32)

    def add_sound(self, batch: dict[str, torch.Tensor], name: str) -> None:
        if name == "input_features" and hasattr(self.config, "max_source_positions"):
            shape: tuple[int, ...] = (self.config.num_mel_bins, 2 * self.config.max_source_positions)
        elif name == "input_values" and self.options.sequence:
            shape = (int(self.options.sequence),)
        elif name == "input_values":
            raise CaptureError("--sequence says how many samples of sound the model hears (16000 are "
                               "a second)")
        else:
            raise CaptureError(f"{type(self.model).__name__} is called with {name}, of which none can "
                               f"be made here: {OWN_STEP}")
        batch[name] = self.zeros(*shape, dtype=torch.float32)

    def labels(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        name = type(self.model).__name__
        if name.endswith("SemanticSegmentation"):
            return self.zeros(*self.side())
        if name.endswith(("Classification", "Prediction")) and "Token" not in name:
            return self.classes()
        if self.config.is_encoder_decoder or name.endswith("CTC"):
            return self.zeros(int(self.options.target_sequence or self.tokens()))
        if "input_ids" in batch and name.endswith(("LM", "LMHeadModel", "TokenClassification",
                                                   "ForPreTraining", "ConditionalGeneration")):
            return torch.zeros_like(batch["input_ids"])
        raise CaptureError(f"what {name} is told to learn cannot be made here: {OWN_STEP}")

    def classes(self) -> torch.Tensor:
        """Numbers where there is one label, which is a regression; a row of them where several hold."""
        if self.config.problem_type == "multi_label_classification":
            return self.zeros(self.config.num_labels, dtype=torch.float32)
        return self.zeros(dtype=torch.float32 if self.config.num_labels == 1 else torch.long)

    def made(self) -> dict[str, Any]:
        batch: dict[str, Any] = {}
        name = self.model.main_input_name
        pairs = "return_loss" in self.takes  # of a text and a picture
        if "input_ids" in self.takes and name in ("input_ids", "pixel_values"):
            self.add_text(batch)
        if name == "pixel_values" or pairs:
            self.add_pictures(batch)
        if not batch:
            self.add_sound(batch, name)
        if pairs:
            batch["return_loss"] = True
        if "start_positions" in self.takes:
            return batch | dict(start_positions=self.zeros(), end_positions=self.zeros())
        for key in ("next_sentence_label", "sentence_order_label"):
            if key in self.takes:
                batch[key] = self.zeros()
        if "labels" in self.takes:
            batch["labels"] = self.labels(batch)
        return batch


def mean_of_outputs(output: Any) -> torch.Tensor:
    """Of a model that has no loss: it stands for what somebody puts on it."""
    if getattr(output, "loss", None) is not None:
        return output.loss
    return sum(x.mean() for x in output.values()
               if isinstance(x, torch.Tensor) and x.requires_grad)


def step_of(target: str, options: argparse.Namespace) -> Step:
    data, dtypes = without_dtypes(read(target))
    model = model_of(config_of(target, data), options)
    return Step(model, Batch(model, options).made(), mean_of_outputs,
                precision="bf16" if "bfloat16" in dtypes else "fp32")
