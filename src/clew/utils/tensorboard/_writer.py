"""SummaryWriter: event files for TensorBoard."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from clew._base.whole_files import replacing

from . import _summary as summary
from ._file_writer import FileWriter

__all__ = ["SummaryWriter"]


class SummaryWriter:
    """Writes scalars, histograms, pictures, texts ... where TensorBoard finds them.

    Args:
        log_dir: the directory; runs/<time>_<host><comment> by default.
        comment: end of the default directory's name.
        purge_step: events from this step on that are already there count as gone.
        max_queue: events that may wait before they are written.
        flush_secs: how long they may wait.
        filename_suffix: end of the file's name.

    Example:
        >>> import tempfile
        >>> from clew.utils.tensorboard import SummaryWriter  # doctest: +SKIP
        >>> with SummaryWriter(tempfile.mkdtemp()) as writer:  # doctest: +SKIP
        ...     for step in range(10):
        ...         writer.add_scalar("loss", 1 / (1 + step), step)
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        summary.protos()
        if not log_dir:
            import socket

            now = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None or self.all_writers is None:
            made = FileWriter(self.log_dir, self.max_queue, self.flush_secs, self.filename_suffix)
            self.file_writer, self.all_writers = made, {self.log_dir: made}
            if self.purge_step is not None:
                from tensorboard.compat.proto import event_pb2

                made.add_event(event_pb2.Event(file_version="brain.Event:2"), self.purge_step)
                started = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
                made.add_event(event_pb2.Event(session_log=started), self.purge_step)
                self.purge_step = None
        return self.file_writer

    def _add(self, message: Any, step: Any, walltime: float | None) -> None:
        self._get_file_writer().add_summary(message, step, walltime)

    def get_logdir(self) -> str:
        """The directory."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Adds a number.

        Args:
            tag: its name.
            scalar_value: the number, or a tensor with one element.
            global_step: at which step.
            walltime: seconds since 1970; now by default.
            new_style: store it as a tensor.
            double_precision: store it in float64.
        """
        message = summary.scalar(tag, scalar_value, new_style, double_precision)
        self._add(message, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Adds numbers that are drawn together, each in a file of its own.

        Args:
            main_tag: the name of all.
            tag_scalar_dict: each one's name and number.
            global_step: at which step.
            walltime: seconds since 1970; now by default.
        """
        walltime = time.time() if walltime is None else walltime
        base = self._get_file_writer().get_logdir()
        assert self.all_writers is not None
        for tag, value in tag_scalar_dict.items():
            where = os.path.join(base, f"{main_tag.replace('/', '_')}_{tag}")
            writer = self.all_writers.get(where)
            if writer is None:
                writer = FileWriter(where, self.max_queue, self.flush_secs, self.filename_suffix)
                self.all_writers[where] = writer
            writer.add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(
        self, tag: str, tensor: Any, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Adds a tensor.

        Args:
            tag: its name.
            tensor: the tensor.
            global_step: at which step.
            walltime: seconds since 1970; now by default.
        """
        self._add(summary.tensor(tag, tensor), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Adds how values are distributed.

        Args:
            tag: its name.
            values: a tensor of any shape.
            global_step: at which step.
            bins: "tensorflow" for edges that grow by a tenth, or what numpy.histogram takes.
            walltime: seconds since 1970; now by default.
            max_bins: join neighbours until there are at most so many.
        """
        self._add(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: float,
        sum: float,
        sum_squares: float,
        bucket_limits: Sequence[float],
        bucket_counts: Sequence[float],
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a histogram that was counted elsewhere.

        Args:
            tag: its name.
            min: the least value.
            max: the greatest value.
            num: how many values.
            sum: their sum.
            sum_squares: the sum of their squares.
            bucket_limits: the right edges of the buckets.
            bucket_counts: how many values lie in each.
            global_step: at which step.
            walltime: seconds since 1970; now by default.
        """
        message = summary.raw_histogram(
            tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts
        )
        self._add(message, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Adds a picture: bytes, or other numbers in [0, 1].

        Args:
            tag: its name.
            img_tensor: (C, H, W), or as dataformats says.
            global_step: at which step.
            walltime: seconds since 1970; now by default.
            dataformats: the order of the dims, such as "HWC" or "HW".
        """
        pixels = summary.as_image(img_tensor, dataformats, "add_image")
        self._add(summary.image(tag, pixels), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Adds several pictures side by side.

        Args:
            tag: their name.
            img_tensor: (N, C, H, W), or as dataformats says, or a list of (C, H, W).
            global_step: at which step.
            walltime: seconds since 1970; now by default.
            dataformats: the order of the dims.
        """
        if isinstance(img_tensor, (list, tuple)):
            img_tensor = np.stack([summary.array(x) for x in img_tensor])
        pixels = summary.as_image(img_tensor, dataformats, "add_images")
        self._add(summary.image(tag, pixels), global_step, walltime)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:
        """Adds a picture with rectangles.

        Args:
            tag: its name.
            img_tensor: (C, H, W), or as dataformats says.
            box_tensor: (n, 4): left, top, right, bottom.
            global_step: at which step.
            walltime: seconds since 1970; now by default.
            rescale: 1; the picture is not scaled here.
            dataformats: the order of the dims.
            labels: None; there is no font to write them with.
        """
        if rescale != 1 or labels is not None:
            raise NotImplementedError(
                "add_image_with_boxes: rescale and labels are not supported; use add_figure"
            )
        pixels = summary.as_image(img_tensor, dataformats, "add_image_with_boxes")
        pixels = summary.with_boxes(pixels, summary.array(box_tensor))
        self._add(summary.image(tag, pixels), global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: Any = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Adds a matplotlib figure as a picture.

        Args:
            tag: its name.
            figure: the figure, or a list of them.
            global_step: at which step.
            close: close the figure afterwards.
            walltime: seconds since 1970; now by default.
        """
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        drawn = []
        for one in figure if isinstance(figure, (list, tuple)) else [figure]:
            canvas = FigureCanvasAgg(one)
            canvas.draw()
            drawn.append(np.asarray(canvas.buffer_rgba())[:, :, :3].copy())
            if close:
                pyplot.close(one)
        if isinstance(figure, (list, tuple)):
            self.add_images(tag, np.stack(drawn), global_step, walltime, "NHWC")
        else:
            self.add_image(tag, drawn[0], global_step, walltime, "HWC")

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: Any = None,
        fps: int = 4,
        walltime: float | None = None,
    ) -> None:
        """Raises: there is no encoder for moving pictures; use add_images of the frames."""
        raise NotImplementedError("add_video: no encoder; use add_images of the frames")

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: Any = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Adds a sound.

        Args:
            tag: its name.
            snd_tensor: samples in [-1, 1].
            global_step: at which step.
            sample_rate: samples a second.
            walltime: seconds since 1970; now by default.
        """
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Adds a text in Markdown.

        Args:
            tag: its name.
            text_string: the text.
            global_step: at which step.
            walltime: seconds since 1970; now by default.
        """
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_graph(
        self,
        model: Any,
        input_to_model: Any = None,
        verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:
        """Adds the graph that a run of the model in evaluation mode records.

        Args:
            model: a module.
            input_to_model: a tensor, or a tuple of arguments.
            verbose: prints the nodes.
            use_strict_trace: without effect: nothing is traced.
        """
        from clew.utils.tensorboard._graph import graph

        if input_to_model is None:
            raise ValueError("add_graph: input_to_model is needed, to run the model once")
        found, metadata = graph(model, input_to_model)
        if verbose:
            print(found)
        self._get_file_writer().add_graph((found, metadata))

    def add_onnx_graph(self, prototxt: Any) -> None:
        """Raises: ONNX files are not read."""
        raise NotImplementedError("add_onnx_graph: ONNX files are not read")

    def add_embedding(
        self,
        mat: Any,
        metadata: Any = None,
        label_img: Any = None,
        global_step: Any = None,
        tag: str = "default",
        metadata_header: Any = None,
    ) -> None:
        """Adds points for the projector.

        Args:
            mat: (N, D), a row for each point.
            metadata: N labels, or N rows of them with metadata_header.
            label_img: (N, C, H, W), a small picture for each point.
            global_step: at which step.
            tag: its name.
            metadata_header: the names of the columns of metadata.
        """
        from tensorboard.plugins.projector import projector_config_pb2 as config

        points = summary.array(mat)
        if points.ndim != 2:
            raise ValueError(f"add_embedding: mat must be (N, D); got shape {points.shape}")
        step = "00000" if global_step is None else f"{int(global_step):05d}"
        folder = os.path.join(step, tag.replace("/", "_"))
        path = os.path.join(self.log_dir, folder)
        os.makedirs(path, exist_ok=True)
        entry = config.EmbeddingInfo(
            tensor_name=f"{tag}:{step}", tensor_path=os.path.join(folder, "tensors.tsv")
        )
        with replacing(os.path.join(path, "tensors.tsv"), "w") as f:
            for row in points.tolist():
                f.write("\t".join(repr(v) for v in row) + "\n")
        if metadata is not None:
            if len(metadata) != len(points):
                raise ValueError(
                    f"add_embedding: metadata must have a label for each of {len(points)} points; "
                    f"got {len(metadata)}"
                )
            rows = [[x] if metadata_header is None else x for x in metadata]
            if metadata_header is not None:
                rows = [metadata_header, *rows]
            with replacing(os.path.join(path, "metadata.tsv"), "w", encoding="utf8") as f:
                f.writelines("\t".join(str(v) for v in row) + "\n" for row in rows)
            entry.metadata_path = os.path.join(folder, "metadata.tsv")
        if label_img is not None:
            pictures = summary.array(label_img)
            if len(pictures) != len(points):
                raise ValueError(
                    f"add_embedding: label_img must have {len(points)} pictures; got "
                    f"{len(pictures)}"
                )
            across = int(np.ceil(np.sqrt(len(pictures))))
            sprite = summary.as_image(summary.grid(pictures, across), "CHW", "add_embedding")
            with replacing(os.path.join(path, "sprite.png")) as image:
                image.write(summary.png(sprite))
            entry.sprite.image_path = os.path.join(folder, "sprite.png")
            entry.sprite.single_image_dim.extend([pictures.shape[3], pictures.shape[2]])
        if not hasattr(self, "_projector"):
            self._projector = config.ProjectorConfig()
        self._projector.embeddings.extend([entry])
        from google.protobuf import text_format

        with replacing(os.path.join(self.log_dir, "projector_config.pbtxt"), "w") as f:
            f.write(text_format.MessageToString(self._projector))

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Adds precision and recall at many thresholds.

        Args:
            tag: its name.
            labels: what is true, of 0 and 1.
            predictions: probabilities.
            global_step: at which step.
            num_thresholds: how many, at most 127.
            weights: a factor for each prediction.
            walltime: seconds since 1970; now by default.
        """
        message = summary.pr_curve(tag, labels, predictions, num_thresholds, weights)
        self._add(message, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a curve that was counted elsewhere.

        Args:
            tag: its name.
            true_positive_counts: a number for each threshold, as are the following.
            false_positive_counts: see there.
            true_negative_counts: see there.
            false_negative_counts: see there.
            precision: see there.
            recall: see there.
            global_step: at which step.
            num_thresholds: how many.
            weights: None; the counts are weighted already.
            walltime: seconds since 1970; now by default.
        """
        rows = (
            true_positive_counts,
            false_positive_counts,
            true_negative_counts,
            false_negative_counts,
            precision,
            recall,
        )
        table = np.stack([summary.array(r).astype(float) for r in rows])
        if table.ndim != 2 or table.shape[1] != num_thresholds:
            raise ValueError(
                f"add_pr_curve_raw: each row must have {num_thresholds} numbers; got "
                f"{table.shape[1:]}"
            )
        self._add(summary.raw_pr_curve(tag, table), global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, Any] | None = None,
        run_name: str | None = None,
        global_step: Any = None,
    ) -> None:
        """Adds what a run was set to and what it reached, as a run of its own.

        Args:
            hparam_dict: name and value of each setting.
            metric_dict: name and number of each result.
            hparam_domain_discrete: the values that a setting may have.
            run_name: the run's directory below this one; the time by default.
            global_step: at which step.
        """
        if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
            raise TypeError("add_hparams: hparam_dict and metric_dict must be dicts")
        messages = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        where = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(where) as run:
            for message in messages:
                run._add(message, None, None)
            for name, value in metric_dict.items():
                run.add_scalar(name, value, global_step)

    def add_custom_scalars(self, layout: dict[str, dict[str, Any]]) -> None:
        """Says which scalars TensorBoard draws together.

        Args:
            layout: category -> chart -> ["Multiline" or "Margin", tags].
        """
        self._add(summary.layout(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Draws scalars in one chart.

        Args:
            tags: their names.
            category: where the chart stands.
            title: the chart's name.
        """
        self.add_custom_scalars({category: {title: ["Multiline", list(tags)]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Draws a scalar with a lower and an upper bound.

        Args:
            tags: the names of value, lower and upper bound.
            category: where the chart stands.
            title: the chart's name.
        """
        if len(tags) != 3:
            raise ValueError(f"add_custom_scalars_marginchart: 3 tags are needed; got {len(tags)}")
        self.add_custom_scalars({category: {title: ["Margin", list(tags)]}})

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Any = None,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Raises: meshes are not written; use add_figure of a drawing."""
        raise NotImplementedError("add_mesh: not supported; use add_figure of a drawing")

    def flush(self) -> None:
        """Writes what waits."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Writes what waits and closes the files; a later call opens new ones."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *args: Any) -> None:
        self.close()
