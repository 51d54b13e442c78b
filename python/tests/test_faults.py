"""The agent dies, hangs, lies or answers out of order, at every point of the protocol: the batches stay the same."""

from __future__ import annotations

import gc
import logging
import os
import signal
from typing import Any

import pytest
from expect import check, order, whole_epoch

import feedwater
from feedwater._agent import feed, session
from feedwater._agent.process import agent


def die(at: str, nth: int, do: str = "kill") -> dict[str, Any]:
    return {"at": at, "nth": nth, "do": do}


POINTS = [
    *[die("start", 1, how) for how in ("kill", "exit")],
    *[die(method, 1, how) for method in ("open", "slots") for how in ("kill", "exit")],
    *[die(f"after {method}", 1) for method in ("open", "slots")],
    *[die("want", nth) for nth in (1, 2, 4, 5, 9)],
    *[die("make", nth) for nth in (1, 3, 7)],
    *[die("half", nth) for nth in (1, 3, 7)],
    *[die("done", nth) for nth in (1, 3, 7, 10)],
]


@pytest.mark.parametrize("fault", POINTS, ids=lambda f: f"{f['at']} {f['nth']} {f['do']}")
def test_the_agents_death_changes_nothing(fake: Any, fault: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    fake.set(faults=[fault])
    loader = fake.loader(shuffle=True)
    with caplog.at_level(logging.WARNING, "feedwater"):
        for epoch in range(2):
            whole_epoch(loader, epoch)
    assert len(fake.log("start")) == 2
    assert sum("starting another; no batch is lost" in r.message for r in caplog.records) == 1
    loader.close()
    assert fake.unreaped() == []


@pytest.mark.parametrize("do", ["close"])
@pytest.mark.parametrize(("at", "nth"), [("open", 1), ("slots", 1), ("make", 1), ("make", 6)])
def test_an_agent_that_gives_up_one_loader_is_replaced(fake: Any, at: str, nth: int, do: str) -> None:
    fake.set(faults=[die(at, nth, do)])
    loader = fake.loader(shuffle=True)
    whole_epoch(loader, 0)
    assert len(fake.log("start")) == 2


def test_finished_batches_and_live_tensors_survive(fake: Any) -> None:
    fake.set(faults=[die("done", 4)])
    loader = fake.loader(shuffle=True)
    it = iter(loader)
    image, _ = next(it)
    first = loader.last.indices
    fake.until(lambda: agent._process is not None and agent._process.child.wait(0) is not None)
    for _ in range(3):
        next(it)
    check(image, first)
    wanted = [tuple(line["want"][1:3]) for line in fake.log("want")]
    assert wanted.count((0, 0)) == wanted.count((10, 0)) == 1, "what was finished is not made again"


def test_every_loader_of_the_process_recovers_from_one_death(fake: Any) -> None:
    loaders = [fake.loader(shuffle=True, batch_size=size) for size in (10, 7)]
    passes = [iter(loader) for loader in loaders]
    for it in passes:
        next(it)
    assert agent.pid is not None
    os.kill(agent.pid, signal.SIGKILL)
    for loader, it in zip(loaders, passes):
        seen = loader.last.indices.tolist()
        for image, _ in it:
            check(image, loader.last.indices)
            seen += loader.last.indices.tolist()
        assert seen == order(0)
    assert len(fake.log("start")) == 2, "one death, one new agent"


def test_ids_are_new_after_a_death_and_wants_name_the_same_batches(fake: Any) -> None:
    fake.set(faults=[die("want", 4)])
    loader = fake.loader()
    assert len(list(loader)) == 10
    wants = [(line["pid"], *line["want"]) for line in fake.log("want")]
    assert len({ident for _, ident, *_ in wants}) == len(wants)
    names = [name for _, _, *name, _, _ in wants]
    assert len({pid for pid, *_ in wants}) == 2
    assert all(name[0] % 10 == 0 and name[1] < 2 and name[2] == 10 for name in names)


def test_an_agent_that_refuses_its_environment_is_started_once(fake: Any, caplog: pytest.LogCaptureFixture) -> None:
    fake.set(faults=[{"at": "open", "do": "exit", "code": 2, "words": "feedwater: FEEDWATER_KEEP: lots"}])
    with pytest.raises(feedwater.AgentError, match="cannot start: FEEDWATER_KEEP: lots"):
        next(iter(fake.loader()))
    assert len(fake.log("start")) == 1 and "starting another" not in caplog.text


def test_the_third_death_within_a_minute_is_an_error_with_its_last_words(fake: Any) -> None:
    fake.set(faults=[{"at": "open", "do": "exit", "code": 7, "words": "panic: no such thing"}])
    loader = fake.loader()
    with pytest.raises(feedwater.AgentError) as caught:
        next(iter(loader))
    assert "(exit code 7) for the 3rd time within a minute" in str(caught.value)
    assert str(caught.value).endswith("panic: no such thing")
    assert len(fake.log("start")) == 3
    assert fake.unreaped() == []
    fake.set()
    whole_epoch(fake.loader(shuffle=True), 0)


def test_deaths_long_ago_do_not_count(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import feedwater._agent.process

    clock = [0.0]
    monkeypatch.setattr(feedwater._agent.process.time, "monotonic", lambda: clock[0])
    loader = fake.loader(shuffle=True)
    it = iter(loader)
    for _ in range(5):
        next(it)
        assert agent.pid is not None
        os.kill(agent.pid, signal.SIGKILL)
        clock[0] += 31
    monkeypatch.undo()


def test_an_agent_that_hangs_is_ended_and_said(
    fake: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(feed, "SLACK_S", 0)
    fake.set(faults=[{"at": "make", "nth": 3, "do": "freeze"}])
    loader = fake.loader(shuffle=True, timeout=1)
    it = iter(loader)
    next(it)
    next(it)
    with pytest.raises(feedwater.StallError, match="said nothing for 1 s") as caught:
        next(it)
    assert isinstance(caught.value, TimeoutError)
    seen = order(0)[:20] + [i for _ in iter(loader) for i in loader.last.indices.tolist()]
    assert seen == order(0), "and goes on at the cursor with another"
    assert "killed by the Loader" in caplog.text and "SIGKILL" not in caplog.text, "nobody else killed it"


def test_an_agent_that_hangs_at_the_start_is_ended(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "SLACK_S", 0)
    fake.set(faults=[{"at": "open", "nth": 1, "do": "freeze"}])
    loader = fake.loader(start_timeout=1)
    with pytest.raises(feedwater.StallError, match="did not answer 'open'"):
        next(iter(loader))


def test_answers_in_any_order(fake: Any) -> None:
    fake.set(reverse=True, window=8)
    loader = fake.loader(shuffle=True)
    for epoch in range(3):
        whole_epoch(loader, epoch)


def test_wants_that_fail_for_want_of_nodes_are_a_stall_with_their_last_errors(fake: Any) -> None:
    error = {
        "kind": "stall",
        "message": "no node answered in 2 s",
        "nodes": [{"addr": "a:1", "error": "connection refused"}],
    }
    fake.set(faults=[{"at": "make", "nth": 1, "do": "fail", "error": error}])
    loader = fake.loader(shuffle=True)
    with pytest.raises(feedwater.StallError) as caught:
        next(iter(loader))
    assert str(caught.value) == "no node answered in 2 s\n  a:1: connection refused"
    whole_epoch(loader, 0)


def test_a_stall_that_was_over_before_the_batch_was_needed_is_none(fake: Any) -> None:
    error = {"kind": "stall", "message": "no node answered"}
    fake.set(faults=[{"at": "make", "all": [2, 3], "do": "fail", "error": error}])
    loader = fake.loader(shuffle=True)
    it = iter(loader)
    next(it)
    feed = loader._engine.feed
    while any(want.answer is None for want in feed._wants.values()):
        feed.session.link.receive()
        feed._handle_packets(feed.session.link)
    seen = order(0)[:10] + [i for _ in it for i in loader.last.indices.tolist()]
    assert seen == order(0)


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (
            {"kind": "plan", "message": "no such op", "field": "transforms[0]", "nearest": "Resize"},
            feedwater.PlanError,
            "transforms[0]: no such op (nearest: Resize)",
        ),
        (
            {"kind": "data", "message": "changed since it was opened", "path": "/x"},
            feedwater.DataError,
            "/x: changed since it was opened",
        ),
        (
            {"kind": "numerics", "message": "none has 17", "nodes": [{"addr": "a:1", "error": "has 18"}]},
            feedwater.NumericsError,
            "none has 17\n  a:1: has 18",
        ),
        (
            {"kind": "version", "message": "too old", "nodes": [{"addr": "a:1", "error": "speaks 1"}]},
            feedwater.VersionError,
            "too old\n  a:1: speaks 1",
        ),
        ({"kind": "bug", "message": "oops"}, feedwater.AgentError, "the agent failed: oops"),
    ],
)
@pytest.mark.parametrize("at", ["open", "make"])
def test_error_objects_become_exceptions(
    fake: Any, error: dict[str, Any], kind: type[Exception], text: str, at: str
) -> None:
    do = {"do": "error", "error": error} if at == "open" else {"do": "fail", "error": error}
    fake.set(faults=[{"at": at, "nth": 1, **do}])
    loader = fake.loader(shuffle=True)
    with pytest.raises(kind) as caught:
        next(iter(loader))
    assert str(caught.value) == text
    assert isinstance(caught.value, feedwater.Error)
    whole_epoch(loader, 0)


def test_a_want_that_was_cancelled_by_mistake_is_asked_again(fake: Any) -> None:
    fake.set(faults=[{"at": "make", "all": [1, 3], "do": "cancel"}])
    whole_epoch(fake.loader(shuffle=True), 0)


def test_data_that_changed_under_a_running_job_are_an_error(fake: Any) -> None:
    loader = fake.loader(shuffle=True)
    it = iter(loader)
    next(it)
    fake.set(salt=1)
    assert agent.pid is not None
    os.kill(agent.pid, signal.SIGKILL)
    with pytest.raises(feedwater.DataError, match="changed while it was in use"):
        list(it)


def test_an_empty_data_set(fake: Any) -> None:
    fake.set(samples=0)
    with pytest.raises(feedwater.DataError, match="no pictures in it"):
        next(iter(fake.loader()))


def test_death_for_want_of_memory_halves_the_slots(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kills = iter([0, 1, 1, 1])
    monkeypatch.setattr("feedwater._agent.memory.oom_kills", lambda: next(kills))
    loader = fake.loader(shuffle=True, memory=40 * 4096)
    it = iter(loader)
    image, _ = next(it)
    first = loader.last.indices
    assert agent.pid is not None
    os.kill(agent.pid, signal.SIGKILL)
    seen = first.tolist() + [i for _ in it for i in loader.last.indices.tolist()]
    assert seen == order(0)
    check(image, first)
    assert [line["params"]["count"] for line in fake.log("call") if line["call"] == "slots"] == [40, 20]


def test_a_window_that_changes(fake: Any) -> None:
    for window in (1, 2, 30, 500):
        before = len(fake.log("want"))
        fake.set(window=window)
        loader = fake.loader(shuffle=True)
        whole_epoch(loader, 0)
        loader.close()
        assert len(fake.log("want")) - before <= 10 + min(window, 61)


def test_cancelled_wants_are_answered_before_their_slots_are_lent_again(fake: Any) -> None:
    loader = fake.loader(shuffle=True, memory=4 * 4096)
    for epoch in (5, 2, 9, 2, 0):
        loader.set_epoch(epoch)
        it = iter(loader)
        for place in range(3):
            image, _ = next(it)
            check(image, order(epoch)[place * 10 : place * 10 + 10], epoch)
    loader.set_epoch(3)
    whole_epoch(loader, 3)


def test_a_binary_that_is_not_there(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDWATER_BINARY", "/nonexistent/feedwater")
    with pytest.raises(feedwater.AgentError, match="FEEDWATER_BINARY names '/nonexistent/feedwater'"):
        next(iter(fake.loader()))


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        ("#!/bin/sh\nexit 0\n", 0o644, "Permission denied .is it executable"),
        ("not a program", 0o755, "Exec format error .built for another platform"),
        ("#!/nonexistent/sh\n", 0o755, "No such file"),
    ],
)
def test_a_binary_that_cannot_start(
    fake: Any, monkeypatch: pytest.MonkeyPatch, content: str, mode: int, why: str
) -> None:
    bad = fake.directory / "bad"
    bad.write_text(content)
    bad.chmod(mode)
    monkeypatch.setenv("FEEDWATER_BINARY", str(bad))
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(feedwater.AgentError, match=why):
        next(iter(fake.loader()))
    assert len(os.listdir("/proc/self/fd")) == before, "no handle is left open"


def test_handles_of_other_libraries_do_not_reach_the_agent(fake: Any) -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        loader = fake.loader()
        next(iter(loader))
        handles = os.listdir(f"/proc/{agent.pid}/fd")
        links = {os.readlink(f"/proc/{agent.pid}/fd/{handle}") for handle in handles}
        assert os.readlink(f"/proc/self/fd/{write}") not in links
    finally:
        os.close(read)
        os.close(write)


def test_the_agent_is_started_as_described(fake: Any) -> None:
    loader = fake.loader()
    next(iter(loader))
    start = fake.log("start")[0]
    assert start["start"] == ["agent"]
    assert start["sid"] == start["pid"] == agent.pid
    assert start["env"] == "4"


def test_no_handle_and_no_memory_is_left_behind(fake: Any) -> None:
    def mapped() -> int:
        with open("/proc/self/maps") as maps:
            return sum("feedwater" in line for line in maps)

    before = len(os.listdir("/proc/self/fd")), mapped()
    gc.disable()  # so that a reference cycle cannot hide
    try:
        for _ in range(3):
            loader = fake.loader(shuffle=True)
            it = iter(loader)
            next(it)
            assert agent.pid is not None
            os.kill(agent.pid, signal.SIGKILL)
            agent._deaths.clear()
            next(it)
            loader.replay(3)
            loader.close()
            del loader, it
        assert (len(os.listdir("/proc/self/fd")), mapped()) == before
    finally:
        gc.enable()
