class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        a = F.relu(self.conv1(x))
        return a, F.relu(self.conv2(F.avg_pool2d(a, 2)))

def gram(f):
    f = f.flatten(2)
    return f @ f.transpose(1, 2) / f[0].numel()

net = Features().eval()
for p in net.parameters():
    p.requires_grad_(False)
content, style = torch.rand(1, 3, 16, 16), torch.rand(1, 3, 16, 16)
wanted, grams = net(content)[1], [gram(f) for f in net(style)]
image = content.clone().requires_grad_(True)
optimizer = torch.optim.LBFGS([image], max_iter=4)
for step in range(4):
    def closure():
        with torch.no_grad():
            image.clamp_(0, 1)
        optimizer.zero_grad()
        feats = net(image)
        loss = F.mse_loss(feats[1], wanted)
        loss = loss + 1e3 * sum(F.mse_loss(gram(f), g) for f, g in zip(feats, grams))
        loss.backward()
        return loss
    optimizer.step(closure)
