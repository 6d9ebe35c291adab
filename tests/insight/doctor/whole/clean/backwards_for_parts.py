G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
og, od = torch.optim.SGD(G.parameters(), 0.01), torch.optim.SGD(D.parameters(), 0.01)
for _ in range(10):
    out = D(G(torch.randn(32, 4)))
    loss = F.softplus(out).mean()
    og.zero_grad()
    od.zero_grad()
    loss.backward(inputs=list(D.parameters()), retain_graph=True)
    loss.backward(inputs=list(G.parameters()))
    for p in G.parameters():
        p.grad.neg_()
    og.step()
    od.step()
