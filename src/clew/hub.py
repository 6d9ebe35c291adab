"""Weights from the net, kept in a directory. Programs are never fetched: that is executing them."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from clew._base.whole_files import replacing

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

_dir: str | None = None
# The digits of the file's SHA-256 in a name such as model-1a2b3c4d.pth.
HASH_REGEX = re.compile(r"-([a-f0-9]{8,})\.")


def get_dir() -> str:
    """The directory: what `set_dir` was given, else $CLEW_HOME/hub, $TORCH_HOME/hub or
    ~/.cache/clew/hub.

    >>> clew.hub.get_dir().endswith("hub")
    True
    """
    if _dir is not None:
        return _dir
    home = os.environ.get("CLEW_HOME") or os.environ.get("TORCH_HOME")
    if home is None:
        cache = os.environ.get("XDG_CACHE_HOME", os.path.join("~", ".cache"))
        home = os.path.join(cache, "clew")
    return os.path.join(os.path.expanduser(home), "hub")


def _get_torch_home() -> str:
    """The directory above `get_dir()`."""
    return os.path.dirname(get_dir())


def set_dir(d: str | os.PathLike[str]) -> None:
    """Chooses the directory in which files are kept; see `get_dir`.

    Args:
        d: its path; `~` stands for the home directory.

    Example:
        >>> from clew.hub import get_dir, set_dir
        >>> before = get_dir()
        >>> set_dir("/tmp/models")
        >>> get_dir()
        '/tmp/models'
        >>> set_dir(before)
    """
    global _dir
    _dir = os.path.expanduser(d)


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Fetches a file; it appears at its place only when it is whole.

    Args:
        url: the file's address.
        dst: the path to write.
        hash_prefix: the first hexadecimal digits of the file's SHA-256; None to compare nothing.
        progress: print to a terminal how much has come.

    Raises:
        RuntimeError: if the file's SHA-256 begins otherwise; `dst` is not written then.

    Example:
        >>> from clew.hub import download_url_to_file
        >>> import pathlib
        >>> pathlib.Path("weights.txt").write_text("0.5")
        3
        >>> download_url_to_file(pathlib.Path("weights.txt").absolute().as_uri(), "copy.txt")
        >>> pathlib.Path("copy.txt").read_text()
        '0.5'
    """
    dst = os.path.expanduser(dst)
    digest, done = hashlib.sha256(), 0
    with replacing(dst) as out:
        with urlopen(Request(url, headers={"User-Agent": "clew.hub"})) as answer:
            total = int(answer.headers.get("Content-Length") or 0)
            while block := answer.read(1 << 20):
                out.write(block)
                digest.update(block)
                done += len(block)
                if progress and sys.stderr.isatty():
                    share = f" of {total / 1e6:.1f}" if total else ""
                    print(f"\r{done / 1e6:.1f}{share} MB", end="", file=sys.stderr)
        if progress and sys.stderr.isatty():
            print(file=sys.stderr)
        if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(
                f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")'
            )


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """Loads a file of weights, and fetches it first if it is not in the directory.

    Args:
        url: the file's address.
        model_dir: the directory; `get_dir()`/checkpoints if None.
        map_location: as for `clew.load`.
        progress: print to a terminal how much has come.
        check_hash: compare the SHA-256 of what is fetched with the digits in its name, as in
            model-1a2b3c4d.pth.
        file_name: the name to keep it under; the URL's last part if None.
        weights_only: as for `clew.load`; False runs what the file says.

    Returns:
        What `clew.load` gives, mostly a dict of tensors.

    Example:
        >>> from clew.hub import load_state_dict_from_url
        >>> import pathlib
        >>> clew.save({"w": clew.ones(2)}, "model.pt")
        >>> url = pathlib.Path("model.pt").absolute().as_uri()
        >>> load_state_dict_from_url(url, model_dir="kept")
        {'w': tensor([1., 1.])}
    """
    import clew

    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress)
    return clew.load(path, map_location=map_location, weights_only=weights_only)


_OF_FETCHING = ("force_reload", "skip_validation", "trust_repo", "verbose")


def _no_programs(what: str) -> NoReturn:
    raise NotImplementedError(
        f"hub.{what}: clew does not fetch and run programs; load weights with "
        "hub.load_state_dict_from_url"
    )


def load(repo_or_dir: Any, model: str, *args: Any, source: str = "github", **kwargs: Any) -> Any:
    r"""Calls a function of the file hubconf.py in a folder, and returns its result.

    Args:
        repo_or_dir: the folder.
        model: the function's name.
        args: its arguments.
        source: "local". PyTorch's default "github" would run a program from the net, and raises.
        kwargs: its named arguments; `force_reload`, `skip_validation`, `trust_repo` and `verbose`
            concern what is fetched, and are left out.

    Raises:
        NotImplementedError: if the source is "github".
        RuntimeError: if there is no such function, or a package is missing that the file names.

    Example:
        >>> from clew.hub import load
        >>> import pathlib
        >>> text = "import clew\ndef linear(n): return clew.nn.Linear(n, 1)"
        >>> _ = pathlib.Path("hubconf.py").write_text(text)
        >>> load(".", "linear", 3, source="local")
        Linear(in_features=3, out_features=1, bias=True)
    """
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f"hub.load: source must be 'github' or 'local'; got {source!r}")
    if source == "github":
        _no_programs("load")
    import importlib.util

    folder = os.path.abspath(os.path.expanduser(os.fspath(repo_or_dir)))
    named = {k: v for k, v in kwargs.items() if k not in _OF_FETCHING}
    spec = importlib.util.spec_from_file_location("hubconf", os.path.join(folder, "hubconf.py"))
    assert spec is not None and spec.loader is not None
    sys.path.insert(0, folder)
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        needed = getattr(module, "dependencies", ())
        absent = [name for name in needed if importlib.util.find_spec(name) is None]
        if absent:
            raise RuntimeError(f"Missing dependencies: {', '.join(absent)}")
        entry = getattr(module, model, None)
        if not callable(entry):
            raise RuntimeError(f"Cannot find callable {model} in hubconf")
        return entry(*args, **named)
    finally:
        sys.path.remove(folder)


def list(github: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: clew does not fetch programs from the net.

    Args:
        github: not used.
        args, kwargs: not used.

    Example:
        >>> clew.hub.list("pytorch/vision")
        Traceback (most recent call last):
        NotImplementedError: hub.list: clew does not fetch and run programs; ...
    """
    _no_programs("list")


def help(github: str, model: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: clew does not fetch programs from the net.

    Args:
        github: not used.
        model: not used.
        args, kwargs: not used.

    Example:
        >>> clew.hub.help("pytorch/vision", "resnet18")
        Traceback (most recent call last):
        NotImplementedError: hub.help: clew does not fetch and run programs; ...
    """
    _no_programs("help")


if not TYPE_CHECKING:  # else checkers take any name to be there

    def __getattr__(name: str) -> Any:
        if name == "tqdm":  # PyTorch's libraries take it from here
            from clew.utils._progress import find_tqdm

            return find_tqdm()
        raise AttributeError(f"module 'clew.hub' has no attribute {name!r}")
