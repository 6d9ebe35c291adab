"""`clew run`: a PyTorch program with `torch` and `torch.*` resolved to clew.

`install()` puts a finder in front of Python's own. `torch` becomes a module of its own, which looks
names up in clew and says so when clew lacks one; `torch.x` is the very module `clew.x`, or
`clew._torch.x` for what only PyTorch's programs look for. Modules are aliased when they are
imported, not before. Processes that the program starts find the folder `_alias`, which holds a
package `torch` that does the same.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import os
import pkgutil
import re
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import clew
from clew import return_types
from clew._base import dtypes as _dtypes
from clew._base import provenance as _provenance
from clew._namespace import nearest_name
from clew._program import options as _options
from clew._tensor.sending import followed_by
from clew.autograd import _ends

# The release whose interface clew follows, for programs that ask.
TORCH_VERSION = "2.13.0"
# Holds a package `torch` that is clew, and the metadata of its distribution.
ALIAS_FOLDER = os.path.join(os.path.dirname(os.path.abspath(clew.__file__)), "_alias")


class TorchVersion(str):
    """A version that also compares with tuples of numbers, as PyTorch's does."""

    @staticmethod
    def _key(value: Any) -> tuple[int, ...]:
        if isinstance(value, str):
            digits = []
            for part in value.partition("+")[0].split("."):
                number = ""
                for c in part:
                    if not c.isdigit():
                        break
                    number += c
                digits.append(int(number or 0))
            return tuple(digits)
        return tuple(int(v) for v in value)

    def _compare(self, other: Any) -> int:
        mine, theirs = self._key(self), self._key(other)
        size = max(len(mine), len(theirs))
        mine += (0,) * (size - len(mine))
        theirs += (0,) * (size - len(theirs))
        return (mine > theirs) - (mine < theirs)

    def __lt__(self, other: Any) -> bool:
        return self._compare(other) < 0

    def __le__(self, other: Any) -> bool:
        return self._compare(other) <= 0

    def __gt__(self, other: Any) -> bool:
        return self._compare(other) > 0

    def __ge__(self, other: Any) -> bool:
        return self._compare(other) >= 0

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return str.__eq__(self, other)
        return isinstance(other, (tuple, list)) and self._compare(other) == 0

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


# IPython's part that shows the errors of cells, in a notebook, too.
_SHELL = "IPython.core.interactiveshell"
# Names of dtypes, some of which clew makes only when they are asked for.
_SMALL_DTYPE = re.compile(r"(q?u?int|bits|float)\d+(x\d|_\w+)?")
_PAGE = "; docs/ecosystem.md says which libraries run, and how to report one that does not"


def missing(module: str, name: str, known: Iterable[str]) -> str:
    """What to say of a name that clew lacks, with the nearest that exists."""
    near = nearest_name(name, known)
    hint = f"; the nearest name is '{near}'" if near else ""
    return f"clew has no '{module}.{name}'{hint}"


