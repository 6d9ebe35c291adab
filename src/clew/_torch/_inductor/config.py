"""Switches of a compiler: programs may set them, and nothing reads them."""

from __future__ import annotations

from types import SimpleNamespace

from clew._torch._dynamo.config import patching

assert_indirect_indexing = True
conv_1x1_as_mm = False
coordinate_descent_check_all_directions = False
coordinate_descent_tuning = False
epilogue_fusion = True
force_fuse_int_mm_with_mul = False
force_same_precision = False
fx_graph_cache = True
max_autotune = False
max_autotune_gemm_backends = "ATEN,TRITON,CPP"
triton = SimpleNamespace(cudagraphs=False, unique_kernel_names=False, cudagraph_trees=True)
cpp = SimpleNamespace(threads=-1, simdlen=None)
patch = patching(globals())
