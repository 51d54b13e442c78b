"""TLS, tokens and plaintext: what is asked for, and what real nodes make of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import make_photos
from digest import digest
from test_real import make

import feedwater
from feedwater._agent import trust
from feedwater._agent.trust import Trust

NODES = ("cpu-1:7070",)
VARIABLES = ("TLS", "TLS_CA", "TLS_CERT", "TLS_KEY", "TLS_SERVER_NAME", "TOKEN_FILE", "INSECURE")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of ours is set."""
    for name in VARIABLES:
        monkeypatch.delenv("FEEDWATER_" + name, raising=False)


def plan(tls: Any = None, token_file: Any = None, insecure: Any = None) -> dict[str, Any]:
    return Trust.from_arguments(tls, token_file, insecure, NODES).open_members()


def test_arguments_win_over_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c, d = (str(tmp_path / name) for name in "abcd")
    for path in (a, b, c, d):
        Path(path).write_text("x")
    assert plan() == {"tls": None, "token_file": "", "insecure": False}
    assert plan(tls=True)["tls"] == {}
    assert plan(tls=Path(a))["tls"] == {"ca": a}
    assert plan(insecure=True)["insecure"]
    monkeypatch.setenv("FEEDWATER_TLS_CA", b)
    monkeypatch.setenv("FEEDWATER_TLS_SERVER_NAME", "node")
    monkeypatch.setenv("FEEDWATER_TOKEN_FILE", c)
    assert plan() == {"tls": {"ca": b, "server_name": "node"}, "token_file": c, "insecure": False}
    assert plan(tls={"ca": a, "cert": b, "key": c}, token_file=d) == {
        "tls": {"ca": a, "cert": b, "key": c, "server_name": "node"},
        "token_file": d,
        "insecure": False,
    }
    assert plan(tls=False)["tls"] is None
    assert plan(insecure=True) == {"tls": None, "token_file": c, "insecure": True}
    monkeypatch.setenv("FEEDWATER_INSECURE", "1")
    assert not plan()["insecure"], "TLS is better"
    monkeypatch.delenv("FEEDWATER_TLS_CA")
    monkeypatch.delenv("FEEDWATER_TLS_SERVER_NAME")
    assert plan()["insecure"]
    assert not plan(insecure=False)["insecure"]
    monkeypatch.setenv("FEEDWATER_TLS", "1")
    assert plan()["tls"] == {}
    monkeypatch.chdir(tmp_path)
    assert plan(tls="a")["tls"] == {"ca": a}, "the agent may stand elsewhere"


@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        ({"tls": 3}, TypeError, "pass True, the file of a CA"),
        ({"tls": "none.pem"}, FileNotFoundError, "tls: ca: there is no file"),
        ({"tls": {"certificate": "x"}}, ValueError, "no member 'certificate'"),
        ({"tls": {"cert": __file__}}, ValueError, "cert and key go together"),
        ({"tls": True, "insecure": True}, ValueError, "contradict each other"),
        ({"insecure": "yes"}, TypeError, "needs True or False"),
        ({"token_file": "none"}, FileNotFoundError, "token_file: there is no file"),
        ({"token_file": 3}, TypeError, "needs the path of a file"),
    ],
)
def test_what_is_refused(given: dict[str, Any], kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        feedwater.Loader("photos", batch_size=1, nodes=NODES, **given)


def test_without_nodes_there_is_nothing_to_trust(tmp_path: Path) -> None:
    for given in ({"tls": True}, {"token_file": "x"}, {"insecure": True}):
        with pytest.raises(ValueError, match="pass nodes= too"):
            feedwater.Loader(tmp_path, batch_size=1, **given)  # type: ignore[call-overload]


def test_a_variable_that_is_no_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDWATER_INSECURE", "perhaps")
    with pytest.raises(ValueError, match="FEEDWATER_INSECURE='perhaps': needs 1 or 0"):
        plan()


class Authority:
    """A CA made by openssl."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.ca = str(folder / "ca.pem")
        subject = ["-subj", "/CN=ca", "-days", "1", "-keyout", str(folder / "ca.key"), "-out", self.ca]
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", *subject)

    def issue(self, name: str) -> tuple[str, str]:
        """Files of a certificate and its key."""
        cert, key, request = (str(self.folder / f"{name}.{kind}") for kind in ("pem", "key", "csr"))
        kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        _openssl("req", *kind, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        extra = self.folder / "extra"
        extra.write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
        signer = ["-CA", self.ca, "-CAkey", str(self.folder / "ca.key"), "-CAcreateserial", "-days", "1"]
        _openssl("x509", "-req", "-in", request, *signer, "-extfile", str(extra), "-out", cert)
        return cert, key


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


@pytest.mark.usefixtures("real")
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make certificates")
def test_real_nodes(nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    data = tmp_path / "data"
    data.mkdir()
    make_photos(data, 24)
    ours, theirs = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs")
    cert, key = ours.issue("node")
    mine, my_key = ours.issue("trainer")
    tokens = tmp_path / "tokens"
    tokens.write_text("team-a 0123456789abcdef0123\n")
    wrong = tmp_path / "wrong"
    wrong.write_text("0123456789abcdef0124\n")
    flags = ["--tls-cert", cert, "--tls-key", key, "--client-ca", ours.ca, "--token-file", str(tokens)]
    address = nodes.start(data, *flags, listen="127.0.0.1:0")
    expected = digest(make(data))
    assert digest(make("photos", nodes=address, tls=ours.ca, token_file=tokens)) == expected
    assert digest(make("photos", nodes=address, tls={"ca": ours.ca, "cert": mine, "key": my_key})) == expected
    for given, says in (
        ({"tls": ours.ca}, "a client certificate or a token, and there is neither"),
        ({"tls": ours.ca, "token_file": wrong}, "does not know that token"),
        ({"tls": theirs.ca, "token_file": tokens}, "a CA that is not trusted here"),
        ({"tls": True, "token_file": tokens}, "a CA that is not trusted here"),
    ):
        with pytest.raises(feedwater.AccessError, match=says):
            next(iter(make("photos", nodes=address, **given)))
    with pytest.raises(feedwater.StallError, match="if it serves TLS, pass tls="):
        next(iter(make("photos", nodes=address, start_timeout=1)))
    monkeypatch.setenv("FEEDWATER_TLS_CA", ours.ca)
    monkeypatch.setenv("FEEDWATER_TOKEN_FILE", str(tokens))
    assert digest(make("photos", nodes=address)) == expected


def test_a_file_on_storage_that_hangs_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Loader waits no longer than it says for the storage of a token."""
    answer, real = threading.Event(), os.path.isfile
    monkeypatch.setattr(trust, "ANSWER_WITHIN", 0.2)
    monkeypatch.setattr(os.path, "isfile", lambda p: answer.wait() if str(p).endswith("/token") else real(p))
    with pytest.raises(TimeoutError, match=r"token_file: the storage of .*/token does not answer for 0\.2 s"):
        plan(token_file=tmp_path / "token", insecure=True)
    answer.set()
    for thread in threading.enumerate():
        if thread.name == "feedwater-file":
            thread.join()
