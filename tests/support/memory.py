"""How much memory a process has held at the most."""

from pathlib import Path


def high_mark(pid: int | str = "self") -> float:
    """Return it in mebibytes, 0 for a process that is gone: not `ru_maxrss`, which begins with what the parent held at the fork."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    held = status.partition("VmHWM:")[2].split()
    return int(held[0]) / 1024 if held else 0.0
