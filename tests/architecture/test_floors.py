"""The floor plan holds, and each of its contracts bites."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("compliance", "policies", "evaluations")

PLANTED = {
    "an app imports the app above it": (
        "evaluations/services/planted.py",
        "import policies.models\n",
        "No arrow points left",
    ),
    "a service imports tasks": ("policies/services/planted.py", "import policies.tasks\n", "Floors of policies"),
    "a model imports a service": ("compliance/models/planted.py", "import compliance.services.people\n", "Floors of compliance"),
    "the language imports Django": ("policies/language/planted.py", "import django.conf\n", "The heart is pure"),
    "an importer imports Django by way of the kernel": (
        "evaluations/importers/planted.py",
        "import evaluations.kernel.models\n",
        "The heart is pure",
    ),
    "a service speaks HTTP": ("policies/services/planted.py", "import rest_framework.views\n", "HTTP lives in compliance.api"),
    "a service writes to the ledger past the port": (
        "compliance/services/planted.py",
        "import compliance.ledger.writer\n",
        "Nobody imports the ledger's writer",
    ),
    "a folder that nobody placed": ("policies/shed/__init__.py", "", "Floors of policies"),
    "a file that nobody placed": ("evaluations/helpers.py", "", "Floors of evaluations"),
}


def lint(directory: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "pyproject.toml"]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source tree, to plant faults in."""
    directory = tmp_path_factory.mktemp("house")
    shutil.copy(ROOT / "pyproject.toml", directory)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, directory / package, ignore=shutil.ignore_patterns("__pycache__"))
    return directory


@pytest.fixture
def plant(house: Path) -> Callable[[str, str], None]:
    planted: list[Path] = []

    def put(place: str, text: str) -> None:
        path = house / place
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        planted.append(path)

    yield put
    for path in planted:
        path.unlink()
        if path.name == "__init__.py":
            shutil.rmtree(path.parent)


def test_every_contract_is_kept(house: Path) -> None:
    done = lint(house)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_refused(house: Path, plant: Callable[[str, str], None], fault: str) -> None:
    place, text, contract = PLANTED[fault]
    plant(place, text)
    done = lint(house)
    assert done.returncode != 0
    broken = done.stdout.split("Broken contracts")[-1] if "Broken contracts" in done.stdout else done.stdout
    assert contract in broken


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_is_longer_than_400_lines(package: str) -> None:
    longer = {
        str(path.relative_to(ROOT)): lines
        for path in (ROOT / package).rglob("*.py")
        if "migrations" not in path.parts and (lines := len(path.read_text(encoding="utf-8").splitlines())) > 400
    }
    assert not longer


def test_packages_that_stand_alone_load_nothing() -> None:
    for place in (
        "compliance/__init__.py",
        "compliance/ledger/__init__.py",
        "evaluations/__init__.py",
        "evaluations/kernel/__init__.py",
    ):
        assert not (ROOT / place).read_text(encoding="utf-8").strip(), place


def test_the_entry_format_loads_without_django_and_celery() -> None:
    blocked = "import sys; sys.modules['django'] = None; sys.modules['celery'] = None; import compliance.ledger.encoding"
    done = subprocess.run([sys.executable, "-c", blocked], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("pure", ["policies.language.evaluator", "policies.language.compiler", "evaluations.importers.registry"])
def test_the_pure_parts_load_without_django(pure: str) -> None:
    blocked = f"import sys; sys.modules['django'] = None; sys.modules['celery'] = None; import {pure}"
    done = subprocess.run([sys.executable, "-c", blocked], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
