"""The requests of a run, in order: drawn by a seed, so that both revisions are sent the same."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from perfdiff.config import PLACE, RequestConfig, RequestMix
from perfdiff.errors import WorkloadError

NUMBER = "i"  # the place of a request's number among those of its kind
URL = "url"
_RANGE = re.compile(r"(-?[0-9]+)\.\.(-?[0-9]+)")
_BLOCK_BYTES = 1 << 20  # of text that bodies are cut from
_LETTERS = b"abcdefghijklmnopqrstuvwxyz     \n"  # 32, so that a byte's last five bits choose one

Values = Mapping[str, float | str]


@dataclass(frozen=True, slots=True)
class Planned:
    """A request: its kind by number, and `needs`, the request that must be answered before it is sent, None where none."""

    kind: int
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    needs: int | None = None


def plan(mix: RequestMix, values: Values, url: str) -> list[Planned]:
    """Return the requests of a run with these parameters; raise WorkloadError where its numbers are none, or nothing may follow."""
    rng = random.Random(f"perfdiff:{mix.seed}")
    text = rng.randbytes(_BLOCK_BYTES).translate(bytes(_LETTERS[byte & 31] for byte in range(256)))
    requests: list[Planned] = []
    places: list[list[int]] = [[] for _ in mix.requests]
    names = [request.name for request in mix.requests]
    for kind in _kinds(mix, rng, _whole(mix.count, values, "count")):
        request = mix.requests[kind]
        number = len(places[kind])
        place_values = {**values, NUMBER: number, URL: url}
        place_values |= {name: _drawn(options, place_values, rng) for name, options in request.draw.items()}
        body = _body(request, place_values, text, rng)
        needs = places[names.index(request.after)][number] if request.after else None
        path = filled(request.path, place_values, lambda value: quote(value, safe=""))
        headers = {name: filled(value, place_values) for name, value in request.headers.items()}
        places[kind].append(len(requests))
        requests.append(Planned(kind, request.method, path, headers, body, needs))
    return requests


def filled(text: str, values: Values, written: Callable[[str], str] = str) -> str:
    """Put values in the places of a text; braces that name nothing stay as they are."""
    return PLACE.sub(lambda match: written(str(values[match[1]])) if match[1] in values else match[0], text)


def _kinds(mix: RequestMix, rng: random.Random, count: int) -> Iterator[int]:
    """Yield the kinds of requests: the first ones of each, then the mix, by weight among those whose forerunners are there."""
    names = [request.name for request in mix.requests]
    counts = [0] * len(names)

    def may(kind: int) -> bool:
        after = mix.requests[kind].after
        return after is None or counts[kind] < counts[names.index(after)]

    for kind, request in enumerate(mix.requests):
        for _ in range(request.first):
            if not may(kind):
                raise WorkloadError(
                    f"{mix.file}: request '{request.name}' comes after '{request.after}', but more of it are to be first",
                    slug="requests-few",
                )
            counts[kind] += 1
            yield kind
    for _ in range(count):
        open_ = [kind for kind, request in enumerate(mix.requests) if request.weight > 0 and may(kind)]
        if not open_:
            raise WorkloadError(
                f"{mix.file}: no request may be next: all come after others that have no weight; give one a weight", slug="requests-few"
            )
        (kind,) = rng.choices(open_, [mix.requests[kind].weight for kind in open_])
        counts[kind] += 1
        yield kind


def _drawn(options: Sequence[float | str], values: Values, rng: random.Random) -> float | str:
    """Return one of some values, or a number of a range `1..1000`."""
    if len(options) == 1 and (bounds := _RANGE.fullmatch(filled(str(options[0]), values))):
        low, high = sorted((int(bounds[1]), int(bounds[2])))
        return rng.randint(low, high)
    return rng.choice(options)


def _body(request: RequestConfig, values: Values, text: bytes, rng: random.Random) -> bytes:
    if request.content is not None:
        return request.content.encode("latin-1")
    if request.body is not None:
        return filled(request.body, values).encode()
    if request.body_bytes is None:
        return b""
    size = _size(filled(request.body_bytes, values), values, rng)
    start = rng.randrange(len(text))
    return (text[start:] + text * (size // len(text) + 1))[:size]


def _size(asked: str, values: Values, rng: random.Random) -> int:
    """Return a size in bytes; one of a range is drawn such that each order of magnitude is as frequent."""
    bounds = _RANGE.fullmatch(asked)
    if bounds is None:
        return _whole(asked, values, "body_bytes")
    low, high = sorted((int(bounds[1]), int(bounds[2])))
    return round(math.exp(rng.uniform(math.log(max(low, 1)), math.log(max(high, 1)))))


def _whole(asked: str, values: Values, key: str) -> int:
    text = filled(asked, values)
    try:
        number = int(float(text))
    except ValueError:
        number = -1
    if number < 0:
        raise WorkloadError(f"'{key}' of the requests is '{text}', but must be a whole number of at least 0", slug="requests-few")
    return number
