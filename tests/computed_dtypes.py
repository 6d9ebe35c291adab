"""The dtypes that operations compute with, but for the wider unsigned ones."""

import clew

DTYPES = [
    clew.bool,
    clew.uint8,
    clew.int8,
    clew.int16,
    clew.int32,
    clew.int64,
    clew.float16,
    clew.bfloat16,
    clew.float32,
    clew.float64,
    clew.complex64,
    clew.complex128,
]
