"""ONNX's numbers by the names of dtypes in scripts."""

from __future__ import annotations

from clew._torch._more.onnx import TensorProtoDataType as _Type

cast_pytorch_to_onnx = {
    "Byte": _Type.UINT8,
    "Char": _Type.INT8,
    "Double": _Type.DOUBLE,
    "Float": _Type.FLOAT,
    "Half": _Type.FLOAT16,
    "Int": _Type.INT32,
    "Long": _Type.INT64,
    "Short": _Type.INT16,
    "Bool": _Type.BOOL,
    "ComplexFloat": _Type.COMPLEX64,
    "ComplexDouble": _Type.COMPLEX128,
    "BFloat16": _Type.BFLOAT16,
    "Undefined": _Type.UNDEFINED,
}
