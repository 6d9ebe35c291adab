"""Pruning, gradients of convolutions, masks and other small parts of nn."""

from __future__ import annotations

import numpy as np
import pytest

import clew
from clew import nn
from clew.nn import functional as F
from clew.nn.utils import prune

t = clew.tensor


def layer():
    m = nn.Linear(3, 2)
    with clew.no_grad():
        m.weight.copy_(t([[1.0, -5.0, 2.0], [-3.0, 0.5, 4.0]]))
    return m


def test_least_elements():
    m = prune.l1_unstructured(layer(), "weight", 2)
    assert m.weight.tolist() == [[0, -5, 2], [-3, 0, 4]]
    assert sorted(m.state_dict()) == ["bias", "weight_mask", "weight_orig"]
    assert prune.is_pruned(nn.Sequential(m))
    m(clew.ones(1, 3)).sum().backward()
    assert m.weight_orig.grad.tolist() == [[0, 1, 1], [1, 0, 1]]
    prune.l1_unstructured(m, "weight", 0.5)  # half of the four that are left
    assert m.weight.tolist() == [[0, -5, 0], [0, 0, 4]]
    prune.remove(m, "weight")
    assert not prune.is_pruned(m) and sorted(m.state_dict()) == ["bias", "weight"]
    assert m.weight.tolist() == [[0, -5, 0], [0, 0, 4]] and isinstance(m.weight, nn.Parameter)


def test_slices_random_masks_and_scores():
    m = prune.ln_structured(layer(), "weight", 1, 2, 1)
    assert m.weight.tolist() == [[0, -5, 2], [0, 0.5, 4]]
    prune.ln_structured(m, "weight", 1, 1, 0)
    assert m.weight.tolist() == [[0, -5, 2], [0, 0, 0]] or m.weight.tolist()[0] == [0, 0, 0]
    m = prune.random_unstructured(layer(), "weight", 4)
    assert int((m.weight == 0).sum()) == 4
    m = prune.random_structured(layer(), "weight", 0.5, 0)
    assert int((m.weight == 0).all(1).sum()) == 1
    m = prune.custom_from_mask(layer(), "weight", t([[1, 0, 0], [0, 0, 1]]))
    assert m.weight.tolist() == [[1, 0, 0], [0, 0, 4]]
    assert prune.identity(layer(), "weight").weight_mask.sum() == 6
    scores = t([[0.0, 9, 9], [9, 9, 9]])
    m = prune.l1_unstructured(layer(), "weight", 1, scores)
    assert m.weight.tolist() == [[0, -5, 2], [-3, 0.5, 4]]
    a, b = layer(), layer()
    pairs = [(a, "weight"), (b, "weight")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=4)
    assert a.weight.tolist() == b.weight.tolist() == [[0, -5, 2], [-3, 0, 4]]


@pytest.mark.parametrize(
    ("what", "error"),
    [
        (lambda: prune.l1_unstructured(layer(), "weight", 7), ValueError),
        (lambda: prune.l1_unstructured(layer(), "weight", 1.5), ValueError),
        (lambda: prune.l1_unstructured(layer(), "weight", "x"), TypeError),
        (lambda: prune.ln_structured(layer(), "bias", 1, 2, 0), ValueError),
        (lambda: prune.ln_structured(layer(), "weight", 1, 2, 5), IndexError),
        (lambda: prune.remove(layer(), "weight"), ValueError),
    ],
)
def test_prune_mistakes(what, error):
    with pytest.raises(error):
        what()


def test_a_failed_pruning_leaves_the_module_as_it_was():
    m = layer()
    before = m.weight
    with pytest.raises(IndexError):
        prune.ln_structured(m, "weight", 1, 2, 5)
    assert m.weight is before and set(m._parameters) == set(layer()._parameters)
    assert not m._forward_pre_hooks and not list(m.buffers())


@pytest.mark.parametrize("amount", [1.5, "x", 100])
@pytest.mark.parametrize("times", [1, 2])
def test_a_failed_pruning_keeps_what_was_pruned_before(amount, times):
    m = layer()
    for _ in range(times):
        prune.l1_unstructured(m, "weight", 1)
    before, (hook,) = sorted(m.state_dict()), m._forward_pre_hooks.values()
    with pytest.raises((ValueError, TypeError), match="amount"):
        prune.l1_unstructured(m, "weight", amount)
    assert sorted(m.state_dict()) == before and list(m._forward_pre_hooks.values()) == [hook]
    with clew.no_grad():
        m.weight_orig.fill_(1.0)
    assert m(clew.ones(3)).sub(m.bias).sum() == 6 - times  # the mask still works
    prune.l1_unstructured(m, "weight", 1)
    assert len(m._forward_pre_hooks) == 1 and int(m.weight_mask.sum()) == 5 - times


