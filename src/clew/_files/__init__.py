"""Files of tensors: the zip container with its restricted pickle, and safetensors."""
