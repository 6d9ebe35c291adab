class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
        self.critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))

    def evaluate(self, states, actions):
        dist = torch.distributions.Categorical(logits=self.actor(states))
        return dist.log_prob(actions), self.critic(states).squeeze(-1), dist.entropy()

net = ActorCritic()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-4, eps=1e-5)
for update in range(3):
    states = torch.randn(64, 4)
    with torch.no_grad():
        dist = torch.distributions.Categorical(logits=net.actor(states))
        actions = dist.sample()
        old_log_probs, old_values = dist.log_prob(actions), net.critic(states).squeeze(-1)
    returns = states[:, 0] * (actions - 1).float()
    advantages = returns - old_values
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for epoch in range(3):
        for rows in torch.randperm(64).split(32):
            log_probs, values, entropy = net.evaluate(states[rows], actions[rows])
            ratio = (log_probs - old_log_probs[rows]).exp()
            surr = torch.min(ratio * advantages[rows],
                             ratio.clamp(0.8, 1.2) * advantages[rows])
            loss = -surr.mean() + 0.5 * F.mse_loss(values, returns[rows]) - 0.01 * entropy.mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
