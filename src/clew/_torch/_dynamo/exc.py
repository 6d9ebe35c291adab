"""What PyTorch's compiler raises; here nothing does."""

from __future__ import annotations


class TorchDynamoException(RuntimeError):
    """Base class of the compiler's exceptions."""


class BackendCompilerFailed(TorchDynamoException):
    """A backend failed."""


class Unsupported(TorchDynamoException):
    """The program does what cannot be compiled."""


class UserError(Unsupported):
    """The program asks for what cannot be compiled."""


class RestartAnalysis(TorchDynamoException):
    """A program is compiled anew."""


class TensorifyScalarRestartAnalysis(RestartAnalysis):
    """A program is compiled anew with numbers as tensors."""
