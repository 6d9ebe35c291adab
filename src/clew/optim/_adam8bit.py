"""Adam with moments of eight bits an element."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import clew
from clew import Tensor

from ._rule import (
    ParamsT,
    _check,
    _check_betas,
    _check_lr,
    _check_nonnegative,
    _number,
    _PerParameter,
    _step_tensor,
)

__all__ = ["Adam8bit", "AdamW8bit", "dequantize_blockwise", "quantize_blockwise"]

_SLICE = 1 << 20  # elements that are worked on at a time, a multiple of any sensible block


@functools.cache
def _map(signed: bool) -> tuple[Tensor, Tensor]:
    """The 256 values of a code, rising, and the borders between them.

    For each of seven powers of ten the interval from a tenth of it to itself is cut into equal
    parts, twice as many for the next power; their middles are values, with both signs or one, and 0
    and 1 (Dettmers et al. 2022, section 2.3: dynamic tree quantization).
    """
    values = [0.0, 1.0]
    for power in range(7):
        parts = 1 << (power + (0 if signed else 1))
        for i in range(parts):
            middle = (0.1 + 0.9 * (i + 0.5) / parts) * 10.0 ** (power - 6)
            values += [middle, -middle] if signed else [middle]
    code = clew.tensor(sorted(values), dtype=clew.float32)
    return code, (code[1:] + code[:-1]) / 2


def quantize_blockwise(
    input: Tensor, block_size: int = 256, signed: bool = True
) -> tuple[Tensor, Tensor]:
    """Eight bits an element, and the greatest size of each block
    (Dettmers et al., 8-bit Optimizers via Block-wise Quantization, 2022).

    Args:
        input: float32, any shape.
        block_size: elements that share a size.
        signed: whether there are negative ones.

    Returns:
        The elements' codes, uint8 of input's shape, and float32 sizes, one a block.

    Example:
        >>> codes, sizes = clew.optim._adam8bit.quantize_blockwise(clew.tensor([1.0, -0.5, 0.0]))
        >>> clew.optim._adam8bit.dequantize_blockwise(codes, sizes)[0].item()
        1.0
    """
    flat = input.reshape(-1)
    blocks = -(-flat.numel() // block_size)
    padded = flat
    if blocks * block_size != flat.numel():
        padded = clew.nn.functional.pad(flat, (0, blocks * block_size - flat.numel()))
    rows = padded.view(blocks, block_size)
    sizes = rows.abs().amax(1) if blocks else rows.new_zeros(0)
    scaled = rows / sizes.clamp(min=1e-38).unsqueeze(1)
    codes = clew.bucketize(scaled, _map(signed)[1], out_int32=True)
    if not signed:  # a second moment that became 0 would divide by eps alone
        codes = clew.maximum(codes, (rows > 0).to(codes.dtype))
    codes = codes.to(clew.uint8)
    return codes.view(-1)[: flat.numel()].view(input.shape), sizes


def dequantize_blockwise(
    codes: Tensor, sizes: Tensor, block_size: int = 256, signed: bool = True
) -> Tensor:
    """The values that codes stand for.

    Args:
        codes: as `quantize_blockwise` gives them.
        sizes: as it gives them.
        block_size: as it was given.
        signed: as it was given.
    """
    values = _map(signed)[0][codes.reshape(-1).int()]
    count = values.numel()
    blocks = sizes.numel()
    if blocks * block_size != count:
        values = clew.nn.functional.pad(values, (0, blocks * block_size - count))
    made = values.view(blocks, block_size) * sizes.unsqueeze(1)
    return made.view(-1)[:count].view(codes.shape)


class Adam8bit(_PerParameter):
    """Adam whose two moments take two bytes a parameter instead of eight, and a little for blocks.

    Parameters of fewer than 4,096 elements keep float32 moments. A step takes some 30 ns an
    element; Adam's takes 1.

    m = beta1 * m + (1 - beta1) * g, v = beta2 * v + (1 - beta2) * g**2 and w = w - lr * (m / (1 -
    beta1**t)) / (sqrt(v / (1 - beta2**t)) + eps), in float32. Between steps each block of m and v
    is kept as codes q and the block's greatest size s: m = s * map[q], with 256 values in the map.

    Source: Dettmers, Lewis, Shleifer and Zettlemoyer, 8-bit optimizers via block-wise quantization
    (2022).

    Args:
        params: tensors of any shape, floating point; (name, tensor) pairs; or dicts with
            `params` and options of that group.
        lr: step length, a number or a tensor with one element.
        betas: decay of the first and second moment.
        eps: added to the denominator.
        weight_decay: L2 penalty; of AdamW8bit the rate at which parameters shrink.
        amsgrad: must be False.
        block_size: elements that share a scale.
        maximize: climb instead of descending.

    Example:
        >>> w = clew.zeros(5000, requires_grad=True)
        >>> opt = clew.optim.Adam8bit([w], lr=0.5)
        >>> ((w - 1) ** 2).sum().backward()
        >>> opt.step()
        >>> w[0].item(), opt.state[w]["exp_avg"].dtype
        (0.5, clew.uint8)
    """

    _clew_decoupled: ClassVar[bool] = False
    _clew_least: ClassVar[int] = 4096

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        block_size: int = 256,
        maximize: bool = False,
    ) -> None:
        name = type(self).__name__
        _check_lr(name, lr)
        _check_betas(name, betas)
        _check_nonnegative(name, eps=eps, weight_decay=weight_decay)
        _check(name, not amsgrad, "amsgrad must be False", amsgrad)
        ok = isinstance(block_size, int) and block_size > 0 and _SLICE % block_size == 0
        _check(name, ok, "block_size must be a power of two of at most 2**20", block_size)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "block_size": block_size,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _clew_init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = _step_tensor()
        small = param.numel() < self._clew_least or not param.is_floating_point()
        if small:
            dtype = param.dtype if param.dtype == clew.float64 else clew.float32
            state["exp_avg"] = clew.zeros(param.shape, dtype=dtype)
            state["exp_avg_sq"] = clew.zeros(param.shape, dtype=dtype)
            return
        blocks = -(-param.numel() // group["block_size"])
        for name, signed in (("exp_avg", True), ("exp_avg_sq", False)):
            zero = int(clew.bucketize(clew.zeros(()), _map(signed)[1]).item())
            state[name] = clew.full(param.shape, zero, dtype=clew.uint8)
            state[f"{name}_scale"] = clew.zeros(blocks)

    def _clew_update(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]
    ) -> None:
        if grad.is_complex() or grad.is_sparse:
            raise RuntimeError(
                f"{type(self).__name__}: gradients must be real and dense; got {grad.dtype}"
            )
        state["step"] += 1
        t, block = state["step"].item(), group["block_size"]
        beta1, beta2 = group["betas"]
        rate, decay = _number(group["lr"]), group["weight_decay"]
        quantized = "exp_avg_scale" in state
        flat = param.reshape(-1) if param.is_contiguous() else param.contiguous().view(-1)
        g_all = grad.reshape(-1)
        m_all, v_all = state["exp_avg"].view(-1), state["exp_avg_sq"].view(-1)
        for begin in range(0, flat.numel(), _SLICE):
            at = slice(begin, begin + _SLICE)
            scales = slice(begin // block, begin // block + -(-min(_SLICE, flat.numel()) // block))
            p, g = flat[at], g_all[at].to(clew.float32 if quantized else m_all.dtype)
            if group["maximize"]:
                g = -g
            if decay and not self._clew_decoupled:
                g = g + decay * p.to(g.dtype)
            if quantized:
                m = dequantize_blockwise(m_all[at], state["exp_avg_scale"][scales], block, True)
                v = dequantize_blockwise(v_all[at], state["exp_avg_sq_scale"][scales], block, False)
            else:
                m, v = m_all[at], v_all[at]
            m.lerp_(g, 1 - beta1)
            v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
            if quantized:
                for name, value, whole, signed in (
                    ("exp_avg_scale", m, m_all, True),
                    ("exp_avg_sq_scale", v, v_all, False),
                ):
                    codes, sizes = quantize_blockwise(value, block, signed)
                    whole[at] = codes
                    state[name][scales] = sizes
            if decay and self._clew_decoupled:
                p.mul_(1 - rate * decay)
            denominator = (v / (1 - beta2**t)).sqrt_().add_(group["eps"])
            p.sub_((m / denominator * (rate / (1 - beta1**t))).to(p.dtype))
        if not param.is_contiguous():
            param.copy_(flat.view(param.shape))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state; codes and scales stay in their dtypes.

        Args:
            state_dict: what `state_dict` gave.
        """
        super().load_state_dict(state_dict)
        order = [n for g in state_dict["param_groups"] for n in g["params"]]
        params = [p for g in self.param_groups for p in g["params"]]
        for number, param in zip(order, params):
            for name, value in state_dict["state"].get(number, {}).items():
                if isinstance(value, Tensor) and name != "step":
                    self.state[param][name] = value.detach().clone()


