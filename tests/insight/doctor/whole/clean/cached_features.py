backbone = nn.Sequential(nn.Linear(20, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16))
backbone.eval()
x = torch.randn(100, 20)
y = (x[:, 0] > 0).float()
with torch.no_grad():
    features = backbone(x)
mean, std = features.mean(0), features.std(0)
features = (features - mean) / std
head = nn.Linear(16, 1)
optimizer = torch.optim.LBFGS(head.parameters(), lr=0.5, max_iter=10)
def closure():
    optimizer.zero_grad()
    loss = F.binary_cross_entropy_with_logits(head(features).squeeze(1), y)
    loss = loss + 1e-3 * head.weight.pow(2).sum()
    loss.backward()
    return loss
for _ in range(3):
    optimizer.step(closure)
with torch.no_grad():
    accuracy = ((head(features).squeeze(1) > 0) == (y > 0)).float().mean().item()
