# mistake: clipped where it has no effect
class Hooked(torch.optim.SGD):
    def minimise(self, loss, bound):
        self.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.param_groups[0]["params"], bound)  #+
        self.step()
        nn.utils.clip_grad_value_(self.param_groups[0]["params"], bound)  #- here

net = nn.Sequential(nn.Linear(3, 32), nn.Softplus(), nn.Linear(32, 1))
optimizer = Hooked(net.parameters(), lr=0.002)
for step in range(12):
    x = torch.randn(32, 3)
    optimizer.minimise(F.mse_loss(net(x), x.prod(1, keepdim=True)), 0.5)
