"""Jobs run in turn or in threads under one bar, and how much may lie in memory meanwhile."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sklearn import get_config
from sklearn.utils.parallel import Parallel, delayed
from tqdm import tqdm


def memory_budget() -> int:
    """Bytes that intermediate results may take: scikit-learn's `working_memory`, 1 GiB unless set."""
    return int(get_config()["working_memory"] * 2**20)


def size_in_bytes(state: Any) -> int:
    """Bytes that a value takes, with all arrays inside it."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(state, protocol=5, buffer_callback=buffers.append)
    return len(head) + sum(buffer.raw().nbytes for buffer in buffers)


@dataclass(frozen=True)
class Work:
    """How jobs are run, and the bar that counts them."""

    n_jobs: int | None
    bar: Any

    @classmethod
    def of(cls, n_jobs: int | None, progress: bool) -> Work:
        """With a bar whose total is yet to be set."""
        return cls(n_jobs, tqdm(desc="comparing spaces", unit="step", disable=not progress))

    def __enter__(self) -> Work:
        return self

    def __exit__(self, *raised: object) -> None:
        self.bar.close()

    def expect(self, total: int) -> None:
        """Set the number of jobs to come."""
        self.bar.reset(total)

    def run(
        self, function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], *, threads: bool
    ) -> Iterator[Any]:
        """Results in the order of the arguments, as they come in.

        Threads share the arrays, and numpy computes in them side by side. A function of the caller
        may need processes, where Python does.
        """
        parallel = Parallel(
            n_jobs=self.n_jobs, prefer="threads" if threads else None, return_as="generator"
        )
        for result in parallel(delayed(function)(*each) for each in arguments):
            self.bar.update()
            yield result
