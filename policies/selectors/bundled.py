"""The policies that come with the product."""

from pathlib import Path

LIBRARY = Path(__file__).resolve().parent.parent / "library"


def bundled_path(policy: str) -> Path:
    """Return where a bundled policy's text lies."""
    return LIBRARY / f"{policy}.yaml"
