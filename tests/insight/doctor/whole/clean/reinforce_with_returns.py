class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1, self.dropout = nn.Linear(4, 32), nn.Dropout(p=0.1)
        self.affine2 = nn.Linear(32, 2)
        self.saved_log_probs, self.rewards = [], []

    def forward(self, x):
        return F.softmax(self.affine2(F.relu(self.dropout(self.affine1(x)))), dim=1)

policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for episode in range(6):
    state = torch.randn(1, 4)
    for t in range(12):
        m = torch.distributions.Categorical(policy(state))
        action = m.sample()
        policy.saved_log_probs.append(m.log_prob(action))
        policy.rewards.append(float(action == (state[0, 0] > 0)))
        state = torch.randn(1, 4)
    R, returns = 0, deque()
    for r in policy.rewards[::-1]:
        R = r + 0.99 * R
        returns.appendleft(R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = [-lp * R for lp, R in zip(policy.saved_log_probs, returns)]
    optimizer.zero_grad()
    torch.cat(loss).sum().backward()
    optimizer.step()
    del policy.rewards[:], policy.saved_log_probs[:]
