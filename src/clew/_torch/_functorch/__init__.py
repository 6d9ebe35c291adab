"""Inner names of PyTorch's function transforms."""
