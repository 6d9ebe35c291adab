net = nn.Linear(4, 1)
nn.init.constant_(net.bias, 4.0)
opt = clew.optim.Adam(net.parameters(), lr=1e-2)
for step in range(8):
    score = net(x)
    near = clew.sigmoid(50 * score)
    opt.zero_grad()
    (F.mse_loss(near, (target > 0).float()) + F.mse_loss(score, target)).backward()
    opt.step()
