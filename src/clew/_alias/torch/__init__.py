"""Stands where PyTorch is looked for: importing it makes `torch` mean clew in this process."""

try:
    from clew._cli.run import become_torch
except ModuleNotFoundError:  # another environment's Python: take the clew that this folder is in
    import os
    import sys

    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "..")))
    from clew._cli.run import become_torch

become_torch()
