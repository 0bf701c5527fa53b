"""A large Inspect archive in seconds: the members, sizes and compression that the library writes, with random transcripts."""

import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import zstandard

ZSTANDARD = 93
TRANSCRIPT_BYTES = 12_900
"""What a sample of the recipe with 5,000 random bytes takes in an archive of inspect-ai 0.3.285."""

_POOL = 32


def write_log(path: Path, samples: int, *, transcript: int = TRANSCRIPT_BYTES) -> None:
    """Write a log of so many samples, of which every tenth is wrong."""
    compressor = zstandard.ZstdCompressor(level=1)
    pool = [_packed(_sample(number, transcript), compressor) for number in range(_POOL)]
    spec = {
        "run_id": "r",
        "task_id": "t",
        "created": "2026-11-01T00:00:00+00:00",
        "task": "big",
        "task_version": 0,
        "dataset": {"name": "big", "samples": samples, "sample_ids": list(range(samples)), "shuffled": False},
        "model": "mockllm/model",
        "model_generate_config": {},
        "config": {"epochs": 1},
        "packages": {"inspect_ai": "0.3.285"},
    }
    right = samples - -(-samples // 10)
    metrics = {"accuracy": {"name": "accuracy", "value": right / samples, "params": {}}}
    score = {
        "name": "match",
        "scorer": "match",
        "scored_samples": samples,
        "unscored_samples": 0,
        "params": {},
        "metrics": metrics,
    }
    results = {"total_samples": samples, "completed_samples": samples, "scores": [score]}
    stats = {"started_at": "2026-11-01T00:00:00+00:00", "completed_at": "2026-11-01T01:00:00+00:00"}
    plan: dict[str, Any] = {"name": "plan", "steps": [], "config": {}}
    header = {"version": 2, "status": "success", "eval": spec, "plan": plan, "results": results, "stats": stats}
    with zipfile.ZipFile(path, "w") as archive:
        _add(archive, "_journal/start.json", _packed({"version": 2, "eval": spec, "plan": plan}, compressor))
        for number in range(samples):
            _add(archive, f"samples/{number}_epoch_1.json", pool[number % _POOL])
            if number % 10 == 9:
                block = [_summary(each) for each in range(number - 9, number + 1)]
                _add(archive, f"_journal/summaries/{number // 10 + 1}.json", _packed(block, compressor))
        _add(archive, "summaries.json", _packed([_summary(number) for number in range(samples)], compressor))
        _add(archive, "header.json", _packed(header, compressor))


def _sample(number: int, transcript: int) -> dict[str, Any]:
    text = os.urandom(transcript).hex()
    message = {"role": "assistant", "content": text}
    return {"id": number, "epoch": 1, "messages": [message], "output": {"model": "mockllm/model", "choices": []}}


def _summary(number: int) -> dict[str, Any]:
    value = "C" if number % 10 else "I"
    return {
        "id": number,
        "epoch": 1,
        "input": f"task {number}",
        "target": "DONE",
        "metadata": {},
        "scores": {"match": {"value": value, "answer": f"{number:032x}", "explanation": f"{number:0128x}", "history": []}},
        "model_usage": {"mockllm/model": {"input_tokens": 10, "output_tokens": 2500, "total_tokens": 2510}},
        "role_usage": {},
        "started_at": "2026-11-01T00:00:00.568976+00:00",
        "completed_at": "2026-11-01T00:00:01.720527+00:00",
        "total_time": 1.152,
        "working_time": 1.151,
        "uuid": f"{number:022d}",
        "retries": 0,
        "completed": True,
        "message_count": 2,
    }


def _packed(value: object, compressor: zstandard.ZstdCompressor) -> tuple[bytes, int, int]:
    data = json.dumps(value, separators=(",", ":")).encode()
    return compressor.compress(data), zlib.crc32(data), len(data)


def _add(archive: zipfile.ZipFile, name: str, packed: tuple[bytes, int, int]) -> None:
    """Add a member compressed by Zstandard, which Python's zipfile writes from 3.14 on only."""
    data, total, size = packed
    info = zipfile.ZipInfo(name, (2026, 11, 1, 0, 0, 0))
    info.compress_type, info.CRC, info.file_size, info.compress_size = ZSTANDARD, total, size, len(data)
    assert archive.fp is not None
    info.header_offset = archive.fp.tell()
    archive.fp.write(info.FileHeader())
    archive.fp.write(data)
    archive.start_dir = archive.fp.tell()
    archive._didModify = True
    archive.filelist.append(info)
    archive.NameToInfo[name] = info
