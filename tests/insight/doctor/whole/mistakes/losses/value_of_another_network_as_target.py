# mistake: target of a loss
q = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
old = copy.deepcopy(q)
actor = nn.Linear(4, 1)
opt = torch.optim.Adam(q.parameters(), lr=1e-3)
for i in range(6):
    s, following = torch.randn(32, 4), torch.randn(32, 4)
    action, reward = torch.rand(32, 1), torch.randn(32, 1)
    wanted = reward + 0.99 * old(torch.cat([following, torch.tanh(actor(following))], 1))
    wanted = wanted.detach()  #+
    loss = F.mse_loss(q(torch.cat([s, action], 1)), wanted)  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
