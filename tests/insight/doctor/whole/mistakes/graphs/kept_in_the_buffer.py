# mistake: kept with their graphs
class Replay:
    def __init__(self, size=500):
        self.items = deque(maxlen=size)

    def push(self, *item):
        self.items.append(item)  #- here
        self.items.append([t.detach() if torch.is_tensor(t) else t for t in item])  #+

world = nn.GRUCell(3, 12)
head = nn.Linear(12, 3)
opt = torch.optim.Adam([*world.parameters(), *head.parameters()], lr=1e-3)
replay = Replay()
for t in range(40):
    obs, nxt = torch.randn(8, 3), torch.randn(8, 3)
    h = world(obs)
    loss = F.mse_loss(head(h), nxt)
    opt.zero_grad()
    loss.backward()
    opt.step()
    replay.push(obs, h, nxt)
