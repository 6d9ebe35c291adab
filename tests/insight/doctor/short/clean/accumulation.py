net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for i in range(24):
    part = slice(i % 4 * 16, i % 4 * 16 + 16)
    loss = F.mse_loss(net(x[part]), target[part]) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        opt.step()
        opt.zero_grad()