class AdamW8bit(Adam8bit):
    """AdamW whose two moments take two bytes a parameter; see `Adam8bit`.

    w = (1 - lr * weight_decay) * w, then w = w - lr * (m / (1 - beta1**t)) / (sqrt(v / (1 -
    beta2**t)) + eps), with m and v of the gradient alone.

    Source: Loshchilov and Hutter, Decoupled weight decay regularization (2019); Dettmers, Lewis,
    Shleifer and Zettlemoyer, 8-bit optimizers via block-wise quantization (2022).

    Args:
        params: tensors of any shape, floating point; (name, tensor) pairs; or dicts with
            `params` and options of that group.
        lr: step length, a number or a tensor with one element.
        betas: decay of the first and second moment.
        eps: added to the denominator.
        weight_decay: how fast parameters shrink.
        amsgrad: must be False.
        block_size: elements that share a scale.
        maximize: climb instead of descending.

    Example:
        >>> w = clew.ones(5000, requires_grad=True)
        >>> opt = clew.optim.AdamW8bit([w], lr=0.5, weight_decay=0.1)
        >>> w.grad = clew.zeros(5000)
        >>> opt.step()
        >>> round(w[0].item(), 4)
        0.95
    """

    _clew_decoupled: ClassVar[bool] = True

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        block_size: int = 256,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            block_size=block_size,
            maximize=maximize,
        )
