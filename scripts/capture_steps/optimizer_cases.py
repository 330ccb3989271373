# Steps so small that the optimizer makes their peak: every optimizer and form, in fp32 and in 16 bits.
# Beside what capture.py names these need lion-pytorch==0.2.5 and bitsandbytes==0.50.2.
import pathlib
import runpy

BASE = runpy.run_path(str(pathlib.Path(__file__).parent / "cases.py"))
CASES = []


def add(network, precision, optimizer, **more):
    label = "-".join([optimizer, *(str(v) if k == "optimizer_form" else k
                                   for k, v in more.items() if k != "lora")])
    label += "-lora" if "lora" in more else ""
    CASES.append(dict(name=f"{network}-{precision}-{label}", config=BASE["CONFIGS"][network],
                      precision=precision, attention="sdpa", batch=1, tokens=19,
                      optimizer=optimizer, **more))


for NETWORK, PRECISION in (("gpt2", "fp32"), ("llama", "bf16"), ("llama-gqa", "amp-bf16")):
    for FORM in ("for-loop", "foreach", "fused"):
        for OPTIMIZER in ("sgd", "sgd-momentum", "adamw"):
            add(NETWORK, PRECISION, OPTIMIZER, optimizer_form=FORM)
    for FORM in ("for-loop", "foreach"):
        for OPTIMIZER in ("adagrad", "rmsprop", "adafactor"):
            add(NETWORK, PRECISION, OPTIMIZER, optimizer_form=FORM)
        for OPTIMIZER in ("sgd", "sgd-momentum", "adagrad", "rmsprop"):
            add(NETWORK, PRECISION, OPTIMIZER, optimizer_form=FORM, l2_decay=True)
    for OPTIMIZER in ("adamw-32bit", "adamw-8bit", "lion", "lion-32bit", "lion-8bit",
                      "adafactor-transformers", "muon"):
        add(NETWORK, PRECISION, OPTIMIZER)
    add(NETWORK, PRECISION, "adamw", update_in_backward=True)
    add(NETWORK, PRECISION, "adamw", optimizer_form="fused", update_in_backward=True)
    add(NETWORK, PRECISION, "sgd-momentum", update_in_backward=True)
add("llama", "bf16", "adamw", lora=BASE["lora"]("q_proj", "v_proj"))
add("llama", "bf16", "adamw", optimizer_form="for-loop", lora=BASE["lora"]("q_proj", "v_proj"))
