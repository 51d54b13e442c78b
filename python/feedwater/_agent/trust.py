"""How nodes and this side know each other: TLS, tokens, or a network that is one's own."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._common.filenames import to_json

__all__ = ["Trust"]

FILES = {"ca": "FEEDWATER_TLS_CA", "cert": "FEEDWATER_TLS_CERT", "key": "FEEDWATER_TLS_KEY"}
"""Members of tls= that are files, and the variables that stand in for them."""
SERVER_NAME = "FEEDWATER_TLS_SERVER_NAME"
TOKEN_FILE, FLAGS = "FEEDWATER_TOKEN_FILE", ("FEEDWATER_TLS", "FEEDWATER_INSECURE")
ANSWER_WITHIN = 10.0
"""Seconds that the storage of such a file has to answer."""
YES, NO = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


@dataclass(frozen=True)
class Trust:
    """A Loader's arguments. What they leave out comes from the environment, as it was when the Loader was made."""

    tls: Any = None
    token_file: Any = None
    insecure: bool | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    """Those of the environment that stand in for arguments; paths are absolute."""

    @classmethod
    def from_arguments(cls, tls: Any, token_file: Any, insecure: Any, nodes: tuple[str, ...]) -> Trust:
        """The arguments, checked; raises TypeError, ValueError, FileNotFoundError or TimeoutError."""
        if not nodes:
            given = {"tls": tls, "token_file": token_file, "insecure": insecure}
            name = next((name for name, value in given.items() if value), None)
            if name:
                raise ValueError(f"{name}= is about connections to nodes, and there are none: pass nodes= too")
            return cls()
        if insecure is not None and not isinstance(insecure, bool):
            raise TypeError(f"insecure={insecure!r}: needs True or False")
        if insecure and tls:
            raise ValueError("insecure=True and tls= contradict each other: leave one of them out")
        trust = cls(_from_here(tls), _from_here(token_file), insecure, _read_environment())
        trust.open_members()
        return trust

    def open_members(self) -> dict[str, Any]:
        """Members of the agent's open (docs/agent.md). Paths are absolute."""
        tls = None if self.insecure else _tls_of(self.tls, self.variables)
        insecure = self.insecure
        if insecure is None:
            insecure = tls is None and _read_flag("FEEDWATER_INSECURE", self.variables)
        token = self.token_file
        if token is None:
            token = self.variables.get(TOKEN_FILE)
        path = "" if token is None else _check_file("token_file", token)
        return {"tls": tls, "token_file": path, "insecure": insecure}


def _from_here(given: Any) -> Any:
    """The same with files that do not hang on where the program goes later: paths are absolute."""
    if isinstance(given, Mapping):
        return {name: value if name == "server_name" else _from_here(value) for name, value in given.items()}
    return os.path.abspath(os.path.expanduser(given)) if isinstance(given, (str, os.PathLike)) else given


def _read_environment() -> dict[str, str]:
    """What is set of the variables that stand in for arguments. Files do not hang on where the program goes later."""
    told = {name: value for name in (*FLAGS, SERVER_NAME) if (value := os.environ.get(name))}
    files = {name: _from_here(value) for name in (*FILES.values(), TOKEN_FILE) if (value := os.environ.get(name))}
    return told | files


def _tls_of(tls: Any, variables: Mapping[str, str]) -> dict[str, str] | None:
    """The files of tls=; None: not encrypted. True trusts the system's CAs, a path is a CA."""
    if tls is False:
        return None
    members = {**FILES, "server_name": SERVER_NAME}
    env = {name: variables[variable] for name, variable in members.items() if variable in variables}
    if tls is None:
        if not env and not _read_flag("FEEDWATER_TLS", variables):
            return None
        given: dict[str, Any] = {}
    elif tls is True:
        given = {}
    elif isinstance(tls, (str, os.PathLike)):
        given = {"ca": tls}
    elif isinstance(tls, Mapping):
        given = dict(tls)
    else:
        raise TypeError(f'tls={tls!r}: pass True, the file of a CA, or {{"ca": …, "cert": …, "key": …}}')
    strange = next((name for name in given if name not in (*FILES, "server_name")), None)
    if strange is not None:
        raise ValueError(f"tls has no member {strange!r}: there are ca, cert, key and server_name")
    merged = {**env, **{name: value for name, value in given.items() if value is not None}}
    if ("cert" in merged) != ("key" in merged):
        raise ValueError("tls: cert and key go together: the client certificate and its private key")
    return {name: str(v) if name == "server_name" else _check_file(f"tls: {name}", v) for name, v in merged.items()}


def _check_file(name: str, path: Any) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{name}={path!r}: needs the path of a file")
    full = os.path.abspath(os.path.expanduser(os.fspath(path)))
    if not _is_file(name, full):
        raise FileNotFoundError(f"{name}: there is no file {full}")
    return to_json(full)


def _is_file(name: str, path: str) -> bool:
    """os.path.isfile in a thread, which ends with it: on storage that hangs that may be never."""
    said: list[bool] = []
    asking = threading.Thread(target=lambda: said.append(os.path.isfile(path)), name="feedwater-file", daemon=True)
    asking.start()
    asking.join(ANSWER_WITHIN)
    if not said:
        raise TimeoutError(f"{name}: the storage of {path} does not answer for {ANSWER_WITHIN:g} s")
    return said[0]


def _read_flag(variable: str, variables: Mapping[str, str]) -> bool:
    value = variables.get(variable, "").lower()
    if value not in (*YES, *NO):
        raise ValueError(f"{variable}={value!r}: needs 1 or 0")
    return value in YES
