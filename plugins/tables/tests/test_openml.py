"""OpenML through scikit-learn's cache, prepared here: nothing is fetched from the network."""

from __future__ import annotations

import gzip
import hashlib
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from kernelweave.tables import TableError, read_table

ARFF = """@RELATION plants
@ATTRIBUTE height REAL
@ATTRIBUTE soil {sand,clay}
@ATTRIBUTE kind {fern,moss}
@DATA
1.5,sand,fern
0.25,clay,moss
2.0,?,fern
0.5,clay,moss
"""


def put(folder: Path, name: str, content: str) -> None:
    path = folder / f"{name}.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content.encode()))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Prepare scikit-learn's cache of one data set, and close the network."""

    def closed(*_: Any, **__: Any) -> None:
        raise OSError("the network is closed")

    monkeypatch.setattr(socket, "getaddrinfo", closed)
    monkeypatch.setattr(socket.socket, "connect", closed)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "data"))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    fill(tmp_path / "data" / "openml" / "openml.org", ARFF)
    return tmp_path / "data"


def fill(folder: Path, arff: str) -> None:
    about = {
        "id": "7",
        "name": "plants",
        "version": "1",
        "description": "",
        "format": "ARFF",
        "status": "active",
        "file_id": "9",
        "url": "https://api.openml.org/data/v1/download/9/plants.arff",
        "md5_checksum": hashlib.md5(arff.encode()).hexdigest(),
    }
    kinds = (("height", "numeric"), ("soil", "nominal"), ("kind", "nominal"))
    features = [
        {
            "index": str(i),
            "name": name,
            "data_type": kind,
            "is_target": str(name == "kind").lower(),
            "is_ignore": "false",
            "is_row_identifier": "false",
            "number_of_missing_values": "0",
        }
        for i, (name, kind) in enumerate(kinds)
    ]
    listed = {"data": {"dataset": [{"did": 7, "name": "plants", "version": 1, "status": "active"}]}}
    search = "api/v1/json/data/list/data_name/plants/limit/2/data_version/1"
    put(folder, search, json.dumps(listed))
    put(folder, "api/v1/json/data/7", json.dumps({"data_set_description": about}))
    described = {"data_features": {"feature": features}}
    put(folder, "api/v1/json/data/features/7", json.dumps(described))
    qualities = {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "4.0"}]}}
    put(folder, "api/v1/json/data/qualities/7", json.dumps(qualities))
    put(folder, "data/v1/download/9/plants.arff", arff)


@pytest.mark.parametrize("source", ["openml:plants@1", "openml:7"])
def test_a_data_set_by_name_and_by_number(home: Path, source: str) -> None:
    table = read_table(source)
    assert table.columns == ["height", "soil", "kind"]
    assert (table.target, table.task) == ("kind", "classification")
    assert table.numbers("height").tolist() == [1.5, 0.25, 2.0, 0.5]
    assert table.source == source


def test_what_the_publisher_did_not_check_in_is_refused(home: Path) -> None:
    """scikit-learn compares the MD5 sum that OpenML states, or cannot fetch it again."""
    put(home / "openml" / "openml.org", "data/v1/download/9/plants.arff", ARFF.replace("1.5", "9"))
    with pytest.raises(TableError, match="openml:7"):
        read_table("openml:7")


def test_no_version_no_network_no_such_set(home: Path) -> None:
    with pytest.raises(TableError, match="names no version: say openml:NAME@VERSION"):
        read_table("openml:plants")
    with pytest.raises(TableError, match=r"is not in scikit-learn's cache .* cannot be reached"):
        read_table("openml:8")


def test_it_can_be_fitted(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = pytest.importorskip("kernelweave.workbench.app")
    options = ("--tol", "0.1", "--max-iter", "5", "--json")
    assert app.run(["fit", "openml:plants@1", *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["target"] == "kind"
    assert any("missing" in row["sentence"] for row in found["columns"])
