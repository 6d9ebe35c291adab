"""check_gradients(): which parameters got no gradient, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew import _C
from clew._insight.graph.graph import graph_for
from clew._insight.graph.why import cut_text, explain

if TYPE_CHECKING:
    from clew import nn

__all__ = ["check_gradients"]


def check_gradients(model: nn.Module, loss: Any = None) -> None:
    """Raises unless every parameter of a model that requires grad got a gradient.

    Args:
        model: the model.
        loss: the tensor that backward starts from, or is to start from; a nest of tensors also
            does. Before backward it is what decides: every parameter must be able to reach it.
            After backward it gives the reasons, as long as it is alive.

    Raises:
        RuntimeError: a parameter got none, or cannot get one; the message names every such
            parameter with its reason.

    >>> model = nn.ModuleDict({"used": nn.Linear(2, 1), "idle": nn.Linear(2, 1)})
    >>> loss = model["used"](clew.ones(3, 2)).sum()
    >>> clew.debug.check_gradients(model, loss)
    Traceback (most recent call last):
        ...
    RuntimeError: check_gradients: 2 of 4 parameters cannot get a gradient:
      idle.weight, idle.bias: does not reach the result: its module idle was not called while...
    """
    wanted = {name: p for name, p in model.named_parameters() if p.requires_grad}
    whole = None if loss is None else graph_for("check_gradients", (loss,), model=model)
    before = whole is not None and not whole.has_run()
    missing: dict[str, str] = {}
    for name, parameter in wanted.items():
        if parameter.grad is not None and not before:
            continue
        if whole is None:
            missing[name] = _without_graph(parameter)
            continue
        answer = explain(whole, parameter)
        if answer.reached and before:
            continue
        missing[name] = answer.reason
    hidden = [] if whole is None else _hidden(whole, model)
    if not missing and not hidden:
        return
    verb = "cannot get a gradient" if before else "got no gradient"
    lines = []
    if missing:
        lines.append(f"check_gradients: {len(missing)} of {len(wanted)} parameters {verb}:")
    by_reason: dict[str, list[str]] = {}
    for name, reason in missing.items():
        by_reason.setdefault(reason, []).append(name)
    lines += [f"  {', '.join(names)}: {reason}" for reason, names in by_reason.items()]
    if hidden:
        before_ = "" if missing else "check_gradients: "
        lines.append(f"{before_}parameters of the graph that {type(model).__name__} does not know:")
        lines += hidden
    if whole is None:
        if len(missing) == len(wanted):
            lines.append("  perhaps backward() has not run, or zero_grad() has since")
        lines.append("  check_gradients(model, loss) says more about each")
    raise RuntimeError("\n".join(lines))


def _hidden(whole: Any, model: nn.Module) -> list[str]:
    """Lines about parameters that lie in plain lists and dicts of the model's modules."""
    from clew import nn
    from clew._insight.debug.holders import hidden_in

    known = {id(p) for p in model.parameters()}
    holders: dict[tuple[int, str], list[Any]] = {}
    for ref in whole._tensors.values():
        leaf = ref()
        if not isinstance(leaf, nn.Parameter) or id(leaf) in known:
            continue
        found = hidden_in([model], leaf)
        if found is not None:
            holders.setdefault((id(found[0]), found[1]), [found, 0])[1] += 1
    return [
        f"  {count} in {type(module).__name__}.{name}, a plain {kind}, which parameters() does not "
        "look into: use nn.ModuleList, nn.ModuleDict, nn.ParameterList or nn.ParameterDict"
        for (module, name, kind), count in holders.values()
    ]


def _without_graph(parameter: Any) -> str:
    use = _C._unrecorded_use(parameter)
    if use is None:
        return "its .grad is None"
    return f"its .grad is None; its last use that was not recorded: {cut_text(use)}"
