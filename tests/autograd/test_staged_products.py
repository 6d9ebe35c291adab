"""Products of few rows that wait for each other, while another backward runs inside."""

import clew


def test_backward_inside_an_unpack_hook_leaves_waiting_products_alone():
    w = clew.ones(3, 3, requires_grad=True)
    linear = clew.nn.functional.linear
    x = clew.ones(2, 3)

    def unpack(t):
        with clew.enable_grad():
            clew.autograd.backward((linear(x, w).sum() + linear(x, w).sum()) * 0)
        return t

    with clew.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        loss = linear(x, w).sum() + linear(x * 2, w).sum() + linear(x * 3, w).sum()
    loss.backward()
    assert (w.grad == 12).all()
