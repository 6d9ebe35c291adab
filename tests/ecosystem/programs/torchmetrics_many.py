"""Metrics of torchmetrics: classification, regression, images, text, collections, aggregation."""

import torch
import torchmetrics
from torchmetrics import MetricCollection
from torchmetrics.image import PeakSignalNoiseRatio, StructuralSimilarityIndexMeasure
from torchmetrics.text import BLEUScore, WordErrorRate

torch.manual_seed(0)
scores = torch.randn(10, 5).softmax(dim=-1)
target = torch.randint(5, (10,))
kinds = {"task": "multiclass", "num_classes": 5}
collection = MetricCollection(
    [
        torchmetrics.Accuracy(**kinds),
        torchmetrics.Precision(average="macro", **kinds),
        torchmetrics.Recall(average="macro", **kinds),
        torchmetrics.F1Score(average="weighted", **kinds),
        torchmetrics.AUROC(**kinds),
        torchmetrics.CohenKappa(**kinds),
        torchmetrics.MatthewsCorrCoef(**kinds),
        torchmetrics.CalibrationError(**kinds),
    ]
)
for _ in range(3):
    collection.update(torch.randn(10, 5).softmax(dim=-1), torch.randint(5, (10,)))
print("collection", *[v.item() for _, v in sorted(collection.compute().items())])
confusion = torchmetrics.ConfusionMatrix(**kinds)
print("confusion", *confusion(scores, target).flatten().tolist())
curve = torchmetrics.PrecisionRecallCurve(task="binary", thresholds=5)
print("curve", *curve(torch.rand(20), torch.randint(2, (20,)))[0].tolist())
x, y = torch.randn(30), torch.randn(30)
for kind in (
    torchmetrics.MeanSquaredError,
    torchmetrics.MeanAbsoluteError,
    torchmetrics.R2Score,
    torchmetrics.PearsonCorrCoef,
    torchmetrics.SpearmanCorrCoef,
    torchmetrics.ExplainedVariance,
):
    metric = kind()
    metric.update(x, y)
    metric.update(y * 0.5 + x, y)
    print(kind.__name__, metric.compute().item())
a, b = torch.rand(2, 3, 32, 32), torch.rand(2, 3, 32, 32)
print("psnr", PeakSignalNoiseRatio(data_range=1.0)(a, b).item())
print("ssim", StructuralSimilarityIndexMeasure(data_range=1.0)(a, b).item())
print("bleu", BLEUScore(2)(["the cat is on the mat"], [["a cat is on the mat"]]).item())
print("wer", WordErrorRate()(["this is a test"], ["this is the test"]).item())
mean = torchmetrics.MeanMetric()
mean.update(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 1.0]))
print("mean", mean.compute().item())
tracker = torchmetrics.MetricTracker(torchmetrics.Accuracy(**kinds))
for _ in range(3):
    tracker.increment()
    tracker.update(torch.randn(10, 5), torch.randint(5, (10,)))
print("tracker", tracker.best_metric(), *tracker.compute_all().tolist())
