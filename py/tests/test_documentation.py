"""The code of the guide and of the README runs as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT


@pytest.mark.parametrize("document", ["docs/python.md", "py/README.md"])
def test_code_of_documents_runs(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("scenarios", "papers"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)


def test_the_classes_of_the_guide_are_policies_for_mypy(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.DOTALL)
    classes = next(block for block in blocks if "class Shortest" in block)
    uses = """
route: type[anabranch.RoutePolicy] = Shortest
window: type[anabranch.WindowPolicy] = Cautious
anabranch.sweep("x.toml", vary={"era": ("rfc4960", "rfc9260")}, measure={"time": "flows.upload.completion"})
"""
    (tmp_path / "mine.py").write_text(f"import anabranch\n{classes}{uses}")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "mine.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout
