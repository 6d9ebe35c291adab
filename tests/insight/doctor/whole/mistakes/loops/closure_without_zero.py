# mistake: never cleared
x = torch.linspace(-2, 2, 60).unsqueeze(1)
y = torch.sin(2 * x)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=5)

def closure():
    opt.zero_grad()  #+
    loss = F.mse_loss(net(x), y)
    loss.backward()  # here
    return loss

for _ in range(8):
    opt.step(closure)
