"""Files of whole modules and other objects: written by anybody, read only where one says so."""

import copy
import dataclasses
import functools
import io
import pickle
import zipfile

import numpy as np
import pytest

import clew
from clew import nn
from clew.nn.modules.module import _WrappedHook
from clew.nn.utils.spectral_norm import SpectralNormStateDictHook


@dataclasses.dataclass
class Settings:
    rate: float
    start: object


class Tagged(nn.Parameter):
    """A parameter whose construction takes more than a parameter's does."""

    def __new__(cls, data=None, tag=None, requires_grad=True):
        made = clew.Tensor._make_subclass(cls, data, requires_grad)
        made.tag = tag
        return made

    def __reduce_ex__(self, protocol):
        return Tagged, (self.detach(), self.tag)


def saved(value):
    file = io.BytesIO()
    clew.save(value, file)
    return file.getvalue()


def test_a_module_comes_back_only_when_the_file_is_trusted():
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.LSTM(2, 3))
    model[0].tied = model[0].weight
    model.eval()
    data = saved(model)
    for weights_only in (None, True):
        with pytest.raises(pickle.UnpicklingError, match="weights_only=False"):
            clew.load(io.BytesIO(data), weights_only=weights_only)
    back = clew.load(io.BytesIO(data), weights_only=False)
    x = clew.randn(4, 3)
    assert clew.equal(back[:2](x), model[:2](x)) and back[0].tied is back[0].weight
    assert clew.equal(back[2](x[:, :2])[0], model[2](x[:, :2])[0])
    with pytest.raises(pickle.UnpicklingError):
        clew.load(io.BytesIO(data))


def test_other_objects_beside_tensors(tmp_path):
    shared = clew.arange(4.0)
    given = {"settings": Settings(0.1, shared[1:]), "state": {"w": shared}, "n": np.float64(2)}
    clew.save(given, tmp_path / "x.pt")
    back = clew.load(tmp_path / "x.pt", weights_only=False)
    assert back["settings"].rate == 0.1 and back["n"] == 2
    back["state"]["w"][2] = 9
    assert back["settings"].start.tolist() == [1, 9, 3]  # of one storage, as before
    # Plain data is read in the safe way, trusted or not.
    assert clew.load(io.BytesIO(saved({"a": 1})), weights_only=False) == {"a": 1}


def test_parameters_whose_construction_takes_more():
    p = Tagged(clew.ones(2), tag="x")
    q = copy.deepcopy(p)
    assert q.tag == "x" and type(q) is Tagged and q.requires_grad
    m = nn.Module()
    m.p = p
    m.to(clew.float64)
    assert m.p is p and m.p.tag == "x" and p.dtype is clew.float64
    assert clew.load(io.BytesIO(saved(p)), weights_only=False).tag == "x"


def test_allowed_classes_are_read_without_trusting_the_file(tmp_path):
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.LSTM(2, 3), nn.Embedding(2, 2))
    model.extra = nn.Buffer(clew.arange(3), persistent=False)
    model[3].weight.requires_grad_(False)
    model[0](clew.ones(1, 3)).sum().backward()  # gradients are not part of the file
    data = saved({"model": model, "half": clew.ones(2, dtype=clew.bfloat16), "size": (1, 2)})
    kinds = [type(m) for m in model.modules()]
    with pytest.raises(pickle.UnpicklingError, match="Sequential"):
        clew.load(io.BytesIO(data))
    with (
        clew.serialization.safe_globals(kinds[:2]),
        pytest.raises(pickle.UnpicklingError, match="BatchNorm1d"),
    ):
        clew.load(io.BytesIO(data))
    with clew.serialization.safe_globals(kinds):
        got = clew.load(io.BytesIO(data))
    back, x = got["model"].eval(), clew.randn(4, 3)
    model.eval()
    assert clew.equal(back[:2](x), model[:2](x)) and got["half"].dtype is clew.bfloat16
    assert clew.equal(back[2](x[:, :2])[0], model[2](x[:, :2])[0])
    assert type(back[0].weight) is nn.Parameter and back[0].weight.requires_grad
    assert back[0].weight.grad is None and not back[3].weight.requires_grad
    assert type(back.extra) is nn.Buffer and "extra" not in back.state_dict()
    assert [n for n, _ in back.named_parameters()] == [n for n, _ in model.named_parameters()]


