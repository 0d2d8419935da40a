"""One HTTP call: the answer, or a sentence why not, within the time, whatever the server does."""

import socket
import threading
import time
from collections.abc import Callable

import pytest

from stromboli.transport import LARGEST, Call, CallFailed, Trust, basic, post, send, shown_url
from tests.serving import BAD, CERTIFICATE, LONG, behaving, dead, dripping, huge, serving, silent

Badly = Callable[[socket.socket, threading.Event], None]


def test_a_post_brings_the_body_and_returns_the_answer() -> None:
    with serving(lambda asked: b'{"you": "' + asked.body + b'"}') as server:
        assert post(server.url + "/verb", b"hello", 2) == b'{"you": "hello"}'
    [asked] = server.asked
    assert (asked.method, asked.path) == ("POST", "/verb")
    assert asked.headers["Content-Type"] == "application/json"


def test_without_a_body_it_is_a_get_with_its_query() -> None:
    with serving(lambda asked: asked.path.encode()) as server:
        assert send(Call(server.url + "/a?b=c")) == b"/a?b=c"
    assert server.asked[0].method == "GET"


@pytest.mark.parametrize("badly", BAD, ids=lambda behaviour: behaviour.__name__)
def test_whatever_a_server_does_the_call_ends_in_time(badly: Badly) -> None:
    with behaving(badly) as url:
        begin = time.monotonic()
        with pytest.raises(CallFailed) as failed:
            send(Call(url + "/x", timeout=0.4, largest=1_000_000))
        assert time.monotonic() - begin < LONG / 2, "the server did not end it"
        assert str(failed.value).startswith(url + "/x: ")


def test_what_is_wrong_is_said() -> None:
    with behaving(silent) as url, pytest.raises(CallFailed, match=r"no answer within 0\.2s"):
        send(Call(url, timeout=0.2))
    with behaving(dripping) as url, pytest.raises(CallFailed, match=r"no answer within 0\.2s"):
        send(Call(url, timeout=0.2))
    with behaving(huge) as url, pytest.raises(CallFailed, match="answered more than 5000 bytes"):
        send(Call(url, timeout=5, largest=5000))
    with pytest.raises(CallFailed, match="Connection refused"):
        send(Call(dead(), timeout=2))


def test_an_answer_may_be_as_large_as_it_says_and_no_larger() -> None:
    with serving(lambda asked: b"x" * LARGEST) as server:
        assert len(send(Call(server.url))) == LARGEST
        with pytest.raises(CallFailed, match="more than"):
            send(Call(server.url, largest=LARGEST - 1))


@pytest.mark.parametrize("status", [201, 204, 400, 404, 500, 503])
def test_another_status_than_200_is_no_answer(status: int) -> None:
    with serving(lambda asked: (status, b"")) as server, pytest.raises(CallFailed) as failed:
        send(Call(server.url))
    assert failed.value.status == status


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with serving(lambda asked: b"reached") as elsewhere:
        headers = {"Location": elsewhere.url}
        moved = serving(lambda asked: (status, b""), headers)
        with moved as server, pytest.raises(CallFailed, match=f"answered {status}"):
            post(server.url, b"{}", 2)
    assert elsewhere.asked == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host",
        "ftp://host/x",
        "file:///etc/passwd",
        "http://",
        "http://[::1",
        "http://h:99999/",
        "http://a b/",
    ],
)
def test_an_address_that_is_none_is_no_answer(url: str) -> None:
    with pytest.raises(CallFailed):
        send(Call(url, timeout=1))


def test_a_name_and_password_are_sent_and_never_shown() -> None:
    with serving(lambda asked: b"{}") as server:
        send(Call(server.url.replace("//", "//me:s3cr%20t@")))
    assert server.asked[0].headers["Authorization"] == basic("me", "s3cr t")
    address = "http://me:s3cret@127.0.0.1:1/x?token=s3cret"
    with pytest.raises(CallFailed) as failed:
        send(Call(address, timeout=1))
    assert "s3cret" not in str(failed.value)
    assert shown_url(address) == "http://127.0.0.1:1/x"


def test_a_header_cannot_be_smuggled_in() -> None:
    with serving(lambda asked: b"{}") as server, pytest.raises(CallFailed):
        send(Call(server.url, headers={"X": "a\r\nY: b"}))
    assert server.asked == []


def test_certificates_are_verified_by_default() -> None:
    with serving(lambda asked: b"{}", secure=True) as server:
        with pytest.raises(CallFailed, match=r"(?i)certificate.verify.failed"):
            send(Call(server.url, timeout=5))
        assert server.asked == []
        assert send(Call(server.url, timeout=5, trust=Trust(verify=False))) == b"{}"
        assert send(Call(server.url, timeout=5, trust=Trust(ca_file=str(CERTIFICATE)))) == b"{}"


def test_a_secure_server_that_is_silent_is_not_waited_for() -> None:
    with behaving(silent) as url, pytest.raises(CallFailed, match=r"no answer within 0\.2s"):
        send(Call(url.replace("http:", "https:"), timeout=0.2))


def test_an_authority_that_cannot_be_read_is_no_answer() -> None:
    with pytest.raises(CallFailed, match="No such file"):
        send(Call("https://127.0.0.1:1", timeout=1, trust=Trust(ca_file="/nowhere/ca.crt")))
