"""Comparisons of different revisions at the same time, each of them whole on one worker."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfdiff.cluster.deliveries import kept
from perfdiff.cluster.posts import Post, Posts
from perfdiff.cluster.protocol import Delivery, Record, Series
from perfdiff.cluster.workers import Worker
from perfdiff.progress import Progress
from perfdiff.revisions.bundles import Bundle, Sent
from perfdiff.revisions.pins import PinnedPair


@dataclass(slots=True)
class Apart:
    """Comparisons `pairs` that are measured into the folders of the same places.

    One that fails, or whose worker is lost, is not there afterwards: whoever needs it measures it, and hears why that cannot be done.
    """

    posts: Posts[int]
    pairs: Sequence[PinnedPair]
    folders: Sequence[Path]
    progress: Progress
    _waiting: collections.deque[int] = field(init=False)

    def __post_init__(self) -> None:
        self._waiting = collections.deque(range(len(self.pairs)))

    def measure(self, able: Sequence[Worker], series: Series, bundle: Bundle) -> None:
        """Measure all of them; raise what the last worker failed by where none is left from the start."""
        self.progress.stage("measuring revisions on workers", len(self.pairs))
        for _ in self.posts.open(able, bundle, lambda _: series):
            pass
        for post, answer in self.posts.answered(self._give, leaving_out=False):
            if post.now is None:
                continue
            place, post.now = post.now, None
            if isinstance(answer, Delivery):
                post.made += 1
                kept(answer, self.folders[place], post.name)
                self.progress.advance(f"{self.pairs[place].head.commit[:10]} on {self.posts.told(post)}")

    def _give(self, post: Post[int]) -> Record | None:
        if not self._waiting:
            return None
        post.now = self._waiting.popleft()
        pair = self.pairs[post.now]
        return Record((Sent.of(pair.base), Sent.of(pair.head)))
