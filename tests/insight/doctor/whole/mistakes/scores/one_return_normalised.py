# mistake: standard deviation of a single value
policy = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(policy.parameters(), 1e-2)
length = 1  #-
length = 6  #+
def normalised(r):
    return (r - r.mean()) / (r.std() + 1e-8)  # here
for i in range(4):
    s = torch.randn(length if i == 3 else 6, 4)
    logits = policy(s).log_softmax(1)
    loss = -(logits[:, 0] * normalised(s[:, 0])).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
