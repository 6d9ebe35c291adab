net = nn.Linear(5, 3)
average = torch.zeros(3)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(12):
    out = net(torch.randn(32, 5))
    with torch.no_grad():
        average = 0.9 * average + 0.1 * out.mean(0)
        spread = float(out.std())
    loss = (out - average).pow(2).mean() + out.mean() ** 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
