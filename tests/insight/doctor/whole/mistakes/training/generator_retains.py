# mistake: retain_graph
latent = 8
generator = nn.Sequential(nn.Linear(latent, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
real_data = torch.randn(128, 2) * 0.3 + 1
for step in range(10):
    real = real_data[torch.randint(0, 128, (32,))]
    fake = generator(torch.randn(32, latent))

    opt_d.zero_grad()
    d_loss = bce(critic(real), torch.ones(32, 1))
    d_loss = d_loss + bce(critic(fake.detach()), torch.zeros(32, 1))
    d_loss.backward(retain_graph=True)  #- here
    d_loss.backward()  #+
    opt_d.step()

    opt_g.zero_grad()
    g_loss = bce(critic(fake), torch.ones(32, 1))
    g_loss.backward()
    opt_g.step()
