import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.embedded.nodes.real import container_logs
from stromboli.embedded.nodes.real.container_logs import (
    LogFile,
    LogQuery,
    delete_log,
    find_log,
    log_file,
    pod_folder,
    read_log,
)


def read(path, over=lambda: True, **query):
    async def all():
        return b"".join([piece async for piece in read_log(path, LogQuery("main", **query), over)])

    return asyncio.run(all())


def written(folder, *pieces, run=0, clock=lambda: 1000.0):
    path = log_file(folder, "main", run)
    file = LogFile(path, clock)
    for piece in pieces:
        file.write(piece)
    file.close()
    return path


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({}, b"one\ntwo\nthree\n"),
        ({"tail": 1}, b"three\n"),
        ({"tail": 0}, b""),
        ({"timestamps": True, "tail": 1}, b"1970-01-01T00:16:40.000000Z three\n"),
        ({"since": 999.0}, b"one\ntwo\nthree\n"),
        ({"since": 1001.0}, b""),
        ({"follow": True}, b"one\ntwo\nthree\n"),
    ],
)
def test_a_log_is_read_as_asked(tmp_path, query, text):
    path = written(tmp_path, b"one\ntw", b"o\nthree")
    assert read(path, **query) == text


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_what_was_said_comes_back_however_it_was_cut(tmp_path_factory, pieces):
    path = written(tmp_path_factory.mktemp("log"), *pieces)
    output = b"".join(pieces)
    assert read(path) == (output if not output or output.endswith(b"\n") else output + b"\n")


def test_a_log_is_followed_to_its_end_even_over_a_new_file(tmp_path, monkeypatch):
    monkeypatch.setattr(container_logs, "LARGEST", 100)
    monkeypatch.setattr(container_logs, "POLL", 0.01)

    async def scenario():
        path, open = log_file(tmp_path, "main", 0), True
        file = LogFile(path)
        file.write(b"first\n")
        received = []

        async def follow():
            async for piece in read_log(path, LogQuery("main", follow=True), lambda: not open):
                received.append(piece)

        follower = asyncio.create_task(follow())
        for number in range(6):
            await asyncio.sleep(0.05)
            file.write(b"line %d\n" % number)
        await asyncio.sleep(0.05)
        file.write(b"last")
        file.close()
        open = False
        await asyncio.wait_for(follower, 5)
        return b"".join(received)

    assert asyncio.run(scenario()) == b"first\n" + b"".join(b"line %d\n" % n for n in range(6)) + b"last\n"


@pytest.mark.parametrize("tail", [0, 1, 2, 5, 6, 7, 9, 10, 11, 1000])
def test_the_last_lines_are_found_in_whichever_file_they_are(tmp_path, monkeypatch, tail):
    monkeypatch.setattr(container_logs, "LARGEST", 110)
    monkeypatch.setattr(container_logs, "READ", 50)
    path = written(tmp_path, *[b"line %d\n" % number for number in range(10)])
    assert len(list(path.parent.iterdir())) > 2
    expected = [b"line %d\n" % number for number in range(10)][10 - min(tail, 10) :]
    assert read(path, tail=tail) == b"".join(expected)


def test_a_reader_that_falls_behind_several_files_goes_on_with_the_oldest(tmp_path, monkeypatch):
    monkeypatch.setattr(container_logs, "LARGEST", 40)  # a line each

    async def scenario():
        path = log_file(tmp_path, "main", 0)
        file = LogFile(path, lambda: 1000.0)
        file.write(b"line 0\n")
        pieces = read_log(path, LogQuery("main", follow=True), lambda: done)
        done = False
        received = [await anext(pieces)]
        for number in range(1, 4):
            file.write(b"line %d\n" % number)
        received += [await anext(pieces) for _ in range(3)]
        for number in range(4, 12):
            file.write(b"line %d\n" % number)
        file.close()
        done = True
        return b"".join(received + [piece async for piece in pieces])

    lines = [int(line.split()[1]) for line in asyncio.run(scenario()).splitlines()]
    assert lines == [0, 1, 2, 3, 7, 8, 9, 10, 11]


def test_a_log_never_grows_beyond_its_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(container_logs, "LARGEST", 200)
    path = written(tmp_path, *[b"x" * 50 + b"\n"] * 100)
    (path.with_suffix(".old")).touch()  # of an earlier release
    assert len(list(path.parent.glob("0.log*"))) == 5
    assert sum(file.stat().st_size for file in path.parent.iterdir()) <= 1000
    assert read(path).endswith(b"x" * 50 + b"\n")
    delete_log(path)
    assert list(path.parent.iterdir()) == []


def test_a_pod_with_the_longest_name_has_a_folder(tmp_path):
    folder = pod_folder(tmp_path, "n" * 63, "p" * 253, "u" * 36)
    folder.mkdir()


def test_the_run_before_is_found(tmp_path):
    assert find_log(tmp_path, LogQuery("main")) is None
    written(tmp_path, b"a\n", run=0)
    assert find_log(tmp_path, LogQuery("main", previous=True)) is None
    written(tmp_path, b"b\n", run=1)
    assert read(find_log(tmp_path, LogQuery("main", previous=True))) == b"a\n"
    assert read(find_log(tmp_path, LogQuery("main"))) == b"b\n"


def test_a_log_goes_on_when_it_could_not_begin_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(container_logs, "LARGEST", 50)
    path = log_file(tmp_path, "main", 0)
    file = LogFile(path, lambda: 1000.0)
    file.write(b"one\n")
    path.parent.rename(tmp_path / "away")  # as where there is no room for another file
    file.write(b"lost\n")
    (tmp_path / "away").rename(path.parent)
    file.write(b"two\n")
    file.close()
    assert read(path) == b"one\ntwo\n"
