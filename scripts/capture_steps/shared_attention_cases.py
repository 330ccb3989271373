# The steps of steps_shared_attention_transformers-5.json: families that call fused attention since transformers 5, with
# a learned bias beside the mask (T5, Swin) and without one (ELECTRA); Swin as it was rewritten there, in both forms.
import pathlib
import runpy

BASE = runpy.run_path(str(pathlib.Path(__file__).parent / "cases.py"))
T5 = dict(BASE["CONFIGS"]["t5"])
ELECTRA = dict(BASE["CONFIGS"]["electra"])
SWIN = dict(model_type="swin", embed_dim=48, depths=[2, 3], num_heads=[2, 4], window_size=7, image_size=112,
            patch_size=4, num_labels=17, hidden_dropout_prob=0.1)
CASES = []


def add(network, config, precision, *labels, **more):
    attention = more.setdefault("attention", "sdpa")
    CASES.append(dict(name="-".join((network, precision, attention, *labels)), config=config, precision=precision,
                      **more))


for PRECISION in ("fp32", "amp-bf16", "bf16"):
    add("t5", T5, PRECISION, batch=3, tokens=120, target_tokens=88)
    add("t5-odd", T5, PRECISION, batch=3, tokens=115, target_tokens=91)
    add("electra", ELECTRA, PRECISION, batch=5, tokens=123)
    add("swin", SWIN, PRECISION, batch=6)
    add("swin", SWIN, PRECISION, batch=6, attention="math")
    add("swin-windows-of-16", dict(SWIN, window_size=4), PRECISION, batch=6)
for PRECISION in ("fp32", "amp-bf16"):
    add("t5", T5, PRECISION, "padded", batch=3, tokens=120, target_tokens=88, padded=True)
    add("t5", T5, PRECISION, "checkpoint", batch=3, tokens=120, target_tokens=88, checkpoint=True)
    add("electra", ELECTRA, PRECISION, "padded", batch=5, tokens=123, padded=True)
    add("swin", SWIN, PRECISION, "checkpoint", batch=6, checkpoint=True)
    add("swin", SWIN, PRECISION, "checkpoint", batch=6, checkpoint=True, attention="math")
