# The steps of steps_tied.json: few tokens beside a vocabulary that embedding and head share, so that the peak
# lies where the two gradients of one weight are added. Not under autocast: there PyTorch adds in place, but not while
# this measurement's dispatch mode holds on to what a cast has made.


def network(model_type, **fields):
    sizes = (
        {"n_embd": 128, "n_layer": 2, "n_head": 4, "n_positions": 300}
        if model_type == "gpt2"
        else {
            "hidden_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 300,
            "max_position_embeddings": 300,
        }
    )
    return {"model_type": model_type, "vocab_size": 5000, **sizes, **fields}


CASES = [
    {
        "name": f"tied-{config['model_type']}-{precision}",
        "config": config,
        "precision": precision,
        "attention": "sdpa",
        "batch": 1,
        "tokens": 20,
    }
    for config in (network("gpt2"), network("llama", tie_word_embeddings=True), network("bert"))
    for precision in ("fp32", "bf16")
]
