"""Data pipes that are iterated."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from typing import Any

from clew._torch.utils.data.datapipes._decorator import functional_datapipe
from clew._torch.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, Shuffling
from clew.utils.data import default_collate

__all__ = [
    "Batcher",
    "Collator",
    "Concater",
    "FileLister",
    "FileOpener",
    "Filter",
    "IterableWrapper",
    "Mapper",
    "Multiplexer",
    "Sampler",
    "ShardingFilter",
    "Shuffler",
    "StreamReader",
    "UnBatcher",
    "Zipper",
]


class IterableWrapper(IterDataPipe):
    """The items of any iterable.

    Args:
        iterable: the items.
        deepcopy: whether each pass reads a copy.
    """

    def __init__(self, iterable: Any, deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[Any]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:  # a generator, a file: it is read itself
                pass
        yield from source

    def __len__(self) -> int:
        return len(self.iterable)


class _Of(IterDataPipe):
    """A pipe over another one, as long as that."""

    def __init__(self, datapipe: Any) -> None:
        self.datapipe = datapipe

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("map")
class Mapper(_Of):
    """What a function makes of each item.

    Args:
        datapipe: the items.
        fn: the function.
        input_col: the place or places of its arguments in an item.
        output_col: where its result goes: in place of the first argument, or at -1 the end.
    """

    def __init__(
        self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None
    ) -> None:
        super().__init__(datapipe)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, list | tuple):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.fn, self.input_col, self.output_col = fn, input_col, output_col

    def _made(self, item: Any) -> Any:
        if self.input_col is None:
            return self.fn(item)
        several = isinstance(self.input_col, list | tuple)
        columns = list(self.input_col) if several else [self.input_col]
        made = self.fn(*(item[c] for c in columns))
        changed: Any = list(item) if isinstance(item, tuple) else copy.copy(item)
        if self.output_col is None:
            for column in columns[:0:-1]:
                del changed[column]
            changed[columns[0]] = made
        elif self.output_col == -1 and isinstance(changed, list):
            changed.append(made)
        else:
            changed[self.output_col] = made
        return tuple(changed) if isinstance(item, tuple) else changed

    def __iter__(self) -> Iterator[Any]:
        for item in self.datapipe:
            yield self._made(item)


@functional_datapipe("filter")
class Filter(IterDataPipe):
    """The items that a function says yes to.

    Args:
        datapipe: the items.
        filter_fn: the function.
        input_col: the place or places of its arguments in an item.
    """

    def __init__(self, datapipe: Any, filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def _keeps(self, item: Any) -> bool:
        if self.input_col is None:
            said = self.filter_fn(item)
        elif isinstance(self.input_col, list | tuple):
            said = self.filter_fn(*(item[c] for c in self.input_col))
        else:
            said = self.filter_fn(item[self.input_col])
        if not isinstance(said, bool):
            raise ValueError(
                "Boolean output is required for `filter_fn` of FilterIterDataPipe, got "
                f"{type(said)}"
            )
        return said

    def __iter__(self) -> Iterator[Any]:
        for item in self.datapipe:
            if self._keeps(item):
                yield item


@functional_datapipe("shuffle")
class Shuffler(Shuffling, _Of):
    """The items in a random order, as far as a buffer reaches.

    Args:
        datapipe: the items.
        buffer_size: how many are held back.
        unbatch_level: how many levels of batches are taken apart before.
    """

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise ValueError("buffer_size should be larger than 0")
        super().__init__(datapipe.unbatch(unbatch_level) if unbatch_level else datapipe)
        self.buffer_size = buffer_size

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        held: list[Any] = []
        for item in self.datapipe:
            if len(held) < self.buffer_size:
                held.append(item)
                continue
            at = self._rng.randint(0, len(held) - 1)
            held[at], item = item, held[at]
            yield item
        while held:
            yield held.pop(self._rng.randint(0, len(held) - 1))


@functional_datapipe("batch")
class Batcher(IterDataPipe):
    """Items in lists of equal length.

    Args:
        datapipe: the items.
        batch_size: how long.
        drop_last: whether a shorter last one is left out.
        wrapper_class: makes the batch of the list.
    """

    def __init__(
        self,
        datapipe: Any,
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: Callable[[Any], Any] = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator[Any]:
        batch = []
        for item in self.datapipe:
            batch.append(item)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        count = len(self.datapipe)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcher(IterDataPipe):
    """The items of batches.

    Args:
        datapipe: the batches.
        unbatch_level: how many levels are taken apart; -1 for all.
    """

    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def _parts(self, item: Any, level: int) -> Iterator[Any]:
        if level == 0 or (level < 0 and not isinstance(item, list)):
            yield item
            return
        if not isinstance(item, list):
            raise IndexError(
                f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe"
            )
        for part in item:
            yield from self._parts(part, level - 1)

    def __iter__(self) -> Iterator[Any]:
        for item in self.datapipe:
            yield from self._parts(item, self.unbatch_level)


@functional_datapipe("collate")
class Collator(Mapper):
    """Batches made of lists of samples.

    Args:
        datapipe: the lists.
        collate_fn: makes a batch; default_collate if None.
    """

    def __init__(self, datapipe: Any, collate_fn: Callable[[Any], Any] | None = None) -> None:
        super().__init__(datapipe, default_collate if collate_fn is None else collate_fn)


class _Several(IterDataPipe):
    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(p, IterDataPipe) for p in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes


@functional_datapipe("concat")
class Concater(_Several):
    """The items of several pipes, one after the other."""

    def __iter__(self) -> Iterator[Any]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class Zipper(_Several):
    """One item of each of several pipes, as tuples."""

    def __iter__(self) -> Iterator[Any]:
        yield from zip(*self.datapipes)

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)


@functional_datapipe("mux")
class Multiplexer(_Several):
    """One item of each of several pipes in turn, until one ends."""

    def __iter__(self) -> Iterator[Any]:
        for items in zip(*self.datapipes):
            yield from items

    def __len__(self) -> int:
        return len(self.datapipes) * min(len(pipe) for pipe in self.datapipes)


@functional_datapipe("sharding_filter")
class ShardingFilter(IterDataPipe):
    """Of each few items one; workers of a DataLoader get different ones."""

    def __init__(self, source_datapipe: Any, sharding_group_filter: Any = None) -> None:
        self.source_datapipe = source_datapipe
        self.num_of_instances, self.instance_id = 1, 0

    def apply_sharding(
        self, num_of_instances: int, instance_id: int, sharding_group: Any = None
    ) -> None:
        """Says how many shares there are, and which is this one's."""
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than num_of_instances"
                f"({num_of_instances})"
            )
        self.num_of_instances, self.instance_id = num_of_instances, instance_id

    def __iter__(self) -> Iterator[Any]:
        for i, item in enumerate(self.source_datapipe):
            if i % self.num_of_instances == self.instance_id:
                yield item

    def __len__(self) -> int:
        count, rest = divmod(len(self.source_datapipe), self.num_of_instances)
        return count + (self.instance_id < rest)