class _Torch(types.ModuleType):
    """The module `torch`: names come from clew, and are set there."""

    def __getattr__(self, name: str) -> Any:
        if name in ("__config__", "__future__"):
            return importlib.import_module(f"torch.{name}")
        if name.startswith("__"):
            raise AttributeError(f"module 'torch' has no attribute {name!r}")
        if name == "torch":
            return self
        if _home(name) == f"clew._torch.{name}":
            return importlib.import_module(f"torch.{name}")
        try:
            value = getattr(clew, name)
        except AttributeError:
            pass
        else:
            if isinstance(value, types.ModuleType) and value.__name__ == f"clew.{name}":
                value = importlib.import_module(f"torch.{name}")
            found = callable(value) and name in vars(clew)  # not while a mode watches it
            if found or isinstance(value, types.ModuleType):
                self.__dict__[name] = value  # found at once from now on
            return value
        from clew import _torch

        if name in _torch.NAMES:
            value = self.__dict__[name] = _torch.find(name)
            return value
        if _has_module(name):
            return importlib.import_module(f"torch.{name}")
        raise AttributeError(missing("torch", name, dir(clew)))

    def __setattr__(self, name: str, value: Any) -> None:
        ours = isinstance(value, types.ModuleType) and value.__name__.startswith("clew._torch.")
        if name.startswith("__") or ours:
            self.__dict__[name] = value
        else:
            self.__dict__.pop(name, None)
            setattr(clew, name, value)

    def __delattr__(self, name: str) -> None:
        self.__dict__.pop(name, None)
        delattr(clew, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(clew), *super().__dir__()})

    def _fill(self) -> None:
        """Holds dtypes, layouts and classes from the start: programs look `vars(torch)` through for
        them, and must not see it grow while they do.
        """
        kinds = (type, clew.dtype, clew.layout, clew.memory_format)
        held = {**vars(_dtypes), **vars(clew)}
        held |= {n: getattr(clew, n) for n in dir(clew) if _SMALL_DTYPE.fullmatch(n)}
        for name, value in held.items():
            if not name.startswith("_") and hasattr(clew, name) and isinstance(value, kinds):
                self.__dict__[name] = value

    def _forget(self, names: Iterable[str]) -> None:
        """Looks names up in clew again when they are asked for."""
        for name in names:
            self.__dict__.pop(name, None)


@functools.cache
def _home(name: str) -> str | None:
    """The module that `torch.<name>` is: of clew._torch, else of clew.

    A folder of clew._torch without an `__init__.py` only adds modules to clew's package.
    """
    for home in (f"clew._torch.{name}", f"clew.{name}"):
        try:
            spec = importlib.util.find_spec(home)
        except (ModuleNotFoundError, ValueError):
            continue
        if spec is not None and spec.origin is not None:
            return home
    return None


def _is_absent(name: str) -> bool:
    from clew._torch import absent

    return name in absent.MODULES


@functools.cache
def _absent_module(name: str) -> Any:
    from clew._torch import absent

    return absent.make_module(name, _has_module)


def _has_module(name: str) -> bool:
    return _home(name) is not None or _is_absent(name)


def _beyond(short: str, module: Any, name: str) -> Any:
    """A name that `torch.<short>` has and clew's own module lacks."""
    from clew._torch import _more, absent

    home = _home(short)
    if home is not None and home != module.__name__:
        # A program that never imported `torch.<short>` gets clew's module as an attribute.
        return getattr(importlib.import_module(home), name)
    try:
        return _more.find(short, name)
    except AttributeError:
        return absent.lacking(short, name)


def _explain_missing(alias: str, module: Any) -> None:
    """Makes a module explain names that it lacks; what it looks up lazily still comes first."""
    lazy: Callable[[str], Any] | None = module.__dict__.get("__getattr__")
    if getattr(lazy, "_of_torch", False):
        return

    def __getattr__(name: str) -> Any:
        short = alias[len("torch.") :]
        if lazy is not None:
            try:
                value = lazy(name)
            except AttributeError:
                pass
            else:
                known = isinstance(value, types.ModuleType) and _has_module(f"{short}.{name}")
                if known and "torch" in sys.modules:  # not after uninstall()
                    return importlib.import_module(f"{alias}.{name}")
                return value
        if name.startswith("__"):
            raise AttributeError(f"module {alias!r} has no attribute {name!r}")
        if _has_module(f"{short}.{name}"):
            return importlib.import_module(f"{alias}.{name}")
        try:
            return _beyond(short, module, name)
        except AttributeError:
            raise AttributeError(missing(alias, name, dir(module))) from None

    __getattr__._of_torch = True  # type: ignore[attr-defined]
    module.__getattr__ = __getattr__
    if alias == "torch.nn.init":
        _name_module(module, alias)
    for name, part in list(vars(module).items()):
        beside = sys.modules.get(f"{module.__name__}.{name}")
        if beside is None:
            continue
        if beside is not part:
            # A function of its module's name: known now, the module is not put in its place later.
            sys.modules[f"{alias}.{name}"] = beside
        _explain_missing(f"{alias}.{name}", beside)


