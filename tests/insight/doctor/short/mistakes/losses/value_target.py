# mistake: target of a loss requires grad
value = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
opt = clew.optim.Adam(value.parameters(), lr=1e-3)
for step in range(6):
    later = value(x.flip(0))
    later = later.detach()  #+
    loss = F.mse_loss(value(x), target + 0.9 * later)  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
