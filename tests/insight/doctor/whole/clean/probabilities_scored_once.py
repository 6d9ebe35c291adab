net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(8):
    x = torch.randn(32, 8)
    y = x[:, :4].argmax(1)
    scores = net(x)
    probs = torch.softmax(scores, 1)
    entropy = -(probs * (probs + 1e-9).log()).sum(1).mean()
    loss = F.cross_entropy(scores, y) - 0.01 * entropy
    opt.zero_grad()
    loss.backward()
    opt.step()
    top = probs.detach().argmax(1)
