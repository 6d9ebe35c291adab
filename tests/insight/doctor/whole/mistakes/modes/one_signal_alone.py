# mistake: batch of one
def net_for(channels):
    return nn.Sequential(
        nn.Conv1d(2, channels, 3, padding=1),
        nn.BatchNorm1d(channels),
        nn.ReLU(),
        nn.Conv1d(channels, 1, 3, padding=1),
    )

net = net_for(8)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
at = torch.linspace(0, 1, 32)
wanted = (6.28 * at).sin()[None, None] + 0.1 * torch.randn(1, 1, 32)
start = torch.randn(1, 2, 32)
for step in range(20):
    seen = torch.sin(at * 9 * torch.rand(2, 1) + 6 * torch.rand(2, 1))[None]  #-
    seen = start + 0.02 * torch.randn(1, 2, 32)  #+
    opt.zero_grad()
    F.mse_loss(net(seen), wanted).backward()
    opt.step()
