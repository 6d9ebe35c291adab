class Dueling(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.ReLU())
        self.value, self.advantage = nn.Linear(32, 1), nn.Linear(32, 2)

    def forward(self, s):
        h = self.body(s)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(1, keepdim=True)

online, target = Dueling(), Dueling()
target.load_state_dict(online.state_dict())
target.eval()
s, s2, r = torch.randn(200, 4), torch.randn(200, 4), torch.rand(200)
a, done = torch.randint(0, 2, (200,)), (torch.rand(200) < 0.05).float()
priority = np.ones(200)
optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
for step in range(10):
    p = priority / priority.sum()
    rows = np.random.choice(200, 32, p=p)
    weights = torch.tensor((200 * p[rows]) ** -0.4, dtype=torch.float32)
    rows = torch.from_numpy(rows)
    with torch.no_grad():
        best = online(s2[rows]).argmax(1, keepdim=True)
        goal = r[rows] + 0.99 * (1 - done[rows]) * target(s2[rows]).gather(1, best).squeeze(1)
    q = online(s[rows]).gather(1, a[rows].unsqueeze(1)).squeeze(1)
    td = goal - q
    loss = (weights * F.smooth_l1_loss(q, goal, reduction="none")).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    priority[rows.numpy()] = td.detach().abs().numpy() + 1e-3
    if step % 5 == 4:
        target.load_state_dict(online.state_dict())
