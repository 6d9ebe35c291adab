"""`clew run`: unmodified PyTorch programs, names that are absent, and the command line."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

import clew

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPTS = sorted((ROOT / "examples" / "torch_scripts").glob("*.py"))
# Wherever the tests found clew, the processes they start find it too.
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(
        [os.path.dirname(os.path.dirname(clew.__file__)), os.environ.get("PYTHONPATH", "")]
    ),
}


def command(*args, code=0, cwd=None):
    done = subprocess.run(
        [sys.executable, "-m", "clew", *map(str, args)],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=300,
        cwd=cwd,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, done.stderr


@pytest.fixture
def program(tmp_path):
    def run(source, *args, code=0):
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(source))
        return command("run", path, *args, code=code)

    return run


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_example_scripts(script):
    """Each ends with an assertion on what it has learned."""
    out, _ = command("run", script)
    assert out


def test_example_script_with_workers_and_arguments():
    script = ROOT / "examples" / "torch_scripts" / "spirals.py"
    out, _ = command("run", script, "--epochs", "30", "--workers", "2")
    assert "accuracy" in out


def test_forms_of_import(program):
    out, _ = program(
        """
        import torch, torch.nn as nn, torch.nn.functional as F, torch.optim.lr_scheduler
        import torch.utils.data, torch.utils.checkpoint, torch.autograd.graph
        from torch import Tensor, optim, nn as again
        from torch.utils.data import DataLoader
        from torch.utils.data.dataloader import default_collate
        from torch.nn.parameter import Parameter
        from torch.optim.optimizer import Optimizer
        import clew
        assert again is nn is torch.nn is clew.nn and F is torch.nn.functional
        assert nn.__name__ == "clew.nn" and nn.__spec__.name == "clew.nn"
        assert Tensor is clew.Tensor is torch.Tensor and optim.SGD is clew.optim.SGD
        assert torch.utils.data.DataLoader is DataLoader
        assert torch.linalg is not None and torch.float32 is clew.float32
        import importlib
        assert importlib.import_module("torch.optim") is optim
        print("fine")
        """
    )
    assert out == "fine\n"


def test_modules_that_programs_ask_first(program):
    program(
        """
        import torch, torch.version, torch.backends.cudnn as cudnn
        assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
        device = "cuda" if torch.cuda.is_available() else "cpu"
        assert torch.zeros(1).to(device).device.type == "cpu"
        torch.cuda.manual_seed_all(3); torch.cuda.empty_cache(); torch.cuda.manual_seed(1)
        assert torch.cuda.memory_allocated() == 0 and torch.cuda.get_rng_state_all() == []
        torch.backends.cudnn.deterministic = True
        cudnn.benchmark = False
        torch.backends.cuda.matmul.allow_tf32 = True
        assert not torch.backends.mps.is_available() and torch.version.cuda is None
        assert torch.version.rocm is None and torch.version.git_version == "Unknown"
        assert torch.backends.mkldnn.is_available() and not cudnn.is_available()
        assert torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
        import torch.distributed as dist
        assert dist.is_available() and not dist.is_initialized() and not dist.is_nccl_available()
        assert not torch.xpu.is_available() and not torch.accelerator.is_available()
        try:
            torch.cuda.current_device()
        except AssertionError as error:
            assert "no CUDA device" in str(error)
        else:
            raise SystemExit("no error")
        """
    )


def test_version(program):
    program(
        """
        import torch
        v = torch.__version__
        assert v.startswith("2.13.0") and "clew" in v and isinstance(v, str)
        assert v >= "1.8" and v >= (2, 0) and v < (3,) and v > "2.9.1" and not v < "2.13"
        assert v == (2, 13, 0) and v != (2, 12) and v != "2.13" and int(v.split(".")[0]) == 2
        assert v <= "2.13.0" and hash(v) == hash(str(v))
        assert torch.__file__ and torch.__name__ == "torch" and torch.__path__ == []
        """
    )


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("from torch.nn import Nothing", "torch.nn.Nothing"),
        ("from torch import Nothing", "torch.Nothing"),
        ("import torch.nothing.at_all", "torch.nothing"),
        ("from torch.distributed.nothing import x", "torch.distributed.nothing"),
        ("import torch\nclass X(torch.nn.Nothing): pass", "torch.nn.Nothing"),
        ("import torch\ntorch.distributed._nothing.x", "torch.distributed._nothing"),
        ("import torch\ntorch.Tensor.nothing", "torch.Tensor.nothing"),
        ("import torch\ntorch.nn.Linear.nothing", "torch.nn.modules.linear.Linear.nothing"),
    ],
)
def test_a_library_that_is_not_supported(source, name, tmp_path):
    """It fails at the import that needs a name, with the name and where to look."""
    (tmp_path / "unsupported.py").write_text(source)
    (tmp_path / "train.py").write_text("print('begins')\nimport unsupported\nprint('ends')")
    out, err = command("run", "train.py", code=1, cwd=tmp_path)
    assert out == "begins\n"
    assert "unsupported.py" in err
    assert f"clew has no '{name}'" in err.splitlines()[-1]
    assert "docs/ecosystem.md says which libraries run" in err.splitlines()[-1]
    assert err.count("docs/ecosystem.md") == 1


def test_names_that_clew_lacks(program):
    program(
        """
        import importlib, torch, torch.nn.functional as F
        def text(f):
            try:
                f()
            except (AttributeError, ImportError) as error:
                return type(error).__name__ + ": " + str(error)
            raise SystemExit("no error")
        said = text(lambda: torch.zeroes)
        assert said.endswith("clew has no 'torch.zeroes'; the nearest name is 'zeros'"), said
        assert "no 'torch.nn.Liner'; the nearest name is 'Linear'" in text(lambda: torch.nn.Liner)
        assert "the nearest name is 'Conv2d'" in text(lambda: torch.nn.conv2D)
        assert "no 'torch.nn.functional.rellu'; the nearest name is 'relu'" in text(lambda: F.rellu)
        assert "'torch.optim.Adamm'; the nearest name is 'Adam" in text(lambda: torch.optim.Adamm)
        assert text(lambda: torch.qqqqqq) == "AttributeError: clew has no 'torch.qqqqqq'"
        assert not hasattr(torch, "nothing_of_that_kind")
        said = text(lambda: importlib.import_module("torch.optin"))
        assert said.endswith("clew has no 'torch.optin'; the nearest name is 'optim'"), said
        def import_name():
            from torch import zeross
        assert "ImportError: cannot import name 'zeross'" in text(import_name)
        def import_deep():
            import torch.nn.functionals.more
        assert "no 'torch.nn.functionals'" in text(import_deep)
        try:
            import torch.fx
        except ImportError:
            pass
        """
    )


def test_patching_reaches_clew(program):
    program(
        """
        import torch, clew
        torch.extra = 5
        assert clew.extra == 5 and torch.extra == 5
        del torch.extra
        assert not hasattr(clew, "extra")
        assert "zeros" in dir(torch) and "__version__" in dir(torch)
        """
    )


def test_the_module_holds_its_dtypes_and_classes(program):
    program(
        """
        import torch
        found = {n for n, v in vars(torch).items() if isinstance(v, torch.dtype)}
        assert {"float32", "half", "complex32", "float8_e4m3fn", "int4", "quint8", "bits8"} <= found
        layouts = {n for n, v in vars(torch).items() if isinstance(v, torch.layout)}
        assert {"strided", "sparse_coo"} <= layouts
        assert [v for v in vars(torch).values() if v is torch.Tensor] == [torch.Tensor]
        before, torch.Size = torch.Size, int
        assert torch.Size is int
        torch.Size = before
        assert torch.Size is before
        """
    )


def test_main_is_the_program(program, tmp_path):
    (tmp_path / "beside.py").write_text("value = 7\n")
    out, _ = program(
        """
        import sys, os, pickle, beside
        class Thing: pass
        assert __name__ == "__main__" and sys.modules["__main__"].Thing is Thing
        assert type(pickle.loads(pickle.dumps(Thing()))) is Thing
        assert os.path.samefile(__file__, sys.argv[0]) and beside.value == 7
        assert __spec__ is None and __builtins__
        assert os.path.samefile(sys.path[0], os.path.dirname(__file__))
        print(sys.argv[1:])
        """,
        "-x",
        "--version",
        "run",
    )
    assert out == "['-x', '--version', 'run']\n"


def test_exit_status(program):
    program("raise SystemExit", code=0)
    program("import sys; sys.exit(3)", code=3)
    _, err = program("import sys; sys.exit('a message')", code=1)
    assert err == "a message\n"
    _, err = program("raise KeyboardInterrupt", code=130)
    assert "KeyboardInterrupt" in err


def test_tracebacks_show_the_program_only(program, tmp_path):
    _, err = program("import torch\n\ndef f():\n    torch.ones(2) @ torch.ones(3)\n\nf()\n", code=1)
    assert err.startswith("Traceback (most recent call last):\n") and "_run.py" not in err
    assert "program.py" in err and "line 4, in f" in err and "RuntimeError" in err
    _, err = program("from torch.nn import Liner\n", code=1)
    assert (
        "ImportError: cannot import name 'Liner'" in err and "the nearest name is 'Linear'" in err
    )
    _, err = program("from torch_helpers import nothing\n", code=1)
    assert "No module named 'torch_helpers'" in err
    (tmp_path / "torch_helpers.py").write_text("something = 1\n")
    _, err = program("from torch_helpers import nothing\n", code=1)
    assert "ImportError: cannot import name 'nothing' from 'torch_helpers'" in err
    assert "clew has no" not in err  # it is not clew that lacks it
    _, err = program("x = (\n", code=1)
    assert "SyntaxError" in err and "_run.py" not in err


@pytest.mark.parametrize("as_module", [False, True])
def test_forward_tracebacks_show_the_program_only(tmp_path, as_module):
    text = """
