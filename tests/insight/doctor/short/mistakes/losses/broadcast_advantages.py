# mistake: broadcast
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
opt = clew.optim.Adam(policy.parameters(), lr=1e-3)
advantage = target[:, 0]  #-
advantage = target  #+
for step in range(6):
    chosen = policy(x).log_softmax(1).gather(1, labels[:, None])
    loss = -(chosen * advantage).mean()  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
