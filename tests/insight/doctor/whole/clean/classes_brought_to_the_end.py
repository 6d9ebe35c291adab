net = nn.Sequential(nn.Conv1d(3, 12, 3, padding=1), nn.GroupNorm(1, 12), nn.ReLU(),
                    nn.Conv1d(12, 4, 1))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for i in range(10):
    x = torch.randn(8, 3, 10)
    y = (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0)
    scores = net(x)
    opt.zero_grad()
    loss = F.cross_entropy(scores.permute(0, 2, 1).reshape(-1, 4), y.reshape(-1))
    (loss + 0.1 * F.cross_entropy(scores.view(8, 4, -1), y.view(8, -1))).backward()
    opt.step()
