score = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(score.parameters(), lr=2e-3)
for step in range(10):
    x = torch.randn(24, 4)
    true = x[:, 0] - 0.5 * x[:, 1]
    said = score(x).squeeze(1)
    weight = said.detach() - said.detach().unsqueeze(1)
    wrong = ((true - true.unsqueeze(1)) * weight < 0).float()
    loss = (wrong * F.softplus(-(said - said[:, None]) * (true - true[:, None]).sign())).mean()
    opt.zero_grad()
    (loss + 0.01 * (wrong.mean(1) * said).mean()).backward()
    opt.step()