def test_allowed_functions_are_read_without_trusting_the_file():
    layer = nn.TransformerEncoderLayer(4, 2, 8)  # holds its activation, a native function
    data = saved(layer)
    kinds = [type(m) for m in layer.modules()]
    refused = "asks for 'clew.nn.functional.relu'"
    with (
        clew.serialization.safe_globals(kinds),
        pytest.raises(pickle.UnpicklingError, match=refused),
    ):
        clew.load(io.BytesIO(data))
    with clew.serialization.safe_globals([*kinds, nn.functional.relu]):
        got = clew.load(io.BytesIO(data))
    x = clew.randn(2, 3, 4)
    assert clew.equal(got.eval()(x), layer.eval()(x)) and got.activation is nn.functional.relu


def renamed(data, old_name, new_name):
    """The file with another name of a module or a class in its pickle."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("data.pkl"):
                content = content.replace(old_name, new_name)
            new.writestr(name, content)
    return out.getvalue()


def test_allowed_classes_by_the_names_of_pytorch():
    model = nn.Sequential(nn.Linear(3, 2), nn.Tanh())
    data = renamed(saved(model), b"cclew.nn.modules", b"ctorch.nn.modules")
    kinds = [type(m) for m in model.modules()]
    with (
        clew.serialization.safe_globals(kinds[:2]),
        pytest.raises(pickle.UnpicklingError, match="torch.nn.modules.activation.Tanh"),
    ):
        clew.load(io.BytesIO(data))
    with clew.serialization.safe_globals(kinds):
        got = clew.load(io.BytesIO(data))
    x = clew.randn(4, 3)
    assert clew.equal(got(x), model(x))
    odd = renamed(data, b"Tanh", b"Tank")  # a name that clew lacks is refused by that name
    with (
        clew.serialization.safe_globals(kinds),
        pytest.raises(pickle.UnpicklingError, match="torch.nn.modules.activation.Tank"),
    ):
        clew.load(io.BytesIO(odd))


def with_pickle(content):
    """A file whose pickle is this text."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved([]))) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, content if name.endswith("data.pkl") else old.read(name))
    return out.getvalue()


@pytest.mark.parametrize("name", ["relu", "tanh", "add", "baddbmm"])
def test_functions_that_pytorch_pickled(name):
    # torch.relu, such as an activation, is an attribute of a native class.
    data = with_pickle(
        b"c__builtin__\ngetattr\n(ctorch._C\n_VariableFunctionsClass\nV%s\ntR." % name.encode()
    )
    assert clew.load(io.BytesIO(data), weights_only=False) is getattr(clew, name)


@pytest.mark.parametrize(
    ("module", "name", "kind"),
    [
        ("torch._C._linalg", "linalg_svd", clew.linalg.svd),
        ("torch._C._special", "special_erf", clew.special.erf),
        ("torch._C._fft", "fft_rfft", clew.fft.rfft),
        ("torch.amp.grad_scaler", "_refresh_per_optimizer_state", None),
        ("torch.optim.lr_scheduler", "CyclicLR._triangular2_scale_fn", None),
        ("torch.nn.utils.spectral_norm", "SpectralNormStateDictHook", None),
        ("torch.nn.utils.spectral_norm", "SpectralNormLoadStateDictPreHook", None),
        ("torch.nn.modules.module", "_WrappedHook", None),
    ],
)
def test_names_that_pytorch_pickles(module, name, kind):
    data = with_pickle(f"c{module}\n{name}\n.".encode())
    found = clew.load(io.BytesIO(data), weights_only=False)
    assert callable(found) and (kind is None or found is kind)


def test_results_and_schedules_that_pytorch_pickled():
    # Its named results are made from a sequence, clew's from a result each.
    data = with_pickle(b"ctorch.return_types\nmax\n((K\x01K\x02t}tR.")
    assert clew.load(io.BytesIO(data), weights_only=False) == (1, 2)
    optimizer = clew.optim.SGD([clew.ones(1)], 0.1)
    slow = clew.optim.swa_utils.SWALR(optimizer, 0.05, anneal_epochs=4)
    assert slow._linear_anneal(0.25) == 0.25 and slow._cosine_anneal(0.5) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("member", "kind"), [("constants.pkl", "jit.save"), ("models/model.json", "export.save")]
)
@pytest.mark.parametrize("load", [clew.load, clew.jit.load, clew.export.load])
def test_programs_of_pytorch_are_told_from_weights(load, member, kind, tmp_path):
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"model/{member}", "")
    with pytest.raises(RuntimeError, match=rf"PyTorch's {kind}\(\).*state_dict.*torch.save"):
        load(path)


def test_a_generator_that_pytorch_pickled():
    g = clew.Generator().manual_seed(5)
    clew.rand(3, generator=g)
    back = clew.Generator()
    back.__setstate__((5, None, g.get_state()))
    assert clew.equal(clew.rand(3, generator=back), clew.rand(3, generator=g))
    with pytest.raises(TypeError, match="must be a Tensor"):
        back.__setstate__((5, None))