def _name_module(module: Any, name: str) -> None:
    """Has functions say that they are of a module of that name. Modes of libraries (lightning's
    for models that are loaded anyway) know by it what only fills parameters.
    """
    for value in vars(module).values():
        own = isinstance(value, types.FunctionType)
        if own and value.__module__ in (module.__name__, f"torch{module.__name__[4:]}"):
            value.__module__ = name


class _Loader(importlib.abc.Loader):
    """Gives the clew module for a torch name, leaving the module's own identity alone."""

    def create_module(self, spec: Any) -> Any:
        if spec.name == "torch":
            return _Torch("torch", clew.__doc__)
        short = spec.name[len("torch.") :]
        home = _home(short)
        module = _absent_module(short) if home is None else importlib.import_module(home)
        self._own = module.__spec__
        return module

    def exec_module(self, module: Any) -> None:
        if isinstance(module, _Torch):
            module.__version__ = TorchVersion(TORCH_VERSION + "+clew")
            module.__file__ = clew.__file__
            module._fill()
            module.__path__ = []  # a package, whose parts the finder knows
            # Libraries (opt_einsum, autoray) read off the class whose functions take its tensors.
            clew.Tensor.__module__ = "torch"
            # They read texts, too: str(x.dtype), str(x.layout), x.type().
            _dtypes.speak_of("torch")
            return_types._show_lines(True)
            # Hooks ask for the end of the backward that calls them, which must be noted by then.
            _ends.watch()
            return
        spec = module.__spec__  # the import system put the alias's there
        module.__spec__ = self._own
        _explain_missing(spec.name, module)


class _Finder:
    """Finds `torch` and `torch.*`, before any PyTorch that is installed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name == "torch" or name.startswith("torch."):
            if name == "torch":
                return importlib.machinery.ModuleSpec(name, _Loader(), is_package=True)
            short = name[len("torch.") :]
            if _home(short) is not None or _is_absent(short):
                return importlib.machinery.ModuleSpec(name, _Loader(), is_package=True)
            parent, _, last = name.rpartition(".")
            where = importlib.import_module(_home(parent[len("torch.") :]) or "clew")
            parts = [m.name for m in pkgutil.iter_modules(getattr(where, "__path__", []))]
            raise ModuleNotFoundError(missing(parent, last, parts), name=name)
        if name == "multiprocessing.spawn":
            return followed_by(_patch_spawn, name, path)
        if name == _SHELL:
            return followed_by(_patch_shell, name, path)
        if name.startswith("clew.") and name.count(".") > 1:
            return followed_by(_explain_late, name, path)
        return None


class _InstallInChild:
    """Travels to a spawned process, where unpickling it installs the finder."""

    def __reduce__(self) -> Any:
        return (install, ())


def _patch_spawn(module: Any) -> None:
    original = module.get_preparation_data
    if getattr(original, "_of_torch", False):
        return

    def get_preparation_data(name: str) -> dict[str, Any]:
        data: dict[str, Any] = original(name)
        # First, so that it is there before the child imports the main module.
        return {"clew": _InstallInChild(), **data}

    get_preparation_data._of_torch = True  # type: ignore[attr-defined]
    module.get_preparation_data = get_preparation_data


def _explain_late(module: Any) -> None:
    """Sees to a part that came into a module of clew's after `torch.*` became that module."""
    parent, _, name = module.__name__.partition(".")[2].rpartition(".")
    if f"torch.{parent}" in sys.modules:
        _explain_missing(f"torch.{parent}.{name}", module)


