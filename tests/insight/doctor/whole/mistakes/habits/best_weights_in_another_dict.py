# mistake: given its own state
class Stopper:
    def __init__(self):
        self.best, self.state = float("inf"), None
    def __call__(self, error, model):
        if error < self.best:
            self.best = error
            self.state = {k: p for k, p in model.state_dict().items()}  #- here
            self.state = {k: p.clone() for k, p in model.state_dict().items()}  #+
net = nn.Linear(4, 1)
opt = torch.optim.Adam(net.parameters(), 1e-2)
stop = Stopper()
for i in range(8):
    x = torch.randn(32, 4)
    loss = F.mse_loss(net(x), x[:, :1])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i < 5:
        stop(loss.item(), net)
net.load_state_dict(stop.state)
