"""Every publication has a notebook, which is stored without results."""

import json

from conftest import ROOT


def test_every_publication_has_a_notebook() -> None:
    papers = {paper.parent.name for paper in (ROOT / "papers").glob("*/paper.toml")}
    notebooks = {notebook.stem: notebook for notebook in (ROOT / "py/notebooks").glob("*.ipynb")}
    assert papers == set(notebooks)
    for notebook in notebooks.values():
        cells = json.loads(notebook.read_text())["cells"]
        assert not any(cell.get("outputs") for cell in cells), notebook.name
