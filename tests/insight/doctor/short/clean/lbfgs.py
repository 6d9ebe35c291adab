net = nn.Linear(4, 1)
opt = clew.optim.LBFGS(net.parameters(), max_iter=5)
def closure():
    opt.zero_grad()
    loss = F.mse_loss(net(x), target)
    loss.backward()
    return loss
for step in range(4):
    opt.step(closure)