def install() -> None:
    """Makes `import torch` mean clew in this process and in those that it starts.

    Example:
        >>> from clew._cli.run import install, uninstall
        >>> install()
        >>> import torch
        >>> torch.nn is clew.nn
        True
        >>> uninstall()
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    if "torch" in sys.modules:
        raise RuntimeError("clew run: torch is imported already, so that it cannot be replaced")
    sys.meta_path.insert(0, _Finder())
    if "multiprocessing.spawn" in sys.modules:
        _patch_spawn(sys.modules["multiprocessing.spawn"])
    _complete_uncaught()
    _options.graph_maker = _with_backend


def _with_backend(*args: Any, **options: Any) -> Any:
    from clew._torch._dynamo._graphs import with_backend

    return with_backend(*args, **options)


def become_torch() -> None:
    """Turns the package `torch` of the alias folder, which is being imported, into clew."""
    del sys.modules["torch"]
    install()
    importlib.import_module("torch")


def _tell_children() -> None:
    """Puts the alias folder on the path of this process and of the processes that it starts."""
    if ALIAS_FOLDER not in sys.path:
        sys.path.insert(0, ALIAS_FOLDER)
    before = os.environ.get("PYTHONPATH", "")
    if ALIAS_FOLDER not in before.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [ALIAS_FOLDER, before]))


def uninstall() -> None:
    """Undoes `install` for imports to come; modules already imported stay with who has them."""
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, _Finder)]
    _options.graph_maker = None
    if getattr(sys.excepthook, "_of_torch", False):
        sys.excepthook = sys.excepthook._before  # type: ignore[attr-defined]
    clew.Tensor.__module__ = "clew"
    _dtypes.speak_of("clew")
    return_types._show_lines(False)
    if "clew.nn.init" in sys.modules:
        _name_module(sys.modules["clew.nn.init"], "clew.nn.init")
    for name in [n for n in sys.modules if n == "torch" or n.startswith("torch.")]:
        del sys.modules[name]


def _what_is_missing(error: BaseException) -> str | None:
    """The text of an error about a name of torch, with the name and where to look; else None."""
    text = str(error)
    found = re.match(r"cannot import name '(\w+)' from '((?:torch|clew)(?:\.[\w.]+)?)'", text)
    if isinstance(error, ImportError) and found:
        name, module = found[1], found[2]
        known = dir(sys.modules.get(module, clew))
        alias = re.sub(r"^clew(\._torch)?", "torch", module)
        return f"{text}: {missing(alias, name, known)}{_PAGE}"
    if not isinstance(error, ImportError | AttributeError):
        return None
    if text.startswith(("clew has no '", "clew.ops.")):
        return text + _PAGE
    owner = getattr(error, "obj", None)
    name = error.name or "_"
    if not isinstance(owner, type) or name.startswith("_"):
        return None
    if owner.__module__.split(".")[0] not in ("clew", "torch"):
        return None
    alias = re.sub(r"^clew(\._torch)?\b", "torch", owner.__module__)
    # Python itself tells the nearest name.
    return f"{text}: {missing(f'{alias}.{owner.__qualname__}', name, ())}{_PAGE}"


def _complete(error: Any) -> None:
    """Adds to an error about a name of torch what is missing and where to look."""
    text = None if _PAGE in str(error) else _what_is_missing(error)
    if text is not None:
        error.args = (text, *error.args[1:])
        if isinstance(error, ImportError):
            error.msg = text


def _complete_uncaught() -> None:
    """Completes errors that nobody caught, where they are shown: by Python and by IPython."""
    show = sys.excepthook
    if not getattr(show, "_of_torch", False):

        def excepthook(kind: Any, error: Any, traceback: Any) -> None:
            _complete(error)
            show(kind, error, traceback)

        excepthook._of_torch = True  # type: ignore[attr-defined]
        excepthook._before = show  # type: ignore[attr-defined]
        sys.excepthook = excepthook
    if _SHELL in sys.modules:
        _patch_shell(sys.modules[_SHELL])


def _patch_shell(module: Any) -> None:
    original = module.InteractiveShell._get_exc_info
    if getattr(original, "_of_torch", False):
        return

    def _get_exc_info(self: Any, exc_tuple: Any = None) -> Any:
        found = original(self, exc_tuple)
        _complete(found[1])
        return found

    _get_exc_info._of_torch = True  # type: ignore[attr-defined]
    module.InteractiveShell._get_exc_info = _get_exc_info


def _report(error: BaseException) -> None:
    """Shows an exception as Python would, without the frames of this file."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    error.__traceback__ = traceback
    _complete(error)
    sys.stdout.flush()
    sys.excepthook(type(error), error, traceback)


