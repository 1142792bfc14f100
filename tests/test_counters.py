"""What this machine counts: its caches, its events by trying them, and what is said where one cannot be counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfdiff.collect import machine
from perfdiff.config import CacheSize, CountersConfig


def cache(place: Path, level: int, kind: str, size: str, ways: int) -> None:
    place.mkdir(parents=True)
    told = {"level": level, "type": kind, "size": size, "ways_of_associativity": ways, "coherency_line_size": 128}
    for name, value in told.items():
        (place / name).write_text(f"{value}\n")


def test_caches_are_those_that_the_kernel_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache(tmp_path / "cache" / "index0", 1, "Data", "48K", 12)
    cache(tmp_path / "cache" / "index1", 1, "Instruction", "32K", 8)
    cache(tmp_path / "cache" / "index2", 2, "Unified", "2048K", 16)
    cache(tmp_path / "cache" / "index3", 3, "Unified", "36864K", 18)
    (tmp_path / "online").write_text("0-1,4\n")
    monkeypatch.setattr(machine, "_CACHES", tmp_path / "cache")
    monkeypatch.setattr(machine, "_NODES", tmp_path / "online")
    found = machine.memory(CountersConfig())
    assert found.setting() == "l1d=49152/12,l2=2097152/16,llc=37748736/18,line=128,nodes=3"
    chosen = machine.memory(CountersConfig(l1d=CacheSize(1024, 1), line=64, nodes=1))
    assert chosen.setting() == "l1d=1024/1,l2=2097152/16,llc=37748736/18,line=64,nodes=1"


def test_caches_that_the_kernel_does_not_tell_are_usual_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_CACHES", tmp_path / "nowhere")
    monkeypatch.setattr(machine, "_NODES", tmp_path / "nowhere")
    assert machine.memory(CountersConfig()).setting() == "l1d=32768/8,l2=1048576/16,llc=33554432/16,line=64,nodes=1"