class Sampler(IterDataPipe):
    """The items that a sampler gives for a pipe."""

    def __init__(
        self, datapipe: Any, sampler: Any = None, sampler_args: Any = (), sampler_kwargs: Any = None
    ) -> None:
        from clew.utils.data import SequentialSampler

        self.datapipe = datapipe
        kind: Any = SequentialSampler if sampler is None else sampler
        self.sampler = kind(*sampler_args, data_source=datapipe, **(sampler_kwargs or {}))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


@functional_datapipe("list_files")
class FileLister(IterDataPipe):
    """The paths of the files in folders.

    Args:
        root: a folder, or a pipe of folders.
        masks: what a name must match, such as "*.txt", or several of which one must.
        recursive: also the folders inside.
        abspath: whether paths are absolute.
        non_deterministic: without effect: paths are sorted.
        length: how many there are, if known.
    """

    def __init__(
        self,
        root: Any = ".",
        masks: Any = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        self.datapipe = IterableWrapper([root]) if isinstance(root, str) else root
        self.masks, self.recursive, self.abspath, self.length = masks, recursive, abspath, length

    def __iter__(self) -> Iterator[str]:
        from fnmatch import fnmatch

        masks = [self.masks] if isinstance(self.masks, str) else list(self.masks)
        for root in self.datapipe:
            for folder, folders, files in os.walk(root):
                folders.sort()
                for name in sorted(files):
                    if not any(masks) or any(fnmatch(name, mask) for mask in masks):
                        path = os.path.join(folder, name)
                        yield os.path.abspath(path) if self.abspath else path
                if not self.recursive:
                    break

    def __len__(self) -> int:
        if self.length < 0:
            raise TypeError("FileLister instance doesn't have valid length")
        return self.length


@functional_datapipe("open_files")
class FileOpener(_Of):
    """Pairs of paths and open files.

    Args:
        datapipe: the paths.
        mode: as for `open`.
        encoding: likewise.
        length: how many there are, if known.
    """

    def __init__(
        self, datapipe: Any, mode: str = "r", encoding: str | None = None, length: int = -1
    ) -> None:
        super().__init__(datapipe)
        self.mode, self.encoding, self.length = mode, encoding, length

    def __iter__(self) -> Iterator[Any]:
        for path in self.datapipe:
            yield path, open(path, self.mode, encoding=self.encoding)  # who reads it closes it

    def __len__(self) -> int:
        return len(self.datapipe) if self.length < 0 else self.length


@functional_datapipe("read_from_stream")
class StreamReader(IterDataPipe):
    """Pairs of paths and the content of open files, which are closed.

    Args:
        datapipe: pairs of paths and files.
        chunk: how many bytes or characters at once; all if None.
    """

    def __init__(self, datapipe: Any, chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[Any]:
        for path, stream in self.datapipe:
            with stream:
                while True:
                    part = stream.read(self.chunk)
                    if part or self.chunk is None:
                        yield path, part
                    if not part or self.chunk is None:
                        break