def run_script(path: str, args: Sequence[str]) -> int:
    """Runs a script as `python path args` would, with torch resolved to clew.

    Args:
        path: of the script; its directory comes first on `sys.path`.
        args: what the script finds in `sys.argv[1:]`.

    Returns:
        The exit status: 0, 1 after an exception that was not caught.
    """
    if not os.path.isfile(path):
        print(f"clew run: can't open file {path!r}", file=sys.stderr)
        return 2
    install()
    _tell_children()
    path = os.path.abspath(path)
    sys.argv[:] = [path, *args]
    sys.path.insert(0, os.path.dirname(path))

    def run() -> None:
        with io.open_code(path) as file:
            source = file.read()
        main = types.ModuleType("__main__")
        main.__file__ = path
        main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
        _execute(source, path, main)

    return _status_of(run)


def run_command(source: str, args: Sequence[str]) -> int:
    """Runs a program given as text as `python -c source args` would, with torch resolved to clew.

    Args:
        source: the program.
        args: what it finds in `sys.argv[1:]`.

    Returns:
        The exit status: 0, 1 after an exception that was not caught.
    """
    install()
    _tell_children()
    sys.argv[:] = ["-c", *args]
    sys.path.insert(0, "")
    return _status_of(lambda: _execute(source, "<string>", types.ModuleType("__main__")))


def _status_of(run: Callable[[], None]) -> int:
    """The exit status of a program, whose exception is reported if it was not caught."""
    try:
        run()
    except SystemExit:
        raise
    except BaseException as error:
        _report(error)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _execute(source: Any, path: str, main: types.ModuleType) -> None:
    code = compile(source, path, "exec", dont_inherit=True)
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    _stand_beneath()
    exec(code, main.__dict__)


def _stand_beneath(*functions: Any) -> None:
    """Notes that the callers, and these functions, are not of the program that is run."""
    _provenance.beneath.update(f.__code__ for f in functions)
    frame = sys._getframe(1)
    while frame is not None:
        _provenance.beneath.add(frame.f_code)
        frame = frame.f_back  # type: ignore[assignment]


def _ours(name: str) -> str:
    """The file behind a module of torch's, which a name that only stands for it has none of."""
    top, _, rest = name.partition(".")
    if top != "torch" or not rest:
        return name
    made = importlib.import_module(name)
    return getattr(made.__spec__, "name", name)


def run_module(name: str, args: Sequence[str]) -> int:
    """Runs a module as `python -m name args` would, with torch resolved to clew.

    Args:
        name: of the module; the working directory comes first on `sys.path`.
        args: what the module finds in `sys.argv[1:]`.

    Returns:
        The exit status: 0, 1 after an exception that was not caught.
    """
    import runpy

    install()
    _tell_children()
    sys.argv[:] = [name, *args]
    sys.path.insert(0, os.getcwd())
    try:
        inside = (getattr(runpy, name) for name in ("_run_module_code", "_run_code"))
        _stand_beneath(runpy.run_module, *inside)
        runpy.run_module(_ours(name), run_name="__main__", alter_sys=True)
    except SystemExit:
        raise
    except BaseException as error:
        _report(error)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0