def test_only_parameters_are_pruned():
    m = nn.BatchNorm1d(3)
    with pytest.raises(TypeError, match="'running_mean' of BatchNorm1d must be a parameter"):
        prune.l1_unstructured(m, "running_mean", 1)
    assert "running_mean" in dict(m.named_buffers())


@pytest.mark.parametrize("n", [1, 2, 3])
def test_gradients_of_convolutions(n):
    conv = getattr(F, f"conv{n}d")
    x = clew.randn(2, 4, *[5] * n, requires_grad=True)
    w = clew.randn(4, 2, *[3] * n, requires_grad=True)
    out = conv(x, w, None, 2, 1, 1, 2)
    g = clew.randn(*out.shape)
    out.backward(g)
    got = getattr(nn.grad, f"conv{n}d_input")(x.shape, w, g, 2, 1, 1, 2)
    np.testing.assert_allclose(got.numpy(), x.grad.numpy(), atol=1e-4)
    got = getattr(nn.grad, f"conv{n}d_weight")(x, w.shape, g, 2, 1, 1, 2)
    np.testing.assert_allclose(got.numpy(), w.grad.numpy(), atol=1e-4)


def test_pdist_and_conv_tbc():
    x = t(np.random.default_rng(0).normal(size=(4, 3)))
    a = x.numpy()
    want = [np.abs(a[i] - a[j]).sum() for i in range(4) for j in range(i + 1, 4)]
    np.testing.assert_allclose(F.pdist(x, 1).numpy(), want)
    w, b = clew.randn(2, 3, 5), clew.randn(5)
    seq = clew.randn(6, 2, 3)
    got = F.conv_tbc(seq, w, b, 1)
    want = F.conv1d(seq.permute(1, 2, 0), w.permute(2, 1, 0), b, padding=1).permute(2, 0, 1)
    assert got.shape == (7, 2, 5) and clew.equal(got, want)


def test_linear_cross_entropy():
    m = nn.LinearCrossEntropyLoss(4, 3, bias=True, label_smoothing=0.1)
    x, y = clew.randn(5, 4), t([0, 1, 2, -100, 1])
    want = F.cross_entropy(m.linear(x), y, label_smoothing=0.1)
    np.testing.assert_allclose(m(x, y).item(), want.item(), rtol=1e-6)
    m = nn.LinearCrossEntropyLoss(4, 3, out_features=(2,))
    z = clew.randint(0, 3, (5, 2))
    want = F.cross_entropy(m.linear(x).reshape(5, 3, 2), z)
    np.testing.assert_allclose(m(x, z).item(), want.item(), rtol=1e-6)
    with pytest.raises(TypeError, match="options"):
        F.linear_cross_entropy(x, m.linear.weight, y, options=1)
    m = nn.LinearCrossEntropyLoss(4, 3, options=nn.LinearCrossEntropyOptions(batch_chunk_size=2))
    np.testing.assert_allclose(m(x, y).item(), F.cross_entropy(m.linear(x), y).item(), rtol=1e-6)


def test_linear_cross_entropy_of_another_ignored_class():
    m = nn.LinearCrossEntropyLoss(4, 3, ignore_index=1)
    x, y = clew.randn(5, 4), t([0, 1, 2, 0, 1])
    want = F.cross_entropy(m.linear(x), y, ignore_index=1)
    np.testing.assert_allclose(m(x, y).item(), want.item(), rtol=1e-6)


def test_masks_and_kernels():
    from clew.nn.attention import SDPBackend, sdpa_kernel
    from clew.nn.attention.bias import causal_lower_right, causal_upper_left

    assert causal_upper_left(2, 3).tolist() == [[True, False, False], [True, True, False]]
    assert causal_lower_right(2, 3).tolist() == [[True, True, False], [True, True, True]]
    with sdpa_kernel([SDPBackend.MATH]):
        pass
    with (
        pytest.raises(RuntimeError, match="no available kernel"),
        sdpa_kernel(SDPBackend.CUDNN_ATTENTION),
    ):
        pass


