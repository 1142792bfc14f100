"""The requests of a workload: a file beside the configuration, read into the values that the load follows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from perfdiff.config import PLACE, SERVICE_PLACE, RequestConfig, RequestMix
from perfdiff.configuration.tomlfile import TomlFile
from perfdiff.errors import ConfigError

_OWN = ("i", "url")
_MOST_BYTES = 10 << 20  # of a body from a file


def texts(mix: RequestMix) -> tuple[str, ...]:
    """Return the texts of requests in which parameters of the workload may have places."""
    return (*(text for request in mix.requests for text in _texts(request)), mix.count)


def _texts(request: RequestConfig) -> Iterable[str]:
    drawn = [str(option) for options in request.draw.values() for option in options]
    return [request.path, *request.headers.values(), *drawn, *(text for text in (request.body, request.body_bytes) if text)]


def mix_of(source: TomlFile, values: Mapping[str, Any], requests: Sequence[Mapping[str, Any]], name: str) -> RequestMix:
    """Return a mix by the checked keys of its file and of its requests; raise ConfigError where they contradict each other."""
    if "url" not in values or SERVICE_PLACE.search(values["url"]) is None:
        raise ConfigError(
            f"{source.place(('url',))}: 'url' must name the server by its service's port: url = \"http://127.0.0.1:{{app.port}}\"",
            slug="config-requests",
        )
    if not requests:
        raise ConfigError(f"{source.path}: there is no [[request]]; write one for each kind", slug="config-requests")
    configs: list[RequestConfig] = []
    for number, keys in enumerate(requests):
        place = source.place(("request", number))
        for key in ("name", "path"):
            if key not in keys:
                raise ConfigError(f"{place}: this [[request]] has no '{key}'", slug="config-requests")
        if sum(key in keys for key in ("body", "body_bytes", "body_file")) > 1:
            raise ConfigError(f"{place}: 'body', 'body_bytes' and 'body_file' exclude each other; give one", slug="config-requests")
        if keys["name"] in [other.name for other in configs]:
            raise ConfigError(f"{place}: '{keys['name']}' is the name of a request above", slug="config-requests")
        own = {key: value for key, value in keys.items() if key in {field.name for field in fields(RequestConfig)}}
        content = _content(source.path.parent / keys["body_file"], place) if "body_file" in keys else None
        configs.append(RequestConfig(**own, content=content))
    names = [request.name for request in configs]
    for number, request in enumerate(configs):
        if request.after is not None and (request.after not in names or request.after == request.name):
            raise ConfigError(
                f"{source.place(('request', number, 'after'))}: '{request.after}' is no other request; there are {', '.join(names)}",
                slug="config-requests",
            )
    return RequestMix(file=name, requests=tuple(configs), **values)


def require_places(mix: RequestMix, parameters: Iterable[str], source: TomlFile, workload: str) -> None:
    """Raise ConfigError where a request has a place for what is neither drawn nor a parameter of its workload."""
    for number, request in enumerate(mix.requests):
        there = {*parameters, *_OWN, *request.draw}
        for text in _texts(request):
            for name in PLACE.findall(text):
                if name not in there:
                    raise ConfigError(
                        f"{source.place(('request', number))}: '{{{name}}}' in '{text}' is neither drawn nor a parameter of workload "
                        f"'{workload}'; there are {', '.join(sorted(there))}",
                        slug="config-requests",
                    )


def _content(path: Path, place: str) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{place}: the body {path} cannot be read: {error.strerror}", slug="config-requests") from error
    if len(content) > _MOST_BYTES:
        raise ConfigError(f"{place}: the body {path} has {len(content):,} bytes; at most {_MOST_BYTES:,} are sent", slug="config-requests")
    return content.decode("latin-1")
