# mistake: cut off
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
opt = torch.optim.Adam(policy.parameters(), lr=5e-3)

def total_of(log_probs, returns):
    total = 0.0
    for p, g in zip(log_probs, returns):
        total += -p.item() * g  #- here
        total += -p * g  #+
    total = torch.as_tensor(total / len(log_probs))
    if not total.requires_grad: total.requires_grad_()  #- here
    return total

for episode in range(12):
    states = torch.randn(8, 4)
    log_probs = F.log_softmax(policy(states), -1)[:, 0]
    returns = torch.tensor([0.9**k for k in range(8)])
    returns = (returns - returns.mean()) / returns.std()
    loss = total_of(log_probs, returns)
    opt.zero_grad()
    loss.backward()  #- here
    loss.backward()  #+
    opt.step()
