"""The code of the guide and of the README runs as it stands there."""

import re
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
