# mistake: the target network is never renewed
def soft_update(net, target, tau=0.01):
    for p, t in zip(net.parameters(), target.parameters()):
        t.data.copy_(tau * p.data + (1 - tau) * t.data)
def main():
    net, target = (nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2)) for _ in "12")
    target.load_state_dict(net.state_dict())  # here
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(40):
        s, s2, r = torch.randn(16, 4), torch.randn(16, 4), torch.randn(16)
        a, done = torch.randint(2, (16, 1)), (torch.rand(16) < 0.1).float()
        with torch.no_grad():
            best = net(s2).argmax(1, keepdim=True)
            later = target(s2).gather(1, best).squeeze(1)
        loss = F.smooth_l1_loss(net(s).gather(1, a).squeeze(1), r + (1 - done) * 0.9 * later)
        opt.zero_grad()
        loss.backward()
        opt.step()
        soft_update(net, target)  #+
if __name__ == "__main__":
    main()
