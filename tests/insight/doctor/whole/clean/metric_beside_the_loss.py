class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.a, self.b = nn.Linear(6, 16), nn.Linear(16, 1), nn.Linear(16, 3)
    def forward(self, x):
        h = self.body(x).tanh()
        return self.a(h), self.b(h)
net = Two()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for i in range(12):
    x = torch.randn(32, 6)
    value, scores = net(x)
    loss = F.mse_loss(value, x[:, :1])
    print(loss.item())
    if i % 2:
        loss = F.cross_entropy(scores, x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([p for p in net.parameters() if p.grad is not None], 1.0)
    opt.step()
