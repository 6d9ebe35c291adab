"""The kinds of devices in DLPack's exchange of tensors."""

from __future__ import annotations

import enum


class DLDeviceType(enum.IntEnum):
    """The numbers of DLPack's header; clew gives and takes kDLCPU."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17
