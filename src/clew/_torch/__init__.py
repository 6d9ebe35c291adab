"""What only PyTorch's programs look for: names that clew itself has no use for.

`torch.x` is `clew._torch.x` where that exists, else `clew.x`. Nothing here is loaded with clew.
"""

from __future__ import annotations

import importlib
from typing import Any

# Names of the module `torch` and the modules of this package that hold them.
NAMES: dict[str, str] = {
    name: f"clew._torch.{module}"
    for module, names in {
        "_C": (
            "DeviceObjType DispatchKey DispatchKeySet PyTorchFileReader PyTorchFileWriter "
            "FloatType TensorType"
        ),
        "kinds": (
            "AcceleratorError Block ClassType CompilationUnit FatalError FunctionSchema Graph "
            "JITException ListType Node OptionalType ScriptFunction ScriptMethod ScriptObject Tag "
            "TupleType Use Value compiled_with_cxx11_abi per_channel_affine "
            "per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine "
            "per_tensor_symmetric qscheme quantize_per_channel quantize_per_tensor "
            "quantize_per_tensor_dynamic sym_constrain_range sym_constrain_range_for_size"
        ),
        "recurrent": ("gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell"),
        "_fake_quantize": ("fake_quantize_per_channel_affine fake_quantize_per_tensor_affine"),
        "names": (
            "Event Future ScriptModule Stream SymBool SymFloat SymInt "
            "_assert _assert_async _check _check_index _check_is_size _check_not_implemented "
            "_check_tensor_all _check_type _check_value _check_with _shape_as_tensor "
            "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo dsmm smm spmm "
            "_sample_dirichlet get_device_module is_vulkan_available "
            "sym_float sym_int sym_ite sym_max "
            "sym_min sym_not sym_sqrt sym_sum typename "
            "_mkldnn hspmm "
            "has_lapack has_mkl has_mps has_cuda has_cudnn has_mkldnn has_openmp has_spectral "
            "cond classes _is_functional_tensor "
            "fork wait is_distributed StorageBase legacy_contiguous_format while_loop "
            "eig lstsq matrix_rank set_vital solve symeig dsmm spmm _check_tensor_all_with "
            "_cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long "
            "_cast_Short _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo "
            "_standard_gamma _grouped_mm _scaled_mm _make_per_tensor_quantized_tensor"
        ),
    }.items()
    for name in names.split()
}


def find(name: str) -> Any:
    """The object that `torch.<name>` is."""
    return getattr(importlib.import_module(NAMES[name]), name)
