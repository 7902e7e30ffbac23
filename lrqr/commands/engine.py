"""Where the work of a command is done: in this process, in several, or on a Dask cluster.

joblib spreads the tasks; this sets what it spreads them over. Tasks and their results are the same
everywhere, and results come back in order: numbers depend neither on the engine nor on the processes.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import joblib
import pandas as pd
import pyarrow as pa

from lrqr.data import tables
from lrqr.errors import UsageError
from lrqr.plugins import ENGINES, check_choice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from lrqr.calibrate.model import CalibratedModel
    from lrqr.plugins import Engine, Infinite

_WAIT = "10s"


@dataclass(frozen=True)
class Place:
    """Where to work.

    Attributes
    ----------
    engine : {"local", "dask"}
    scheduler : str or None
        Address of a Dask scheduler, such as ``tcp://host:8786``; None starts a cluster on this machine.
    jobs : int
        Processes on this machine.
    """

    engine: Engine = "local"
    scheduler: str | None = None
    jobs: int = 1

    def __post_init__(self) -> None:
        check_choice("engine", self.engine, ENGINES)
        if self.scheduler and self.engine != "dask":
            raise UsageError("--scheduler is the address of a Dask cluster: pass --engine dask too")
        if self.jobs < 1:
            raise UsageError(f"the number of processes (--jobs) must be at least 1, got {self.jobs}")

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Let all that joblib spreads within this context be done here."""
        if self.engine == "local":
            with joblib.parallel_config(backend="loky", n_jobs=self.jobs):
                yield
            return
        try:
            from distributed import Client, LocalCluster
        except ImportError as error:
            raise UsageError("--engine dask needs an extra: pip install 'lrqr[dask]'") from error
        own: dict[str, Any] = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
        start: Any = partial(LocalCluster, n_workers=self.jobs, threads_per_worker=1, **own)
        connect: Any = partial(Client, timeout=_WAIT, set_as_default=False)
        with ExitStack() as stack:
            address = self.scheduler or stack.enter_context(start())
            try:
                client = stack.enter_context(connect(address))
            except (OSError, ValueError) as error:
                raise UsageError(f"no Dask scheduler answers at {address}: {error}") from error
            stack.enter_context(client.as_current())
            stack.enter_context(joblib.parallel_config(backend="dask", wait_for_workers_timeout=30))
            yield


LOCAL = Place()


def spread(function: Callable[[Any], Any], pieces: Iterable[Any]) -> Iterator[Any]:
    """Yield ``function(piece)`` in order; only a few pieces are under way or in memory at a time."""
    tasks = (joblib.delayed(function)(piece) for piece in pieces)
    yield from joblib.Parallel(return_as="generator")(tasks)


@dataclass(frozen=True)
class BatchScorer:
    """A function from a record batch to a record batch: what `predict` writes of the rows of a batch.

    It is small and can be pickled, and gives a row the same bits in any batch. Iterators of batches are what
    Spark's ``mapInArrow`` wants (`each`); Ray's ``map_batches(batch_format="pyarrow")`` calls it with tables.

    Attributes
    ----------
    model : CalibratedModel
    infinite : {"allow", "clip"}
        What to do with infinite thresholds.
    keep : tuple of str
        Columns of the batch to give back too, an identifier above all: batches know no row numbers.

    Examples
    --------
    In Spark: ``frame.mapInArrow(BatchScorer(lrqr.load("model"), keep=("id",)).each, schema)``.
    """

    model: CalibratedModel
    infinite: Infinite = "allow"
    keep: tuple[str, ...] = field(default=())

    def __call__(self, batch: Any) -> Any:
        """Score a record batch, or a table, and return the same kind.

        Raises
        ------
        DataError
            If columns lack, or a value is none that the fit can handle; the message says which.
        """
        from lrqr.commands.predict import frame_of

        table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        size = max(table.num_rows, 1)
        roles = replace(self.model.roles, group=None, id=None)
        options: dict[str, Any] = {"optional": (), "on_missing": self.model.on_missing, "keep_rows": True}
        samples = tables.batches(table, roles, size=size, need=self.model.needed(), keep=self.keep, **options)
        answered = ((sample, self.model.answer(sample, infinite=self.infinite)) for sample in samples)
        frames = [frame_of(self.model, *pair) for pair in answered]
        found = pa.Table.from_pandas(pd.concat(frames).drop(columns="row"), preserve_index=False)
        found = found.replace_schema_metadata()
        return found.to_batches()[0] if isinstance(batch, pa.RecordBatch) else found

    def each(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Score one batch after the other; batches without rows are left out."""
        return (self(batch) for batch in batches if batch.num_rows)
