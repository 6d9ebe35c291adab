# mistake: evaluated in training mode
net = nn.Sequential(
    nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 2)
)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
def run(phase):
    net.train(phase == "train")  #+
    for _ in range(8):
        x = torch.randn(16, 6)
        opt.zero_grad()
        with torch.set_grad_enabled(phase == "train"):
            out = net(x)  # here
            loss = F.cross_entropy(out, (x[:, 0] > 0).long())
            if phase == "train":
                loss.backward()
                opt.step()
for epoch in range(2):
    for phase in ("train", "val"):
        run(phase)
