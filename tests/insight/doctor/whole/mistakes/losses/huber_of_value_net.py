# mistake: broadcast
class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))

    def forward(self, s):
        return self.layers(s)

memory = deque(maxlen=200)
for _ in range(120):
    memory.append((np.random.randn(4), random.randrange(2), random.random(), np.random.randn(4)))
online, target = QNet(), QNet()
target.load_state_dict(online.state_dict())
optimizer = torch.optim.RMSprop(online.parameters(), lr=1e-3)
for step in range(8):
    batch = random.sample(list(memory), 32)
    s = torch.tensor(np.array([b[0] for b in batch]), dtype=torch.float32)
    a = torch.tensor([b[1] for b in batch])
    r = torch.tensor([b[2] for b in batch], dtype=torch.float32)
    s2 = torch.tensor(np.array([b[3] for b in batch]), dtype=torch.float32)
    q = online(s).gather(1, a.unsqueeze(1))
    with torch.no_grad():
        goal = r + 0.99 * target(s2).max(1).values
    loss = F.smooth_l1_loss(q, goal)  #- here
    loss = F.smooth_l1_loss(q, goal.unsqueeze(1))  #+
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
