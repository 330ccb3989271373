"""How a training step of a PyTorch model becomes a trace, on a machine without a GPU."""
