# mistake: scores are compared with 0.5
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(64, 10)
    y = (x[:, 0] > 0).float()
    score = net(x).squeeze(1)
    loss = F.binary_cross_entropy_with_logits(score, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    right = ((score > 0.5) == y.bool()).float().mean()  #- here
    right = ((score > 0) == y.bool()).float().mean()  #+
