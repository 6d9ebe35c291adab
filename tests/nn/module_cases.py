"""Modules with inputs, for the tests that every module has to pass."""

from __future__ import annotations

import clew
from clew import nn

D = clew.float64


def r(*shape):
    """Normal numbers in float64."""
    return clew.randn(*shape, dtype=D)


def i(high, *shape):
    return clew.randint(0, high, shape)


class Scored(nn.CTCLoss):
    """CTCLoss takes logarithms of probabilities; a derivative in other directions means nothing."""

    def forward(self, scores, *rest):
        return super().forward(clew.log_softmax(scores, 2), *rest)


class Drawn(nn.Module):
    """Draws the same numbers at every call, so that calls can be compared."""

    def forward(self, input):
        clew.manual_seed(3)
        return super().forward(input)


class Dropout(Drawn, nn.Dropout): ...


class Dropout1d(Drawn, nn.Dropout1d): ...


class Dropout2d(Drawn, nn.Dropout2d): ...


class Dropout3d(Drawn, nn.Dropout3d): ...


class AlphaDropout(Drawn, nn.AlphaDropout): ...


class FeatureAlphaDropout(Drawn, nn.FeatureAlphaDropout): ...


class RReLU(Drawn, nn.RReLU): ...


class FractionalMaxPool2d(Drawn, nn.FractionalMaxPool2d): ...


class FractionalMaxPool3d(Drawn, nn.FractionalMaxPool3d): ...


