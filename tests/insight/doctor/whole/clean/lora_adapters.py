class LoRA(nn.Module):
    def __init__(self, base, r=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(r, base.in_features) * 0.01)
        self.B = nn.Parameter(torch.zeros(base.out_features, r))

    def forward(self, x):
        return self.base(x) + (x @ self.A.t()) @ self.B.t()

net = nn.Sequential(LoRA(nn.Linear(8, 32)), nn.ReLU(), LoRA(nn.Linear(32, 3)))
trainable = [p for p in net.parameters() if p.requires_grad]
opt = torch.optim.AdamW(trainable, lr=1e-3)
for _ in range(10):
    x = torch.randn(32, 8)
    opt.zero_grad()
    F.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
    opt.step()