import torch

def inner(p):
    return p.sqrt()

def outer(p):
    return inner(p).sum()

with torch.autograd.detect_anomaly():
    {call}
"""
    for call, shown in (
        ("outer(torch.full((2,), -1.0, requires_grad=True)).backward()", True),
        ("torch.full((2,), -1.0, requires_grad=True).sqrt().sum().backward()", False),
    ):
        (tmp_path / "program.py").write_text(text.format(call=call))
        which = ["-m", "program"] if as_module else [tmp_path / "program.py"]
        _, message = command("run", *which, code=1, cwd=tmp_path)
        assert "program.py" in message and "nan" in message.lower()
        assert ("Traceback of the forward call" in message) == shown
        part = message.partition("Traceback of the forward call")[2]
        assert "sys.exit" not in part and "runpy" not in part and "_run.py" not in part


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_that_the_program_starts(program, method):
    out, _ = program(
        f"""
        import multiprocessing, torch
        from torch.utils.data import DataLoader, Dataset

        class Squares(Dataset):
            def __len__(self): return 4
            def __getitem__(self, i): return torch.tensor(i * i)

        def work(i):
            return torch.ones(i).sum().item()

        if __name__ == "__main__":
            context = multiprocessing.get_context({method!r})
            with context.Pool(2) as pool:
                print(pool.map(work, [1, 2]))
            print([b.item() for b in DataLoader(Squares(), num_workers=1,
                                                multiprocessing_context=context)])
        """
    )
    assert out == "[1.0, 2.0]\n[0, 1, 4, 9]\n"


def test_torch_multiprocessing(program):
    out, _ = program(
        """
        import torch, torch.multiprocessing as mp

        def work(i, x):
            if i == x:
                raise ValueError("this one fails")
            print("worker", i, torch.ones(2).sum().item(), flush=True)

        if __name__ == "__main__":
            mp.spawn(work, args=(5,), nprocs=1)
            assert mp.Queue and mp.get_context
            try:
                mp.spawn(work, args=(0,), nprocs=1)
            except mp.ProcessRaisedException as error:
                assert "this one fails" in str(error) and error.error_index == 0
                print("caught")
        """
    )
    assert out == "worker 0 2.0\ncaught\n"


def test_modules_are_run_too(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(
        "import sys, torch\nprint(__name__, torch.ones(2).tolist(), sys.argv[1:])\n"
    )
    out, _ = command("run", "-m", "package", "-m", "x", cwd=tmp_path)
    assert out == "__main__ [1.0, 1.0] ['-m', 'x']\n"
    _, err = command("run", "-m", "no_such_module", code=1, cwd=tmp_path)
    assert "no_such_module" in err


def test_command_line(tmp_path):
    assert command("--version")[0] == f"clew {clew.__version__}\n"
    out, _ = command("info")
    for word in ("clew:", "Python:", "threads:", "oneDNN:", "instructions:", "size:"):
        assert word in out
    assert "script.py [args ...]" in command("run", "--help")[0]
    assert "usage" in command("run", code=2)[0]
    assert "usage" in command(code=2)[0]
    listed = command("--help")[0]
    for word in "run doctor launch alias kernel export replay info".split():
        assert f"\n    {word} " in listed
    assert "can't open file" in command("run", tmp_path / "absent.py", code=2)[1]
    assert "-m needs" in command("run", "-m", code=2)[1]
    assert "unknown option" in command("run", "--what", code=2)[1]
    command("what", code=2)


def test_install_and_uninstall():
    from clew._cli import run as _run

    if "torch" in sys.modules:
        with pytest.raises(RuntimeError, match="imported already"):
            _run.install()
        return
    _run.install()
    try:
        _run.install()  # a second time changes nothing
        assert sum(isinstance(f, _run._Finder) for f in sys.meta_path) == 1
        import torch

        assert torch.nn is clew.nn and torch.ones is clew.ones
    finally:
        _run.uninstall()
    assert "torch" not in sys.modules
    assert not any(isinstance(f, _run._Finder) for f in sys.meta_path)


def test_aliases_are_made_lazily(program):
    program(
        """
        import sys, torch
        torch.ones(1)
        assert "multiprocessing" not in sys.modules and "clew.optim.lbfgs" not in sys.modules
        torch.optim.SGD
        assert "clew.optim.lbfgs" in sys.modules
        """
    )


def test_layouts_have_pytorchs_text(program):
    out, _ = program(
        """
        import torch
        print(str(torch.eye(2).to_sparse_csr().layout), torch.strided)
        """
    )
    assert out.split() == ["torch.sparse_csr", "torch.strided"]


def test_other_texts_are_pytorchs_too(program):
    out, _ = program(
        """
        import torch
        x = torch.ones(2, 3, dtype=torch.bfloat16)
        print(x.dtype, x.shape, repr(x.size()), f"{torch.Size()}", torch.channels_last)
        print(x.type(), torch.typename(x), x.float().untyped_storage().type(), torch.complex32)
        print(torch.LongTensor, torch.cuda.FloatTensor, torch.float8_e5m2, torch._mkldnn)
        print(torch.max(torch.eye(2), 1))
        print(torch.linalg.slogdet(torch.eye(2)))
        print(torch.linalg.eig(torch.eye(1)))
        print(torch.nn.ParameterList([torch.nn.Parameter(torch.ones(2, 3))]))
        print(torch.nn.ParameterDict({"a": torch.nn.Parameter(torch.ones(2, 3))}))
        print(getattr(torch, str(x.dtype)[6:]) is torch.bfloat16, torch.ones(1, dtype=torch.int8))
        y = torch.ones(1, requires_grad=True) * 2
        y.register_hook(lambda g: torch.autograd.Variable._execution_engine.queue_callback(
            lambda: print("over")))
        y.backward()
        """
    )
    assert out.splitlines() == [
        "torch.bfloat16 torch.Size([2, 3]) torch.Size([2, 3]) torch.Size([]) torch.channels_last",
        "torch.BFloat16Tensor torch.BFloat16Tensor torch.UntypedStorage torch.complex32",
        "<class 'torch.LongTensor'> <class 'torch.cuda.FloatTensor'> torch.float8_e5m2 "
        "torch._mkldnn",
        "torch.return_types.max(",
        "values=tensor([1., 1.]),",
        "indices=tensor([0, 1]))",
        "torch.return_types.linalg_slogdet(",
        "sign=tensor(1.),",
        "logabsdet=tensor(0.))",
        "torch.return_types.linalg_eig(",
        "eigenvalues=tensor([1.+0.j]),",
        "eigenvectors=tensor([[1.+0.j]]))",
        "ParameterList(  (0): Parameter containing: [torch.float32 of size 2x3])",
        "ParameterDict(  (a): Parameter containing: [torch.FloatTensor of size 2x3])",
        "True tensor([1], dtype=torch.int8)",
        "over",
    ]


def test_functions_stay_what_they_are_when_their_modules_are_imported(program):
    out, _ = program(
        """
        import torch
        import torch.nn.parallel.data_parallel, torch.nn.parallel.replicate
        from torch.autograd.gradcheck import GradcheckError
        from torch.nn.utils.weight_norm import WeightNorm
        from torch.nn.utils.spectral_norm import SpectralNorm

        utils, layer = torch.nn.utils, torch.nn.Linear(2, 2)
        one = torch.ones(2, dtype=torch.float64, requires_grad=True)
        print(torch.autograd.gradcheck(torch.sin, (one,)))
        print(utils.spectral_norm(layer) is layer)
        layer = torch.nn.Linear(2, 2)
        print(utils.weight_norm(layer).bias.shape)
        for name in ("data_parallel", "parallel_apply", "replicate"):
            print(getattr(torch.nn.parallel, name).__name__)
        """
    )
    answers = ["True", "True", "torch.Size([2])"]
    assert out.split() == [*answers, "data_parallel", "parallel_apply", "replicate"]


def test_texts_are_clews_again_after_uninstall():
    program = (
        "from clew._cli import run as _run; _run.install(); import torch; a = str(torch.float32);"
        "_run.uninstall(); import clew; x = clew.ones(2);"
        "print(a, x.dtype, x.shape, x.layout, clew.channels_last, x.type(), clew.aminmax(x));"
        "print(clew.linalg.slogdet(clew.eye(1)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=ENVIRONMENT, timeout=60
    )
    assert done.stdout.split() == [
        *("torch.float32", "clew.float32", "clew.Size([2])", "clew.strided"),
        *("clew.channels_last", "clew.FloatTensor"),
        *("clew.return_types.aminmax(min=tensor(1.),", "max=tensor(1.))"),
        *("SlogDet(sign=tensor(1.),", "logabsdet=tensor(0.))"),
    ], done.stderr


def test_functions_say_that_they_are_torchs(program):
    out, _ = program("""
        import pickle
        import torch
        from torch.nn.init import kaiming_uniform_, ones_
        from torch.overrides import TorchFunctionMode, resolve_name

        assert kaiming_uniform_.__module__ == ones_.__module__ == "torch.nn.init"
        assert pickle.loads(pickle.dumps(ones_)) is torch.nn.init.ones_
        assert resolve_name(torch.Tensor.add) == "torch.Tensor.add"

        class Names(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                names.append(resolve_name(func))
                return func(*args, **(kwargs or {}))

        names = []
        for _ in range(2):  # the module keeps what it has looked up, and must forget it
            torch.zeros(2)
            with Names():
                torch.zeros(2) + 1
        assert names == ["torch.zeros", "torch.Tensor.add"] * 2, names
        print("fine")
    """)
    assert out == "fine\n"


def test_functorchs_older_names_warn(program):
    out, _ = program("""
        import warnings
        import functorch
        import torch

        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            model, parameters = functorch.make_functional(torch.nn.Linear(2, 2))
            assert model(parameters, torch.ones(1, 2)).shape == (1, 2)
            assert functorch.vmap(lambda x: x * 2)(torch.ones(2)).tolist() == [2.0, 2.0]
            assert functorch.grad(torch.sum)(torch.ones(2)).tolist() == [1.0, 1.0]
            functorch.combine_state_for_ensemble([torch.nn.Linear(2, 2)] * 2)
        assert [w.category for w in seen] == [FutureWarning] * 4, seen
        assert all("integrated functorch" in str(w.message) for w in seen)
        assert all(w.filename == __file__ for w in seen)

        # What takes over gradients knows the function by its name there.
        class Own:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func is torch.autograd.grad

        assert torch.autograd.grad(Own(), Own()) is True
        print("fine")
    """)
    assert out == "fine\n"
