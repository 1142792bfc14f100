"""The load as a program: `python -m perfdiff.load MIX RESULTS URL`; prints a digest of all answers."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path

from perfdiff.config import RequestMix
from perfdiff.errors import WorkloadError
from perfdiff.load import results
from perfdiff.load.client import Client
from perfdiff.load.plan import plan
from perfdiff.records import codec


def main(mix_file: str, results_file: str, url: str) -> None:
    """Send the requests of a mix to a server, and leave what they took."""
    stored = json.loads(Path(mix_file).read_text())
    mix = codec.decode(RequestMix, stored["mix"])
    try:
        requests = plan(mix, stored["values"], url.rstrip("/"))
    except WorkloadError as error:
        sys.exit(str(error))
    client = Client(url, mix)
    gc.disable()  # a pause of ours is no latency of the server's
    answers = client.send(requests)
    results.write(Path(results_file), results.results(mix, requests, answers, float(client.elapsed_ns)))
    sys.stdout.write(f"{results.digest(answers)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
