"""The load as a program: `python -m perfdiff.load MIX RESULTS URL`, with three more words for a second server that has every other turn."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from perfdiff.config import RequestMix
from perfdiff.errors import WorkloadError
from perfdiff.load import results
from perfdiff.load.client import Client, send_in_turns
from perfdiff.load.plan import Planned, plan
from perfdiff.records import codec


def main(words: Sequence[str]) -> None:
    """Send the requests of each mix to its server, and leave what they took."""
    clients, planned = [], []
    for mix_file, url in zip(words[::3], words[2::3], strict=True):
        client, requests = _planned(Path(mix_file), url)
        clients.append(client)
        planned.append(requests)
    gc.disable()  # a pause of ours is no latency of the server's
    answers = [clients[0].send(planned[0])] if len(clients) == 1 else send_in_turns(clients, planned)
    for client, requests, answered, left in zip(clients, planned, answers, words[1::3], strict=True):
        results.write(Path(left), results.results(client.mix, requests, answered, float(client.elapsed_ns), client.late_ns))


def _planned(mix_file: Path, url: str) -> tuple[Client, list[Planned]]:
    stored = json.loads(mix_file.read_text())
    mix = codec.decode(RequestMix, stored["mix"])
    try:
        return Client(url, mix, stored["servers"]), plan(mix, stored["values"], url.rstrip("/"))
    except WorkloadError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
