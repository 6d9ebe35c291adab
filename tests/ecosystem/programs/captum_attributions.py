"""captum: attributions of inputs, layers and neurons."""

import torch
from captum.attr import (
    DeepLift,
    FeatureAblation,
    GradientShap,
    GuidedBackprop,
    InputXGradient,
    IntegratedGradients,
    KernelShap,
    LayerConductance,
    LayerGradCam,
    LayerIntegratedGradients,
    NeuronConductance,
    NoiseTunnel,
    Occlusion,
    Saliency,
    ShapleyValueSampling,
)
from torch import nn

torch.manual_seed(0)


class Toy(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin1 = nn.Linear(3, 4)
        self.relu = nn.ReLU()
        self.lin2 = nn.Linear(4, 2)

    def forward(self, x):
        return self.lin2(self.relu(self.lin1(x)))


model = Toy().eval()
x, base = torch.rand(2, 3), torch.zeros(2, 3)
found, delta = IntegratedGradients(model).attribute(
    x, base, target=0, return_convergence_delta=True
)
print("integrated", *found.flatten().tolist(), *delta.tolist())
for kind in (Saliency, InputXGradient, DeepLift, GuidedBackprop, FeatureAblation):
    print(kind.__name__, *kind(model).attribute(x, target=1).flatten().tolist())
torch.manual_seed(1)
many = torch.randn(8, 3)
shap = GradientShap(model).attribute(x, baselines=many, target=0, n_samples=4, stdevs=0.1)
print("shap", *shap.flatten().tolist())
torch.manual_seed(2)
noisy = NoiseTunnel(IntegratedGradients(model))
print("noise", *noisy.attribute(x, nt_samples=4, stdevs=0.1, target=0).flatten().tolist())
print("sampling", *ShapleyValueSampling(model).attribute(x, target=0).flatten().tolist())
print("layer", *LayerConductance(model, model.lin1).attribute(x, target=0).flatten().tolist())
inner = LayerIntegratedGradients(model, model.lin1)
print("inner", *inner.attribute(x, target=0).flatten().tolist())
neuron = NeuronConductance(model, model.lin1)
print("neuron", *neuron.attribute(x, 1, target=0).flatten().tolist())
torch.manual_seed(3)
kernel = KernelShap(model).attribute(x[:1], target=0, n_samples=20)
print("kernel", *kernel.flatten().tolist())
image = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 2)).eval()
picture = torch.rand(1, 1, 8, 8)
print("gradcam", LayerGradCam(image, image[0]).attribute(picture, target=0).sum().item())
hidden = Occlusion(image).attribute(picture, (1, 3, 3), strides=2, target=0)
print("occlusion", hidden.sum().item(), hidden.abs().sum().item())