@pytest.mark.parametrize("kind", ["forward", "forward_pre", "full_backward", "full_backward_pre"])
def test_hooks_of_a_module_that_pytorch_pickled(kind):
    seen = []
    layer = nn.Linear(2, 2)
    getattr(layer, f"register_{kind}_hook")(lambda *args: seen.append(kind))
    state = {k: v for k, v in layer.__dict__.items() if k != "_hooked"}
    back = nn.Linear.__new__(nn.Linear)
    back.__setstate__(state)
    back(clew.ones(1, 2, requires_grad=True)).sum().backward()
    assert seen == [kind]


def test_hooks_of_state_dicts_in_the_form_of_pytorch():
    layer = nn.utils.spectral_norm(nn.Linear(3, 2))
    back = clew.load(io.BytesIO(saved(layer)), weights_only=False)
    (made,) = back._state_dict_hooks.values()
    assert isinstance(made, SpectralNormStateDictHook)
    assert back.state_dict()._metadata[""]["spectral_norm"] == {"weight.version": 1}
    nn.utils.remove_spectral_norm(back)
    assert not back._state_dict_hooks and not back._load_state_dict_pre_hooks
    seen = []
    hook = _WrappedHook.__new__(_WrappedHook)
    hook.__setstate__({"hook": lambda *args: seen.append(args), "with_module": False})
    hook({}, "a.")
    hook.__setstate__({"hook": hook.hook, "with_module": True, "module": layer})
    hook({}, "b.")
    assert seen == [({}, "a."), (layer, {}, "b.")]
    assert hook.__getstate__() == {"hook": hook.hook, "with_module": True, "module": layer}


class Marked(clew.Tensor):
    """A subclass of Tensor."""


def test_a_tensor_of_an_allowed_class():
    x = clew.ones(2).as_subclass(Marked)
    data = saved([x])
    with pytest.raises(pickle.UnpicklingError, match="Marked.*add_safe_globals"):
        clew.load(io.BytesIO(data))
    with clew.serialization.safe_globals([Marked]):
        (got,) = clew.load(io.BytesIO(data))
    assert type(got) is Marked and got.as_subclass(clew.Tensor).tolist() == [1, 1]


def test_names_of_such_files_build_only_what_fits():
    from clew._files.construct import NAMES, storage_of

    rebuild = NAMES["clew._tensor.pickling._rebuild"].build
    wrap = NAMES["clew.nn.parameter._rebuild_parameter"].build
    held = storage_of(clew.zeros(16, dtype=clew.uint8), None)
    kind, parameter = NAMES["clew.Tensor"], NAMES["clew.nn.parameter.Parameter"]
    good = (kind, held, clew.float32, 1, (3,), (1,), True)
    assert rebuild(*good).shape == (3,) and rebuild(*good).requires_grad
    for place, value in (
        (0, parameter),
        (1, "storage"),
        (2, "float32"),
        (3, 2),
        (3, -1),
        (4, (4,)),
        (4, (2**62, 2)),
        (5, (9,)),
        (6, 1),
    ):
        wrong = (*good[:place], value, *good[place + 1 :])
        with pytest.raises(pickle.UnpicklingError):
            rebuild(*wrong)
    for args in ((kind, clew.ones(1), True, {}), (parameter, "x", True, {}), (None, 1, 1, {})):
        with pytest.raises(pickle.UnpicklingError):
            wrap(*args)
    with pytest.raises(pickle.UnpicklingError):
        wrap(parameter, clew.ones(1).long(), True, {})
    for value in (1, "x", None):
        with pytest.raises(pickle.UnpicklingError, match="bool"):
            NAMES["builtins.bool"].build(value)


def _made_with(*args, build, scale):
    made = build(*args)
    made.scale = scale
    return made


class Scaled(clew.Tensor):
    """Adds to what its base makes of it, which is a function and its arguments."""

    scale = 1.0

    def __reduce_ex__(self, protocol):
        build, args = super().__reduce_ex__(protocol)
        return functools.partial(_made_with, build=build, scale=self.scale), args


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_class_that_adds_to_how_its_base_is_pickled(again):
    x = clew.tensor([1.0, 2.0]).as_subclass(Scaled)
    x.scale, x.name = 3.0, "x"
    made = again(x)
    assert type(made) is Scaled and made.tolist() == [1.0, 2.0]
    assert (made.scale, made.name) == (3.0, "x")
