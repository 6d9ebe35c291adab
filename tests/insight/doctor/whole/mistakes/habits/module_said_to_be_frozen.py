# mistake: set on a module
class Transfer(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.backbone.requires_grad = False  #- here
        self.backbone.requires_grad_(False)  #+
        self.head = nn.Linear(16, 2)
    def forward(self, x):
        return self.head(self.backbone(x))
net = Transfer()
opt = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], 1e-3)
for i in range(8):
    x = torch.randn(16, 8)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
    opt.step()
