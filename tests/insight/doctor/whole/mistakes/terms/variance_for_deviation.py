# mistake: noise is scaled by the variance
class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.mean, self.log = nn.Linear(10, 16), nn.Linear(16, 4), nn.Linear(16, 4)
        self.out = nn.Linear(4, 10)
    def forward(self, x):
        h = torch.tanh(self.body(x))
        mu, logvar = self.mean(h), self.log(h)
        std = torch.exp(logvar)  #- here
        std = torch.exp(0.5 * logvar)  #+
        return self.out(mu + torch.randn_like(std) * std), mu, logvar
net = Coder()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(32, 10)
    guess, mu, logvar = net(x)
    kl = -0.5 * torch.sum(1 + logvar - mu**2 - logvar.exp())
    loss = F.mse_loss(guess, x, reduction="sum") + kl
    opt.zero_grad()
    (loss / 32).backward()
    opt.step()