def test_data_parallel_is_the_module():
    m = nn.DataParallel(layer())
    x = clew.ones(1, 3)
    assert clew.equal(m(x), m.module(x)) and "module.weight" in m.state_dict()
    with pytest.raises(RuntimeError, match="CPU only"):
        nn.DataParallel(layer(), device_ids=[0, 1])
    with pytest.raises(RuntimeError, match="CPU only"):
        nn.DataParallel(layer(), device_ids=["cpu"], output_device=1)
    cpu = clew.device("cpu")  # as programs pass on that spread over the devices that there are
    spread = nn.DataParallel(layer(), device_ids=[cpu, cpu], output_device="cpu")
    assert spread.device_ids == [] and isinstance(spread.module, nn.Module)


def test_places_of_classes():
    import importlib

    places = {
        "activation": "ReLU", "batchnorm": "_BatchNorm", "channelshuffle": "ChannelShuffle",
        "container": "Sequential", "conv": "_ConvNd", "distance": "PairwiseDistance",
        "dropout": "Dropout", "flatten": "Flatten", "fold": "Fold", "instancenorm": "_InstanceNorm",
        "lazy": "LazyModuleMixin", "linear": "Linear", "loss": "_Loss", "module": "Module",
        "normalization": "LayerNorm", "padding": "ZeroPad2d", "pixelshuffle": "PixelShuffle",
        "pooling": "MaxPool2d", "rnn": "RNNBase", "sparse": "Embedding",
        "transformer": "Transformer", "upsampling": "Upsample", "utils": "_pair",
    }  # fmt: skip
    for place, name in places.items():
        assert hasattr(importlib.import_module(f"clew.nn.modules.{place}"), name)


CHANNELS = {"Dropout1d": (4,), "Dropout2d": (4, 4), "Dropout3d": (4, 4, 4)}


@pytest.mark.parametrize("name", ["Dropout", *CHANNELS, "AlphaDropout", "FeatureAlphaDropout"])
def test_dropout_in_place(name):
    """What stays as it is is not written, so that it may be a leaf; what is written is recorded."""
    shape = (2, 3, *CHANNELS.get(name, ()))
    leaf = clew.ones(shape, requires_grad=True)
    kind = getattr(clew.nn, name)
    assert kind(inplace=True).eval()(leaf) is leaf
    assert kind(p=0.0, inplace=True)(leaf) is leaf and leaf._version == 0
    with pytest.raises(RuntimeError, match="leaf"):
        kind(inplace=True)(leaf)
    y = leaf * 2
    version = y._version
    assert kind(inplace=True)(y) is y and y._version > version
    twin = leaf.detach().requires_grad_()
    clew.manual_seed(0)
    z = kind(inplace=True)(twin * 2)
    (z * z).sum().backward()
    clew.manual_seed(0)
    (kind()(leaf * 2) ** 2).sum().backward()
    assert twin.grad.equal(leaf.grad) and twin.grad.any()


@pytest.mark.parametrize("dim", [0, 1])
def test_slices_of_a_dim_counted_from_the_end(dim):
    m = prune.ln_structured(layer(), "weight", 1, 2, dim - 2)
    assert m.weight.equal(prune.ln_structured(layer(), "weight", 1, 2, dim).weight)
    assert int((m.weight_mask == 0).all(1 - dim).sum()) == 1


def test_slices_by_norms_that_have_names():
    rows = t([[1.0, 1.0], [5.0, 0.0], [0.0, 2.0]])
    by_name = prune.LnStructured(amount=1, n="fro", dim=0).prune(rows)
    assert by_name.tolist() == [[0.0, 0.0], [5.0, 0.0], [0.0, 2.0]]
    # Singular values 3 and 0, then 2 and 2: the first has the smaller sum, but the larger norm.
    slices = t([[[3.0, 0.0], [0.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]]])
    by_sum = prune.LnStructured(amount=1, n="nuc", dim=0).prune(slices)
    assert by_sum[0].count_nonzero() == 0 and by_sum[1].equal(slices[1])
    by_norm = prune.LnStructured(amount=1, n="fro", dim=0).prune(slices)
    assert by_norm[1].count_nonzero() == 0 and by_norm[0].equal(slices[0])


def test_gain_of_selu():
    assert nn.init.calculate_gain("selu") == 0.75


def test_random_slices_are_those_that_pytorch_prunes():
    # With these seeds PyTorch 2.13 keeps these columns.
    for seed, kept in ((0, [0, 1, 4]), (1, [0, 2, 3]), (2, [0, 2, 4])):
        clew.manual_seed(seed)
        m = nn.Linear(5, 2)
        clew.manual_seed(seed)
        prune.random_structured(m, "weight", amount=2, dim=1)
        assert m.weight_mask[0].nonzero().flatten().tolist() == kept
