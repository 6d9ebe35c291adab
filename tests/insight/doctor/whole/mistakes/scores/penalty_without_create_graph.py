# mistake: gradients that were not recorded
critic = nn.Sequential(nn.Linear(6, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt = torch.optim.Adam(critic.parameters(), 1e-4)
def penalty(real, fake, keep):
    a = torch.rand(len(real), 1)
    between = (a * real + (1 - a) * fake).requires_grad_()
    g = torch.autograd.grad(critic(between).sum(), between, create_graph=keep)[0]  # here
    return ((g.norm(2, dim=1) - 1) ** 2).mean()
keep = False  #-
keep = True  #+
for i in range(8):
    real, fake = torch.randn(16, 6), torch.randn(16, 6) + 1
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(real, fake, keep)
    opt.zero_grad()
    loss.backward()
    opt.step()
