net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2)).eval()
x = torch.randn(40, 4)
scores = []
for i in range(40):
    probe = x[i : i + 1].clone().requires_grad_()
    net(probe)[0, 1].backward()
    scores.append(probe.grad.abs().squeeze(0))
    net.zero_grad()
saliency = torch.stack(scores).mean(0)
