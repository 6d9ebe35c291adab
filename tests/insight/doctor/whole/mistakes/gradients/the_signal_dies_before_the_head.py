# mistake: vanish
class Deep(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.first = nn.Linear(4, 16)
        self.blocks = nn.ModuleList(nn.Linear(16, 16) for _ in range(depth))
        self.head = nn.Linear(16, 2)
        for block in self.blocks:
            nn.init.normal_(block.weight, std=0.02)  #-
            nn.init.xavier_normal_(block.weight)  #+
            nn.init.zeros_(block.bias)
    def forward(self, x):
        x = torch.tanh(self.first(x))  # here
        for block in self.blocks:
            x = torch.tanh(block(x))
        return self.head(x)
net = Deep(8)
opt = torch.optim.Adam(net.parameters(), lr=1e-4)
for i in range(8):
    x = torch.randn(32, 4)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
