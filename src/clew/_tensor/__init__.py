"""What Tensor has beyond the core: methods, text, pictures, pickles, shared memory."""
