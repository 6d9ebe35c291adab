x = torch.randn(120, 5)
y = (x[:, 0] - x[:, 1] > 0).float()
scores = {}
for lr in (1e-2, 1e-3):
    for fold in range(3):
        held = torch.arange(120) % 3 == fold
        model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
        opt = torch.optim.Adam(model.parameters(), lr=lr)
        for epoch in range(3):
            for i in torch.randperm(int((~held).sum())).split(20):
                a, b = x[~held][i], y[~held][i]
                loss = F.binary_cross_entropy_with_logits(model(a).squeeze(1), b)
                opt.zero_grad()
                loss.backward()
                opt.step()
        with torch.no_grad():
            right = ((model(x[held]).squeeze(1) > 0).float() == y[held]).float().mean()
        scores.setdefault(lr, []).append(right.item())
