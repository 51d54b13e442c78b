"""tf.data, and its service: the crop is cut while decoding, nothing keeps its order, no antialiasing."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}

import tensorflow as tf

from peer import BATCH, MEAN, SIZE, STD, Base, Settings, files


def crop(shape: Any) -> Any:
    """RandomResizedCrop's distribution: top, left, height, width."""
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        shape,
        tf.zeros([1, 0, 4]),
        aspect_ratio_range=(3 / 4, 4 / 3),
        area_range=(0.08, 1.0),
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
    )
    return tf.concat([begin[:2], size[:2]], 0)


def picture(name: Any, number: Any) -> Any:
    """A file's crop, resized, flipped and normalised, and its number."""
    file = tf.io.read_file(name)
    window = crop(tf.image.extract_jpeg_shape(file))
    pixels = tf.image.decode_and_crop_jpeg(file, window, channels=3)
    pixels = tf.image.resize(pixels, (SIZE, SIZE), method="bilinear", antialias=False)
    pixels = tf.image.random_flip_left_right(pixels)
    return (pixels / 255.0 - tf.constant(MEAN)) / tf.constant(STD), number


class Peer(Base):
    """The variants are local and service: a dispatcher and workers, each a process."""

    packages = ("tensorflow-cpu",)

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._services: list[subprocess.Popen[str]] = []
        self._address = ""
        self._checkpoint: Any = None

    def start(self) -> None:
        """Starts dispatcher and workers."""
        if self.settings.variant == "service":
            self._address = self._serve("dispatcher")
            for _ in range(self.settings.services):
                self._serve("worker", self._address)

    def _serve(self, *arguments: str) -> str:
        command = [sys.executable, __file__, *arguments]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._services.append(process)
        assert process.stdout is not None
        return process.stdout.readline().strip()

    def _data(self) -> Any:
        settings = self.settings
        paths = files(settings.folder)
        data = tf.data.Dataset.from_tensor_slices(([str(path) for path in paths], list(range(len(paths)))))
        data = data.shuffle(len(paths), seed=settings.samples, reshuffle_each_iteration=True)
        options = tf.data.Options()
        saved = bool(settings.save_at) or settings.state is not None  # checkpoints need an order
        options.deterministic = saved
        data = data.map(picture, num_parallel_calls=settings.workers).batch(BATCH, drop_remainder=True)
        if settings.variant == "service":
            policy = tf.data.experimental.service.ShardingPolicy.DYNAMIC
            data = data.apply(tf.data.experimental.service.distribute(policy, f"grpc://{self._address}"))
        else:
            options.threading.private_threadpool_size = settings.workers
            options.experimental_symbolic_checkpoint = saved
        # One iterator for all epochs: where one is made while the last one is still there, its first batch takes an
        # epoch's time.
        return data.repeat(settings.epochs).prefetch(2).with_options(options)

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Batches of the pipeline."""
        iterator = iter(self._data())
        self._checkpoint = tf.train.Checkpoint(iterator=iterator)
        if self.settings.state is not None:
            self._checkpoint.read(self.settings.state).assert_consumed()
        for images, ids in iterator:
            yield images, ids.numpy()

    def state(self) -> str:
        """Where the checkpoint of the iterator was written."""
        return str(self._checkpoint.write(str(Path(tempfile.mkdtemp(dir=self.settings.prepared), "iterator"))))

    def stop(self) -> None:
        """Ends the services, workers first."""
        for process in reversed(self._services):
            process.kill()
            process.wait(30)


def serve(kind: str, address: str = "") -> None:
    """A service, until its input ends; its address is printed."""
    service = tf.data.experimental.service
    if kind == "dispatcher":
        server = service.DispatchServer(service.DispatcherConfig(port=0))
        print(server.target.split("://")[1], flush=True)
    else:
        config = service.WorkerConfig(dispatcher_address=address, heartbeat_interval_ms=500)
        server = service.WorkerServer(config)
        print("ready", flush=True)
    sys.stdin.read()
    del server


if __name__ == "__main__":
    serve(*sys.argv[1:3])
