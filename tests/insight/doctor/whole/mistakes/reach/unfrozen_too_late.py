# mistake: in no optimizer
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        return self.head(self.body(x))

def loop(n):
    for _ in range(n):
        x = torch.randn(32, 8)
        opt.zero_grad()
        F.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
        opt.step()

net = Net()
for p in net.body.parameters():
    p.requires_grad = False
opt = torch.optim.Adam(filter(lambda p: p.requires_grad, net.parameters()), lr=1e-3)  # here
loop(5)
for p in net.body.parameters():
    p.requires_grad = True
opt.add_param_group({"params": list(net.body.parameters()), "lr": 1e-4})  #+
loop(8)
