"""Where requests of ours may go: never inside our own network, never to another address than the one that was checked."""

import socket
import ssl
import time
from pathlib import Path
from typing import Any

import pytest

from compliance.services.delivery import deliver_due
from compliance.services.outgoing import AddressRefused, DeliveryFailed, parse_target, post, resolve
from evaluations.kernel.outgoing import is_public
from tests.support.certificates import make_certificate
from tests.support.notices import notify, only, register
from tests.support.sinks import HttpSink, drip, raw_sink


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200", "0.0.0.0",
        "224.0.0.1", "239.1.1.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "168.63.129.16", "::", "::1", "fe80::1",
        "fe80::1%eth0", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",
        "2001:db8::1", "2001::1",
    ],
)  # fmt: skip
def test_addresses_of_our_own_network_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "::ffff:8.8.8.8", "2606:4700::1111"])
def test_addresses_of_the_open_internet_are(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        "", "example.org", "//example.org/", "ftp://example.org/", "file:///etc/passwd", "gopher://example.org/", "https://",
        "https:///x", "https://a b/", "https://exa\nmple.org/", "https://example.org\\@evil/", "https://u:p@example.org/",
        "https://@example.org/", "https://example.org/#f", "https://example.org:port/", "https://example.org:99999/",
        "https://[::1/", "https://exämple.org/", "https://" + "x" * 1000, "http://example.org/",
    ],
)  # fmt: skip
def test_what_is_no_address_for_us_is_refused_before_any_look_up(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", None)
    with pytest.raises(AddressRefused):
        parse_target(url)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "localhost", "localhost.", "[::1]", "[::ffff:127.0.0.1]"]
)
def test_every_way_to_write_this_machine_is_refused_and_the_answer_names_no_address(host: str) -> None:
    with pytest.raises(AddressRefused, match=r"lies inside a private network|is not found") as refused:
        resolve(parse_target(f"https://{host}/"))
    assert "\n" not in str(refused.value)


def test_one_private_address_among_public_ones_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(2, 1, 6, "", ("8.8.8.8", 443)), (2, 1, 6, "", ("10.0.0.1", 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(AddressRefused):
        resolve(parse_target("https://example.org/"))
    found.pop()
    assert resolve(parse_target("https://example.org/")) == ["8.8.8.8"]


def test_an_allowance_is_for_one_host_and_port(settings) -> None:
    settings.WEBHOOK_ALLOW = ["Localhost:8080", "[::1]:8443"]
    assert resolve(parse_target("http://localhost:8080/"))
    assert parse_target("https://[::1]:8443/").allowed
    for other in ("http://localhost:8081/", "http://localhost/"):
        with pytest.raises(AddressRefused):
            parse_target(other)


def test_a_name_that_turns_inward_after_registration_is_not_asked(sink: HttpSink, settings) -> None:
    register(sink)
    notify()
    settings.WEBHOOK_ALLOW = []
    assert deliver_due() == (0, 1, False)
    assert (sink.heard, only().status) == ([], "waiting")
    assert "only https" in only().last_error


def test_the_connection_goes_to_the_address_that_was_checked(sink: HttpSink, monkeypatch: pytest.MonkeyPatch, settings) -> None:
    place = f"hooks.example.org:{sink.port}"
    settings.WEBHOOK_ALLOW = [place]
    target = parse_target(f"http://{place}/hook")
    asked: list[str] = []
    real = socket.getaddrinfo

    def watched(host: Any, *arguments: Any, **named: Any) -> Any:
        asked.append(str(host))
        return real(host, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", watched)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert post(target, ["127.0.0.1"], body=b"{}", headers={}).status == 204
    assert asked == ["127.0.0.1"], "the name is not looked up again"
    assert sink.heard[0].headers["Host"] == place


def test_tls_is_held_to_the_name_though_the_address_is_given(tmp_path: Path, settings) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    make_certificate(key, certificate, "hooks.example.org")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cafile=str(certificate))
    names: list[str | None] = []
    server.sni_callback = lambda wire, name, context: names.append(name)

    def speak(wire: socket.socket) -> None:
        try:
            with server.wrap_socket(wire, server_side=True) as secured:
                request = b""
                # To its end: who hangs up with something unread resets the connection, and the answer is lost.
                while not request.endswith(b"{}"):
                    request += secured.recv(65536)
                secured.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
        except OSError:
            return

    with raw_sink(speak) as port:
        settings.WEBHOOK_ALLOW = [f"hooks.example.org:{port}", f"other.example.org:{port}"]
        good, other = (parse_target(f"https://{host}.example.org:{port}/") for host in ("hooks", "other"))
        assert post(good, ["127.0.0.1"], body=b"{}", headers={}, context=trusting).status == 204
        with pytest.raises(DeliveryFailed, match="certificate does not hold"):
            post(other, ["127.0.0.1"], body=b"{}", headers={}, context=trusting)
        with pytest.raises(DeliveryFailed, match="certificate does not hold"):
            post(good, ["127.0.0.1"], body=b"{}", headers={})
    assert names[:2] == ["hooks.example.org", "other.example.org"]


def test_one_who_writes_slowly_is_cut_off_in_time(settings) -> None:
    with raw_sink(drip) as port:
        settings.WEBHOOK_ALLOW = [f"127.0.0.1:{port}"]
        began = time.monotonic()
        with pytest.raises(DeliveryFailed, match="no answer within the time"):
            post(parse_target(f"http://127.0.0.1:{port}/"), ["127.0.0.1"], body=b"{}", headers={}, seconds=0.5)
        assert time.monotonic() - began < 1.5


@pytest.mark.parametrize("said", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"\x00" * 100])
def test_what_is_no_http_is_a_failure(settings, said: bytes) -> None:
    with raw_sink(lambda wire: (wire.recv(65536), wire.sendall(said))[0]) as port:
        settings.WEBHOOK_ALLOW = [f"127.0.0.1:{port}"]
        with pytest.raises(DeliveryFailed):
            post(parse_target(f"http://127.0.0.1:{port}/"), ["127.0.0.1"], body=b"{}", headers={})


def test_of_an_answer_four_kibibytes_are_read(sink: HttpSink) -> None:
    sink.content = b"x" * 10_000_000
    sink.answers = [(200, {"Content-Length": str(len(sink.content))})]
    register(sink)
    notify()
    assert deliver_due() == (1, 0, False)


def test_an_address_where_nobody_listens_is_a_failure(settings) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        settings.WEBHOOK_ALLOW = [f"127.0.0.1:{port}"]
        with pytest.raises(DeliveryFailed, match="not reached: Connection refused"):
            post(parse_target(f"http://127.0.0.1:{port}/"), ["127.0.0.1"], body=b"", headers={})