# Modules that have no case, and why.
WITHOUT = {
    **dict.fromkeys(
        ("Module", "Container", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"),
        "it has no forward",
    ),
    "RNNCellBase": "it has no forward",
    **{
        name: "without parameters before its first call; after it, it is of the class without Lazy"
        for name in dir(nn)
        if name.startswith("Lazy")
    },
}

# name: (constructor, inputs).
CASES = {
    "Identity": (lambda: nn.Identity(1, x=2), lambda: (r(2, 3),)),
    "Linear": (lambda: nn.Linear(4, 3), lambda: (r(2, 5, 4),)),
    "Linear-nobias": (lambda: nn.Linear(4, 3, bias=False), lambda: (r(4),)),
    "Bilinear": (lambda: nn.Bilinear(3, 4, 2), lambda: (r(5, 3), r(5, 4))),
    "Conv1d": (lambda: nn.Conv1d(4, 6, 3, 2, 1, 1, 2), lambda: (r(2, 4, 9),)),
    "Conv2d": (lambda: nn.Conv2d(2, 3, 2, padding=1), lambda: (r(2, 2, 4, 5),)),
    "Conv2d-same": (lambda: nn.Conv2d(2, 3, 2, padding="same"), lambda: (r(2, 2, 4, 5),)),
    "Conv2d-circular": (
        lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular", bias=False),
        lambda: (r(2, 4, 5),),
    ),
    "Conv3d": (lambda: nn.Conv3d(2, 2, 2, dilation=2), lambda: (r(1, 2, 3, 4, 3),)),
    "ConvTranspose1d": (
        lambda: nn.ConvTranspose1d(2, 4, 3, 2, 1, 1, 2),
        lambda: (r(2, 2, 4),),
    ),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(2, 3, 2, 2), lambda: (r(2, 2, 3, 2),)),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(1, 2, 2), lambda: (r(1, 1, 2, 2, 2),)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(3), lambda: (r(4, 3),)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3, momentum=None), lambda: (r(2, 3, 2, 3),)),
    "BatchNorm3d": (lambda: nn.BatchNorm3d(2, affine=False), lambda: (r(2, 2, 2, 2, 2),)),
    "SyncBatchNorm": (lambda: nn.SyncBatchNorm(3), lambda: (r(4, 3, 2),)),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(3, affine=True), lambda: (r(2, 3, 5),)),
    "InstanceNorm2d": (
        lambda: nn.InstanceNorm2d(2, affine=True, track_running_stats=True),
        lambda: (r(2, 2, 3, 3),),
    ),
    "InstanceNorm3d": (lambda: nn.InstanceNorm3d(2), lambda: (r(2, 2, 2, 3),)),
    "LayerNorm": (lambda: nn.LayerNorm((3, 4)), lambda: (r(2, 3, 4),)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), lambda: (r(2, 4, 3),)),
    "RMSNorm": (lambda: nn.RMSNorm(4), lambda: (r(2, 3, 4),)),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(3), lambda: (r(2, 5, 3),)),
    "CrossMapLRN2d": (lambda: nn.CrossMapLRN2d(3), lambda: (r(2, 5, 3, 2),)),
    "Embedding": (lambda: nn.Embedding(6, 3), lambda: (i(6, 2, 4),)),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(6, 3), lambda: (i(6, 2, 4),)),
    "EmbeddingBag-max": (lambda: nn.EmbeddingBag(6, 3, mode="max"), lambda: (i(6, 2, 4),)),
    "ReLU": (nn.ReLU, lambda: (r(3, 4),)),
    "ReLU6": (nn.ReLU6, lambda: (r(3, 4),)),
    "ELU": (lambda: nn.ELU(0.7), lambda: (r(3, 4),)),
    "SELU": (nn.SELU, lambda: (r(3, 4),)),
    "CELU": (lambda: nn.CELU(0.7), lambda: (r(3, 4),)),
    "GELU": (nn.GELU, lambda: (r(3, 4),)),
    "GELU-tanh": (lambda: nn.GELU("tanh"), lambda: (r(3, 4),)),
    "SiLU": (nn.SiLU, lambda: (r(3, 4),)),
    "Mish": (nn.Mish, lambda: (r(3, 4),)),
    "Hardswish": (nn.Hardswish, lambda: (r(3, 4),)),
    "Hardsigmoid": (nn.Hardsigmoid, lambda: (r(3, 4),)),
    "Hardtanh": (lambda: nn.Hardtanh(-0.5, 0.7), lambda: (r(3, 4),)),
    "LeakyReLU": (lambda: nn.LeakyReLU(0.2), lambda: (r(3, 4),)),
    "PReLU": (lambda: nn.PReLU(4), lambda: (r(3, 4, 2),)),
    "RReLU": (RReLU, lambda: (r(3, 4),)),
    "Sigmoid": (nn.Sigmoid, lambda: (r(3, 4),)),
    "Tanh": (nn.Tanh, lambda: (r(3, 4),)),
    "LogSigmoid": (nn.LogSigmoid, lambda: (r(3, 4),)),
    "Softplus": (lambda: nn.Softplus(2.0, 15.0), lambda: (r(3, 4),)),
    "Softsign": (nn.Softsign, lambda: (r(3, 4),)),
    "Tanhshrink": (nn.Tanhshrink, lambda: (r(3, 4),)),
    "Softshrink": (nn.Softshrink, lambda: (r(3, 4),)),
    "Hardshrink": (nn.Hardshrink, lambda: (r(3, 4),)),
    "Threshold": (lambda: nn.Threshold(0.1, 3.0), lambda: (r(3, 4),)),
    "GLU": (nn.GLU, lambda: (r(3, 4),)),
    "Softmax": (lambda: nn.Softmax(1), lambda: (r(3, 4),)),
    "Softmin": (lambda: nn.Softmin(0), lambda: (r(3, 4),)),
    "LogSoftmax": (lambda: nn.LogSoftmax(-1), lambda: (r(3, 4),)),
    "Softmax2d": (nn.Softmax2d, lambda: (r(2, 3, 2, 2),)),
    "Dropout": (lambda: Dropout(0.3), lambda: (r(3, 4),)),
    "Dropout1d": (lambda: Dropout1d(0.3), lambda: (r(2, 4, 3),)),
    "Dropout2d": (lambda: Dropout2d(0.3), lambda: (r(2, 4, 2, 3),)),
    "Dropout3d": (lambda: Dropout3d(0.3), lambda: (r(2, 4, 2, 2, 2),)),
    "AlphaDropout": (lambda: AlphaDropout(0.3), lambda: (r(3, 4),)),
    "FeatureAlphaDropout": (lambda: FeatureAlphaDropout(0.3), lambda: (r(2, 4, 3),)),
    "MaxPool1d": (lambda: nn.MaxPool1d(3, 2, 1), lambda: (r(2, 2, 7),)),
    "MaxPool2d": (lambda: nn.MaxPool2d(2, ceil_mode=True), lambda: (r(2, 2, 5, 5),)),
    "MaxPool3d": (lambda: nn.MaxPool3d(2, 1, dilation=2), lambda: (r(1, 2, 4, 4, 4),)),
    "FractionalMaxPool2d": (lambda: FractionalMaxPool2d(2, 3), lambda: (r(1, 2, 6, 7),)),
    "FractionalMaxPool3d": (
        lambda: FractionalMaxPool3d(2, output_ratio=0.5),
        lambda: (r(1, 2, 5, 6, 4),),
    ),
    "MaxUnpool1d": (
        lambda: nn.MaxUnpool1d(2),
        lambda: (r(1, 2, 2), clew.tensor([[[1, 2], [0, 3]]])),
    ),
    "MaxUnpool2d": (
        lambda: nn.MaxUnpool2d(2),
        lambda: (r(1, 1, 2, 2), clew.tensor([[[[0, 7], [9, 14]]]])),
    ),
    "MaxUnpool3d": (
        lambda: nn.MaxUnpool3d((1, 2, 2)),
        lambda: (r(1, 1, 2, 1, 1), clew.tensor([[[[[3]], [[4]]]]])),
    ),
    "AvgPool1d": (lambda: nn.AvgPool1d(3, 2, 1), lambda: (r(2, 2, 7),)),
    "AvgPool2d": (
        lambda: nn.AvgPool2d(2, 1, 1, count_include_pad=False),
        lambda: (r(2, 2, 4, 4),),
    ),
    "AvgPool3d": (lambda: nn.AvgPool3d(2, divisor_override=3), lambda: (r(1, 2, 4, 4, 4),)),
    "AdaptiveAvgPool1d": (lambda: nn.AdaptiveAvgPool1d(3), lambda: (r(2, 2, 7),)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((2, None)), lambda: (r(2, 5, 3),)),
    "AdaptiveAvgPool3d": (lambda: nn.AdaptiveAvgPool3d(2), lambda: (r(1, 2, 3, 4, 5),)),
    "AdaptiveMaxPool1d": (lambda: nn.AdaptiveMaxPool1d(3), lambda: (r(2, 2, 7),)),
    "AdaptiveMaxPool2d": (lambda: nn.AdaptiveMaxPool2d((None, 2)), lambda: (r(2, 5, 3),)),
    "AdaptiveMaxPool3d": (lambda: nn.AdaptiveMaxPool3d(2), lambda: (r(1, 2, 3, 4, 5),)),
    "LPPool1d": (lambda: nn.LPPool1d(2, 3), lambda: (r(2, 2, 7),)),
    "LPPool2d": (lambda: nn.LPPool2d(4, 2), lambda: (r(2, 2, 4, 4),)),
    "LPPool3d": (lambda: nn.LPPool3d(2, 2), lambda: (r(1, 2, 4, 4, 4),)),
    "ConstantPad1d": (lambda: nn.ConstantPad1d((1, 2), 3.5), lambda: (r(2, 3),)),
    "ConstantPad2d": (lambda: nn.ConstantPad2d((1, 0, -1, 2), 0.5), lambda: (r(2, 3, 3),)),
    "ConstantPad3d": (lambda: nn.ConstantPad3d(1, -1.0), lambda: (r(1, 2, 1, 2, 2),)),
    "ReflectionPad1d": (lambda: nn.ReflectionPad1d((2, 1)), lambda: (r(2, 4),)),
    "ReflectionPad2d": (lambda: nn.ReflectionPad2d((1, 0, 2, 1)), lambda: (r(1, 2, 4, 4),)),
    "ReflectionPad3d": (lambda: nn.ReflectionPad3d(1), lambda: (r(1, 1, 2, 3, 2),)),
    "ReplicationPad1d": (lambda: nn.ReplicationPad1d((1, 3)), lambda: (r(2, 3),)),
    "ReplicationPad2d": (lambda: nn.ReplicationPad2d((1, 2, 0, 1)), lambda: (r(1, 2, 2, 3),)),
    "ReplicationPad3d": (lambda: nn.ReplicationPad3d(1), lambda: (r(1, 1, 2, 2, 3),)),
    "ZeroPad1d": (lambda: nn.ZeroPad1d((2, 1)), lambda: (r(2, 3),)),
    "ZeroPad2d": (lambda: nn.ZeroPad2d(1), lambda: (r(1, 2, 2, 2),)),
    "ZeroPad3d": (lambda: nn.ZeroPad3d((0, 1, 2, 0, 1, 1)), lambda: (r(1, 2, 1, 2, 2),)),
    "CircularPad1d": (lambda: nn.CircularPad1d(2), lambda: (r(1, 2, 4),)),
    "CircularPad2d": (lambda: nn.CircularPad2d((1, 2, 0, 1)), lambda: (r(1, 2, 3, 3),)),
    "CircularPad3d": (lambda: nn.CircularPad3d(1), lambda: (r(1, 1, 2, 2, 3),)),
    "Flatten": (nn.Flatten, lambda: (r(2, 3, 4),)),
    "Unflatten": (lambda: nn.Unflatten(1, (2, -1)), lambda: (r(2, 6),)),
    "Fold": (lambda: nn.Fold((3, 4), 2), lambda: (r(1, 4, 6),)),
    "Unfold": (lambda: nn.Unfold(2, padding=1), lambda: (r(1, 2, 3, 3),)),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), lambda: (r(2, 4, 2, 3),)),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), lambda: (r(2, 1, 4, 6),)),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), lambda: (r(2, 6, 2, 2),)),
    "Upsample-nearest": (lambda: nn.Upsample(scale_factor=2), lambda: (r(1, 2, 3),)),
    "Upsample-bilinear": (
        lambda: nn.Upsample((5, 4), mode="bilinear"),
        lambda: (r(1, 2, 3, 3),),
    ),
    "Upsample-bicubic": (
        lambda: nn.Upsample((5, 4), mode="bicubic", align_corners=True),
        lambda: (r(1, 1, 3, 3),),
    ),
    "Upsample-area": (lambda: nn.Upsample(2, mode="area"), lambda: (r(1, 2, 5),)),
    "UpsamplingNearest2d": (lambda: nn.UpsamplingNearest2d((3, 5)), lambda: (r(1, 2, 2, 3),)),
    "UpsamplingBilinear2d": (
        lambda: nn.UpsamplingBilinear2d(scale_factor=2),
        lambda: (r(1, 2, 2, 3),),
    ),
    "CosineSimilarity": (nn.CosineSimilarity, lambda: (r(3, 4), r(3, 4))),
    "PairwiseDistance": (lambda: nn.PairwiseDistance(3.0), lambda: (r(3, 4), r(3, 4))),
    "L1Loss": (nn.L1Loss, lambda: (r(3, 4), r(3, 4))),
    "MSELoss": (nn.MSELoss, lambda: (r(3, 4), r(3, 4))),
    "SmoothL1Loss": (lambda: nn.SmoothL1Loss(beta=0.5), lambda: (r(3, 4), r(3, 4))),
    "HuberLoss": (lambda: nn.HuberLoss(delta=0.5), lambda: (r(3, 4), r(3, 4))),
    "NLLLoss": (nn.NLLLoss, lambda: (r(3, 4), i(4, 3))),
    "NLLLoss2d": (nn.NLLLoss2d, lambda: (r(2, 4, 3, 2), i(4, 2, 3, 2))),
    "CrossEntropyLoss": (
        lambda: nn.CrossEntropyLoss(label_smoothing=0.1),
        lambda: (r(3, 4), i(4, 3)),
    ),
    "CrossEntropyLoss-probabilities": (
        nn.CrossEntropyLoss,
        lambda: (r(3, 4), clew.softmax(r(3, 4), 1)),
    ),
    "LinearCrossEntropyLoss": (
        lambda: nn.LinearCrossEntropyLoss(3, 4, label_smoothing=0.1),
        lambda: (r(5, 3), i(4, 5)),
    ),
    "BCELoss": (nn.BCELoss, lambda: (r(3, 4).sigmoid(), r(3, 4).sigmoid())),
    "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss, lambda: (r(3, 4), r(3, 4).sigmoid())),
    "KLDivLoss": (
        lambda: nn.KLDivLoss(reduction="batchmean"),
        lambda: (r(3, 4), clew.softmax(r(3, 4), 1)),
    ),
    "PoissonNLLLoss": (nn.PoissonNLLLoss, lambda: (r(3, 4), r(3, 4).exp())),
    "GaussianNLLLoss": (nn.GaussianNLLLoss, lambda: (r(3, 4), r(3, 4), r(3, 4).exp())),
    "HingeEmbeddingLoss": (
        nn.HingeEmbeddingLoss,
        lambda: (r(3, 4), i(2, 3, 4) * 2 - 1),
    ),
    "SoftMarginLoss": (nn.SoftMarginLoss, lambda: (r(3, 4), i(2, 3, 4) * 2 - 1)),
    "MarginRankingLoss": (
        lambda: nn.MarginRankingLoss(0.2),
        lambda: (r(4), r(4), i(2, 4) * 2 - 1),
    ),
    "CosineEmbeddingLoss": (
        nn.CosineEmbeddingLoss,
        lambda: (r(4, 3), r(4, 3), i(2, 4) * 2 - 1),
    ),
    "MultiMarginLoss": (lambda: nn.MultiMarginLoss(2), lambda: (r(3, 4), i(4, 3))),
    "MultiLabelMarginLoss": (
        nn.MultiLabelMarginLoss,
        lambda: (r(2, 4), clew.tensor([[3, 0, -1, 1], [1, 2, 3, -1]])),
    ),
    "MultiLabelSoftMarginLoss": (
        nn.MultiLabelSoftMarginLoss,
        lambda: (r(3, 4), i(2, 3, 4).to(D)),
    ),
    "TripletMarginLoss": (nn.TripletMarginLoss, lambda: (r(3, 4), r(3, 4), r(3, 4))),
    "TripletMarginWithDistanceLoss": (
        lambda: nn.TripletMarginWithDistanceLoss(swap=True),
        lambda: (r(3, 4), r(3, 4), r(3, 4)),
    ),
    "CTCLoss": (
        Scored,
        lambda: (
            r(6, 2, 4),
            clew.tensor([[1, 1, 3], [2, 3, 1]]),
            clew.tensor([6, 5]),
            clew.tensor([3, 2]),
        ),
    ),
    "RNN": (lambda: nn.RNN(3, 2, 2), lambda: (r(4, 2, 3),)),
    "RNN-relu": (lambda: nn.RNN(3, 2, nonlinearity="relu"), lambda: (r(4, 3),)),
    "RNNBase": (lambda: nn.RNNBase("GRU", 3, 2), lambda: (r(4, 2, 3),)),
    "LSTM": (
        lambda: nn.LSTM(3, 2, 2, bidirectional=True, batch_first=True),
        lambda: (r(2, 3, 3),),
    ),
    "LSTM-proj": (lambda: nn.LSTM(3, 4, proj_size=2), lambda: (r(3, 2, 3),)),
    "GRU": (lambda: nn.GRU(3, 2, bidirectional=True), lambda: (r(3, 2, 3),)),
    "RNNCell": (lambda: nn.RNNCell(3, 2), lambda: (r(2, 3), r(2, 2))),
    "LSTMCell": (lambda: nn.LSTMCell(3, 2), lambda: (r(2, 3), (r(2, 2), r(2, 2)))),
    "GRUCell": (lambda: nn.GRUCell(3, 2, bias=False), lambda: (r(3),)),
    "MultiheadAttention": (
        lambda: nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True),
        lambda: (r(3, 2, 4), r(5, 2, 4), r(5, 2, 4)),
    ),
    "MultiheadAttention-dims": (
        lambda: nn.MultiheadAttention(4, 2, kdim=3, vdim=5, batch_first=True),
        lambda: (r(2, 3, 4), r(2, 5, 3), r(2, 5, 5)),
    ),
    "TransformerEncoderLayer": (
        lambda: nn.TransformerEncoderLayer(4, 2, 6, 0.0, "gelu"),
        lambda: (r(3, 2, 4),),
    ),
    "TransformerDecoderLayer": (
        lambda: nn.TransformerDecoderLayer(4, 2, 6, 0.0, "gelu", norm_first=True),
        lambda: (r(3, 2, 4), r(2, 2, 4)),
    ),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, 0.0, "gelu"), 2),
        lambda: (r(3, 2, 4),),
    ),
    "TransformerDecoder": (
        lambda: nn.TransformerDecoder(
            nn.TransformerDecoderLayer(4, 2, 6, 0.0, "gelu"), 2, nn.LayerNorm(4)
        ),
        lambda: (r(3, 2, 4), r(2, 2, 4)),
    ),
    "Transformer": (
        lambda: nn.Transformer(4, 2, 1, 1, 6, 0.0, "gelu", batch_first=True),
        lambda: (r(1, 3, 4), r(1, 2, 4)),
    ),
    "AdaptiveLogSoftmaxWithLoss": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6], div_value=2.0),
        lambda: (r(4, 8), clew.tensor([0, 4, 9, 3])),
    ),
    "Sequential": (
        lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)),
        lambda: (r(2, 3),),
    ),
    "DataParallel": (lambda: nn.DataParallel(nn.Linear(3, 2)), lambda: (r(4, 3),)),
}
