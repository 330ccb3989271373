#!/usr/bin/env python3
"""Loss and gradients of small networks as PyTorch computes them, one JSON fixture per network.

    /usr/bin/python3 make_gradient_fixtures.py [--only swin] gradients/

Needs NumPy and PyTorch; the committed files were made with Debian 12's python3-torch 1.13.1, and with
PyTorch 2.6.0 those of gradient_decoders.py and gradient_families.py, on the CPU. The networks and the formula that fills them are in gradient_networks.py.

A fixture holds the loss and every gradient of a step in float64, rounded to float32, and how far
PyTorch's own float32 and bfloat16 steps are from it (`error`: see relative_errors()): the yardstick
for what rounding alone may do.
"""

import argparse
import base64
import json
import pathlib

import numpy as np
import torch

from gradient_decoders import gemma, glm4, gpt_neox, llamas_kin, olmo2, opt, phi3, stablelm
from gradient_families import mixtral, pvt, pvt_v2, t5
from gradient_networks import Network, bert, gpt2, llama, mvit, swin, vit

SMALL_KIN = dict(batch=2, tokens=12, vocabulary=31, width=16, depth=2, heads=4, key_heads=2,
                 head_width=4, mlp=24)
NETWORKS = {
    "vit": (vit, dict(batch=2, image=8, patch=2, width=16, depth=2, heads=2, mlp=32, classes=7)),
    "swin": (swin, dict(batch=2, image=16, patch=2, width=8, depths=[2, 2], heads=[2, 4], window=4,
                        classes=7)),
    "mvit": (mvit, dict(batch=2, image=32, width=8, depths=[1, 2], key_stride=2, classes=7)),
    "bert": (bert, dict(batch=2, tokens=12, vocabulary=31, width=16, depth=2, heads=2, mlp=32)),
    "gpt2": (gpt2, dict(batch=2, tokens=12, vocabulary=31, width=16, depth=2, heads=2, mlp=32)),
    "llama": (llama, dict(batch=2, tokens=12, vocabulary=31, width=16, depth=2, heads=4,
                          key_heads=2, head_width=4, mlp=24)),
    "gemma": (gemma, dict(batch=2, tokens=12, vocabulary=31, width=16, depth=2, heads=4,
                          key_heads=2, head_width=6, mlp=24, window=5, every=2, local_theta=100.0,
                          cap=2.0)),
    "gpt_neox": (gpt_neox, dict(batch=2, tokens=12, vocabulary=31, width=16, depth=2, heads=2,
                                mlp=32, rotary_width=4)),
    "phi3": (phi3, dict(batch=2, tokens=12, vocabulary=31, width=16, depth=2, heads=4, key_heads=2,
                        head_width=4, mlp=24)),
    "opt": (opt, dict(batch=2, tokens=12, vocabulary=31, width=16, depth=2, heads=2, mlp=32,
                      words_width=8)),
    "mixtral": (mixtral, dict(batch=2, tokens=12, vocabulary=31, width=16, depth=2, heads=4,
                              key_heads=2, head_width=4, mlp=24, experts=4, per_token=2)),
    "t5": (t5, dict(batch=2, tokens=12, vocabulary=31, width=16, depth=2, heads=2, head_width=8,
                    mlp=32, buckets=8, farthest=10)),
    "pvt": (pvt, dict(batch=2, image=32, widths=[4, 8, 12, 16], heads=[1, 2, 3, 4],
                      reductions=[4, 2, 1, 1], mlp_ratio=2, classes=7)),
    "pvt_v2": (pvt_v2, dict(batch=2, image=64, widths=[4, 8, 12, 16], heads=[1, 2, 3, 4],
                            mlp_ratio=2, classes=7)),
    "olmo2": (olmo2, dict(batch=2, tokens=12, vocabulary=31, width=16, depth=2, heads=2, mlp=24)),
    "stablelm": (stablelm, dict(batch=2, tokens=12, vocabulary=31, width=72, depth=1, heads=18,
                                key_heads=2, mlp=8, rotary_width=2)),
    "granite": (llamas_kin, dict(SMALL_KIN, factors=(12.0, 0.3, 0.22, 0.25))),
    "smollm3": (llamas_kin, dict(SMALL_KIN, still_every=2)),
    "hunyuan": (llamas_kin, dict(SMALL_KIN, norms_turned=True, epsilon=1e-5)),
    "ernie4_5": (llamas_kin, dict(SMALL_KIN, neighbours=True, epsilon=1e-5)),
    "glm4": (glm4, dict(SMALL_KIN, head_width=8)),
}


def step(network, sizes, dtype):
    net = Network(dtype)
    loss = network(net, **sizes)
    loss.backward()
    return loss.item(), {name: p.grad.double().numpy() for name, p in net.parameters.items()}


def relative_errors(found, reference):
    """‖g − r‖ / ‖r‖ per parameter. Some gradients vanish but for rounding (a key's bias shifts all
    scores of a row alike), so ‖r‖ is at least 1 % of the largest one in the network."""
    norms = {name: np.linalg.norm(r) for name, r in reference.items()}
    floor = max(norms.values()) / 100
    return [np.linalg.norm(found[name] - r) / max(norms[name], floor)
            for name, r in reference.items()]


def fixture(network, sizes):
    loss, gradients = step(network, sizes, torch.float64)
    error = {}
    for dtype in (torch.float32, torch.bfloat16):
        own_loss, own = step(network, sizes, dtype)
        error[str(dtype).split(".")[1]] = {
            "loss": abs(own_loss - loss) / loss,
            "gradients": max(relative_errors(own, gradients))}
    encoded = {name: {"shape": list(g.shape),
                      "float32": base64.b64encode(g.astype("<f4").tobytes()).decode()}
               for name, g in gradients.items()}
    return {"made_with": "PyTorch " + torch.__version__, "sizes": sizes, "loss": loss,
            "error": error, "gradients": encoded}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=NETWORKS)
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    for name in [arguments.only] if arguments.only else NETWORKS:
        made = fixture(*NETWORKS[name])
        path = arguments.folder / f"{name}.json"
        path.write_text(json.dumps(made, indent=1) + "\n")
        print(f"{path}: {path.stat().st_size} bytes, loss {made['loss']:.6f}, {made['error']}")


main()
