target = torch.rand(1, 1, 16, 16)
noisy = target + 0.1 * torch.randn_like(target)
z = torch.randn(1, 4, 16, 16)

def part(a, b):
    return [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.LeakyReLU(0.1)]

net = nn.Sequential(*part(4, 16), *part(16, 16), nn.Conv2d(16, 1, 1), nn.Sigmoid())
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for i in range(15):
    out = net(z + 0.03 * torch.randn_like(z))
    loss = F.mse_loss(out, noisy)
    opt.zero_grad()
    loss.backward()
    opt.step()
